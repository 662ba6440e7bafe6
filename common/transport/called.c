/* SPDX-License-Identifier: MIT */
#include "common/transport/called.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define HERE "*"

static void text_v6(const struct sockaddr_in6 *a, char out[MST_CALLED_LEN])
{
	char host[INET6_ADDRSTRLEN] = "", scope[IF_NAMESIZE] = "";

	if (IN6_IS_ADDR_V4MAPPED(&a->sin6_addr)) {
		(void)inet_ntop(AF_INET, &a->sin6_addr.s6_addr[12], out, MST_CALLED_LEN);
		return;
	}
	(void)inet_ntop(AF_INET6, &a->sin6_addr, host, sizeof(host));
	bool scoped = a->sin6_scope_id != 0 && if_indextoname(a->sin6_scope_id, scope) != NULL;
	(void)snprintf(out, MST_CALLED_LEN, "[%s%s%s]", host, scoped ? "%" : "", scope);
}

const char *mst_called_host(int fd, char out[MST_CALLED_LEN])
{
	struct sockaddr_storage at = { 0 };
	socklen_t len = sizeof(at);

	out[0] = '\0';
	if (fd < 0 || getpeername(fd, (struct sockaddr *)&at, &len) != 0)
		return out;
	if (at.ss_family == AF_INET)
		(void)inet_ntop(AF_INET, &((struct sockaddr_in *)&at)->sin_addr, out,
				MST_CALLED_LEN);
	else if (at.ss_family == AF_INET6)
		text_v6((struct sockaddr_in6 *)&at, out);
	return out;
}

const char *mst_called_host_of(const char *endpoint, char out[MST_CALLED_LEN])
{
	const char *colon = strrchr(endpoint, ':');
	size_t len = colon != NULL ? (size_t)(colon - endpoint) : 0;

	if (len >= MST_CALLED_LEN)
		len = 0;
	memcpy(out, endpoint, len);
	out[len] = '\0';
	return out;
}

bool mst_called_is_here(const char *host)
{
	return strncmp(host, "127.", 4) == 0 || strcmp(host, "[::1]") == 0;
}

/* The next "*:" that stands where a host does. */
static char *place_of(char *text)
{
	for (char *at = text; (at = strstr(at, HERE ":")) != NULL; at++)
		if (at > text && (at[-1] == ':' || at[-1] == ','))
			return at;
	return NULL;
}

void mst_called_fill(char *address, size_t room, const char *host)
{
	size_t len = strlen(host);
	char *at = address;

	while (len > 0 && (at = place_of(at)) != NULL) {
		size_t rest = strlen(at + strlen(HERE)) + 1;
		if ((size_t)(at - address) + len + rest > room)
			return;
		memmove(at + len, at + strlen(HERE), rest);
		memcpy(at, host, len);
		at += len - 1; /* on what stands before the colon */
	}
}
