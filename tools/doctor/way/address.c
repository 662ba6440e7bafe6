/* SPDX-License-Identifier: MIT */
/* Addresses of the other end, as they are typed and as they are shown. */
#include "tools/doctor/way/way.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/config/option.h"

static bool is_v6(const char *text)
{
	char plain[INET6_ADDRSTRLEN + 1];
	size_t len = strcspn(text, "%");
	struct in6_addr unused;

	/* An interface of this host. */
	if (text[len] == '%' && (text[len + 1] == '\0' || strpbrk(text + len + 1, ":]/%") != NULL))
		return false;
	if (len >= sizeof(plain))
		return false;
	memcpy(plain, text, len);
	plain[len] = '\0';
	return inet_pton(AF_INET6, plain, &unused) == 1;
}

/* A name of a host, or an IPv4 address. What has digits and dots alone must be an address. */
static bool is_name(const char *text)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789.-_";
	struct in_addr unused;

	if (text[0] == '\0' || text[0] == '-' || text[strspn(text, letters)] != '\0')
		return false;
	return text[strspn(text, "0123456789.")] != '\0' || inet_pton(AF_INET, text, &unused) == 1;
}

/* HOST:PORT, or HOST alone, whose port is @port then. @host: what is before it. */
static int split(const char *typed, char host[MST_WAY_HOST_LEN], uint64_t *port)
{
	const char *colon = strrchr(typed, ':'), *end = typed + strlen(typed);

	if (is_v6(typed)) /* without brackets all of it is the host */
		colon = NULL;
	else if (typed[0] == '[')
		colon = colon != NULL && colon[-1] == ']' ? colon : NULL;
	if (colon != NULL) {
		if (mst_parse_u64(colon + 1, port) != 0 || *port == 0 || *port > UINT16_MAX)
			return -EINVAL;
		end = colon;
	}
	bool bracketed = typed[0] == '[';
	if (bracketed && (end - typed < 3 || end[-1] != ']'))
		return -EINVAL;
	size_t len = (size_t)(end - typed) - (bracketed ? 2 : 0);
	if (len >= MST_WAY_HOST_LEN)
		return -EINVAL;
	memcpy(host, typed + bracketed, len);
	host[len] = '\0';
	if (is_v6(host)) /* without brackets, which colon is the last? */
		return bracketed || colon == NULL ? 0 : -EINVAL;
	return !bracketed && is_name(host) ? 0 : -EINVAL;
}

int mst_way_address(const char *typed, char out[MST_WAY_TEXT_LEN], struct mst_reason *why)
{
	const char *text = strncmp(typed, "tcp:", 4) == 0 ? typed + 4 : typed;
	char host[MST_WAY_HOST_LEN];
	uint64_t port = MST_WAY_PORT;

	if (split(text, host, &port) != 0)
		return mst_reason_fail(
			why, -EINVAL,
			"--peer %.100s: not HOST or HOST:PORT, such as node1, 10.0.0.1:17077 or "
			"[fd00::1]:17077, and not what muster doctor --listen prints",
			typed);
	bool v6 = strchr(host, ':') != NULL;
	(void)snprintf(out, MST_WAY_TEXT_LEN, "%s%s%s:%u", v6 ? "[" : "", host, v6 ? "]" : "",
		       (unsigned)port);
	return 0;
}

void mst_way_host(const char *address, char out[MST_WAY_HOST_LEN])
{
	bool bracketed = address[0] == '[';
	const char *end = bracketed ? strchr(address, ']') : strrchr(address, ':');
	size_t len = end != NULL ? (size_t)(end - address) : strlen(address);

	(void)snprintf(out, MST_WAY_HOST_LEN, "%.*s", (int)(len - bracketed), address + bracketed);
}
