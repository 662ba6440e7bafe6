/* SPDX-License-Identifier: MIT */
#include "common/host/service.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NS_PER_US UINT64_C(1000)

/* Return: NULL where the variable is not set, or empty. */
static const char *variable(const char *name)
{
	const char *text = getenv(name);

	return text != NULL && text[0] != '\0' ? text : NULL;
}

static bool read_number(const char *name, uint64_t *out)
{
	const char *text = variable(name);
	char *end;

	if (text == NULL || text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	*out = strtoull(text, &end, 10);
	return errno == 0 && *end == '\0';
}

/* A path, or with @ before it a name that is not in the file system. */
static bool read_address(const char *text, struct mst_service *s)
{
	size_t len = strlen(text);

	if ((text[0] != '/' && text[0] != '@') || len < 2 || len >= sizeof(s->at.sun_path))
		return false;
	s->at = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(s->at.sun_path, text, len);
	if (text[0] == '@')
		s->at.sun_path[0] = '\0';
	s->at_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
	return true;
}

/* A child inherits the variables of a watchdog that is for its parent. */
static uint64_t read_watchdog(void)
{
	uint64_t us, pid;

	if (!read_number("WATCHDOG_USEC", &us) || us > UINT64_MAX / NS_PER_US)
		return 0;
	if (variable("WATCHDOG_PID") != NULL &&
	    (!read_number("WATCHDOG_PID", &pid) || pid != (uint64_t)getpid()))
		return 0;
	return us * NS_PER_US;
}

int mst_service_open(struct mst_service *s, struct mst_reason *why)
{
	const char *address = variable("NOTIFY_SOCKET");

	*s = (struct mst_service){ .fd = -1 };
	if (address == NULL)
		return 0;
	if (!read_address(address, s)) {
		mst_reason_set(why,
			       "NOTIFY_SOCKET is \"%.120s\", which is neither an absolute path nor "
			       "a name after @, of at most %zu characters",
			       address, sizeof(s->at.sun_path) - 1);
		return -EINVAL;
	}
	s->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->fd < 0) {
		int rc = -errno;
		mst_reason_set(why, "cannot make a socket for NOTIFY_SOCKET: %s", strerror(-rc));
		return rc;
	}
	s->watchdog_ns = read_watchdog();
	return 0;
}

void mst_service_close(struct mst_service *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

bool mst_service_tell(const struct mst_service *s, const char *message)
{
	if (s->fd < 0)
		return true;
	return sendto(s->fd, message, strlen(message), MSG_NOSIGNAL,
		      (const struct sockaddr *)&s->at, s->at_len) >= 0;
}
