/* SPDX-License-Identifier: MIT */
#include "common/transport/called.h"

#include <string.h>

#include "common/transport/endpoint.h"

#define HERE "*"

const char *mst_called_host(int fd, char out[MST_CALLED_LEN])
{
	union mst_endpoint at = { 0 };
	socklen_t len = sizeof(at);
	char text[MST_ENDPOINT_TEXT_LEN];

	out[0] = '\0';
	if (fd < 0 || getpeername(fd, &at.any, &len) != 0 ||
	    (at.any.sa_family != AF_INET && at.any.sa_family != AF_INET6))
		return out;
	return mst_called_host_of(mst_endpoint_text(&at.any, text), out);
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
