/* SPDX-License-Identifier: MIT */
#include "common/transport/hostport.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "fd00::1", also with an interface, "fe80::1%eth0": the @len characters from @text on. */
static bool is_v6(const char *text, size_t len)
{
	char plain[INET6_ADDRSTRLEN];
	struct in6_addr unused;
	const char *scope = memchr(text, '%', len);
	size_t digits = scope != NULL ? (size_t)(scope - text) : len;

	if (digits >= sizeof(plain) || digits + 1 == len)
		return false;
	if (scope != NULL && strcspn(scope, ":]") < len - digits)
		return false;
	memcpy(plain, text, digits);
	plain[digits] = '\0';
	return inet_pton(AF_INET6, plain, &unused) == 1;
}

static bool is_port(const char *text)
{
	size_t digits = strspn(text, "0123456789");

	return digits > 0 && digits <= 5 && text[digits] == '\0' && atol(text) <= 65535;
}

/* A port that follows an address without brackets, or the default one. Where both readings are
 * possible, as in fd00::1:7777, the last figure is likely meant to be the port. */
static int without_brackets(const char *typed, struct mst_reason *why)
{
	const char *colon = strrchr(typed, ':');
	size_t all = strlen(typed), len = (size_t)(colon - typed);

	if (is_port(colon + 1) && is_v6(typed, len))
		return mst_reason_fail(why, -EINVAL,
				       "\"%.100s\" is an IPv6 address without brackets: with the "
				       "port it is [%.*s]:%s",
				       typed, (int)len, typed, colon + 1);
	if (is_v6(typed, all))
		return mst_reason_fail(why, -EINVAL,
				       "\"%.100s\" is an IPv6 address without brackets: with a "
				       "port it is [%.100s]:" MST_CONTROL_PORT,
				       typed, typed);
	return 0;
}

static int no_address(const char *typed, struct mst_reason *why)
{
	if (strchr(typed, ':') != NULL && without_brackets(typed, why) != 0)
		return -EINVAL;
	return mst_reason_fail(why, -EINVAL,
			       "\"%.60s\" is not HOST:PORT with a port from 0 to 65535, such as "
			       "127.0.0.1:" MST_CONTROL_PORT ", nor HOST alone",
			       typed);
}

/* Where the host ends; NULL: there is none. A bare IPv6 address leaves open which colon is the
 * last, and a number alone is likely meant to be the port. */
static const char *end_of_host(const char *typed)
{
	const char *end = typed + strcspn(typed, ":");

	if (typed[0] == '[') {
		end = strchr(typed, ']');
		return end != NULL && end - typed > 1 ? end : NULL;
	}
	if (end == typed || (*end == '\0' && typed[strspn(typed, "0123456789")] == '\0'))
		return NULL;
	return memchr(typed, '/', (size_t)(end - typed)) == NULL ? end : NULL;
}

int mst_hostport_read(const char *typed, struct mst_hostport *out, struct mst_reason *why)
{
	const char *end = end_of_host(typed), *port;
	bool bracketed = typed[0] == '[';

	if (end == NULL)
		return no_address(typed, why);
	size_t len = (size_t)(end - typed) - bracketed;
	port = end + bracketed;
	if (len >= sizeof(out->host) || (*port != '\0' && (*port != ':' || !is_port(port + 1))))
		return no_address(typed, why);
	memcpy(out->host, typed + bracketed, len);
	out->host[len] = '\0';
	(void)snprintf(out->port, sizeof(out->port), "%s",
		       *port != '\0' ? port + 1 : MST_CONTROL_PORT);
	return 0;
}

const char *mst_hostport_text(const char *typed, char out[MST_HOSTPORT_LEN])
{
	struct mst_hostport at;
	struct mst_reason unused;
	bool v6 = typed[0] == '[';

	if (mst_hostport_read(typed, &at, &unused) != 0)
		(void)snprintf(out, MST_HOSTPORT_LEN, "%s", typed);
	else
		(void)snprintf(out, MST_HOSTPORT_LEN, "%s%s%s:%s", v6 ? "[" : "", at.host,
			       v6 ? "]" : "", at.port);
	return out;
}

bool mst_hostport_is_name(const char *typed)
{
	struct mst_hostport at;
	struct mst_reason unused;
	struct in_addr v4;

	return mst_hostport_read(typed, &at, &unused) == 0 && !is_v6(at.host, strlen(at.host)) &&
	       inet_aton(at.host, &v4) == 0;
}

bool mst_hostport_is_here(const char *typed)
{
	struct mst_hostport at;
	struct mst_reason unused;

	if (mst_hostport_read(typed, &at, &unused) != 0)
		return false;
	return strncmp(at.host, "127.", 4) == 0 || strcmp(at.host, "::1") == 0 ||
	       strcmp(at.host, "localhost") == 0;
}

const char *mst_hostport_advice(const char *typed, int error, struct mst_reason *out)
{
	if (error == -ETIMEDOUT || error == -EHOSTUNREACH || error == -ENETUNREACH)
		mst_reason_set(out,
			       "is its host up, is there a way to it, and does a firewall drop "
			       "this port? (muster doctor --peer HOST tries the way)");
	else if (mst_hostport_is_here(typed))
		mst_reason_set(out, "start one with musterd or muster run");
	else
		mst_reason_set(out,
			       "start one there with musterd --listen %.100s (without --listen it "
			       "is at 127.0.0.1, which only its own host reaches)",
			       typed);
	return out->text;
}
