/* SPDX-License-Identifier: MIT */
/* The addresses of listeners and of this host, as text and for the kernel. */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/transport/origins.h"
#include "common/transport/tcp/tcp.h"

#define PREFIX "tcp:"
#define CALLED "*" /* in place of a host, see common/transport/called.h */

socklen_t mst_tcp_address_bytes(const union mst_tcp_address *a)
{
	return a->any.sa_family == AF_INET ? sizeof(a->v4) : sizeof(a->v6);
}

void mst_tcp_address_set_port(union mst_tcp_address *a, in_port_t port)
{
	if (a->any.sa_family == AF_INET)
		a->v4.sin_port = port;
	else
		a->v6.sin6_port = port;
}

bool mst_tcp_address_is_any(const union mst_tcp_address *a)
{
	return a->any.sa_family == AF_INET6 ? IN6_IS_ADDR_UNSPECIFIED(&a->v6.sin6_addr)
					    : a->v4.sin_addr.s_addr == htonl(INADDR_ANY);
}

/* ---- to text ---- */

static const char *text_v4(const struct in_addr *host, in_port_t port, char *out, size_t len)
{
	char text[INET_ADDRSTRLEN] = "?";

	inet_ntop(AF_INET, host, text, sizeof(text));
	(void)snprintf(out, len, "%s:%u", text, ntohs(port));
	return out;
}

const char *mst_tcp_address_text(const struct sockaddr *a, char *out, size_t len)
{
	char host[INET6_ADDRSTRLEN] = "?", name[IF_NAMESIZE] = "";

	if (a->sa_family == AF_INET) {
		const struct sockaddr_in *v4 = (const void *)a;
		return text_v4(&v4->sin_addr, v4->sin_port, out, len);
	}
	const struct sockaddr_in6 *v6 = (const void *)a;
	if (a->sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
		struct in_addr v4;
		memcpy(&v4, &v6->sin6_addr.s6_addr[12], sizeof(v4));
		return text_v4(&v4, v6->sin6_port, out, len);
	}
	inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof(host));
	bool scoped = v6->sin6_scope_id != 0 && if_indextoname(v6->sin6_scope_id, name) != NULL;
	(void)snprintf(out, len, "[%s%s%s]:%u", host, scoped ? "%" : "", scoped ? name : "",
		       ntohs(v6->sin6_port));
	return out;
}

int mst_tcp_address_print(const struct mst_tcp_addresses *a, char *out, size_t len)
{
	char one[MST_TCP_TEXT_LEN], all[MST_ADDRESS_LEN] = "";
	size_t used = 0;

	if (a->called_port != 0)
		used = (size_t)snprintf(all, sizeof(all), PREFIX CALLED ":%u",
					ntohs(a->called_port));
	for (uint32_t i = 0; i < a->count; i++) {
		mst_tcp_address_text(&a->at[i].any, one, sizeof(one));
		int n = snprintf(all + used, sizeof(all) - used, "%s%s", used == 0 ? PREFIX : ",",
				 one);
		if (n < 0 || used + (size_t)n >= len || used + (size_t)n >= sizeof(all)) {
			all[used] = '\0';
			break;
		}
		used += (size_t)n;
	}
	if (used == 0)
		return -ENAMETOOLONG;
	memcpy(out, all, used + 1);
	return 0;
}

/* ---- from text ---- */

/* "10.0.0.1", "fd00::1" or "fe80::1%eth0" */
static int read_host(const char *host, union mst_tcp_address *out)
{
	char plain[INET6_ADDRSTRLEN + 1];
	const char *scope = strchr(host, '%');
	size_t len = scope != NULL ? (size_t)(scope - host) : strlen(host);

	*out = (union mst_tcp_address){ 0 };
	if (len >= sizeof(plain))
		return -EINVAL;
	memcpy(plain, host, len);
	plain[len] = '\0';
	if (scope == NULL && inet_pton(AF_INET, plain, &out->v4.sin_addr) == 1) {
		out->v4.sin_family = AF_INET;
		return 0;
	}
	if (inet_pton(AF_INET6, plain, &out->v6.sin6_addr) != 1)
		return -EINVAL;
	out->v6.sin6_family = AF_INET6;
	if (scope != NULL)
		out->v6.sin6_scope_id = if_nametoindex(scope + 1);
	bool needs = IN6_IS_ADDR_LINKLOCAL(&out->v6.sin6_addr);
	return (scope != NULL || needs) && out->v6.sin6_scope_id == 0 ? -ENODEV : 0;
}

/* What is of an interface of the listener's host may be of one with another name here: which one,
 * the dial finds out. */
static int read_far_host(const char *host, union mst_tcp_address *out)
{
	int rc = read_host(host, out);

	return rc == -ENODEV && IN6_IS_ADDR_LINKLOCAL(&out->v6.sin6_addr) ? 0 : rc;
}

/* "10.0.0.1:4711", "[fd00::1]:4711" or "*:4711", which gives no address; @text is spoilt. */
static int read_endpoint(char *text, union mst_tcp_address *out)
{
	char *colon = strrchr(text, ':'), *host = text;

	if (colon == NULL || colon == text)
		return -EINVAL;
	size_t digits = strspn(colon + 1, "0123456789");
	if (digits == 0 || digits > 5 || colon[1 + digits] != '\0')
		return -EINVAL;
	unsigned long port = strtoul(colon + 1, NULL, 10);
	if (port == 0 || port > UINT16_MAX)
		return -EINVAL;
	*colon = '\0';
	bool bracketed = text[0] == '[';
	if (bracketed) {
		if (colon[-1] != ']')
			return -EINVAL;
		colon[-1] = '\0';
		host++;
	}
	if (strcmp(text, CALLED) == 0)
		return -EAGAIN;
	int rc = read_far_host(host, out);
	if (rc == 0 && bracketed != (out->any.sa_family == AF_INET6))
		return -EINVAL;
	mst_tcp_address_set_port(out, htons((uint16_t)port));
	return rc;
}

static bool has(const struct mst_tcp_addresses *all, const union mst_tcp_address *one)
{
	for (uint32_t i = 0; i < all->count; i++)
		if (memcmp(&all->at[i], one, sizeof(*one)) == 0)
			return true;
	return false;
}

/* @read: of one, -EAGAIN: there is none in it; @form: what one has to look like. One that is named
 * twice counts once. */
static int read_all(const char *text, int (*read)(char *one, union mst_tcp_address *out),
		    const char *form, struct mst_tcp_addresses *out, struct mst_reason *why)
{
	char copy[MST_ADDRESS_LEN], *rest = copy, *item;

	*out = (struct mst_tcp_addresses){ 0 };
	if (strnlen(text, sizeof(copy)) == sizeof(copy))
		return mst_reason_fail(why, -EINVAL, "the list of addresses %.60s... is too long",
				       text);
	(void)snprintf(copy, sizeof(copy), "%s", text);
	while ((item = strsep(&rest, ",")) != NULL) {
		union mst_tcp_address one;
		if (out->count == MST_TCP_ADDRESSES_MAX)
			return mst_reason_fail(why, -EINVAL, "more than %u addresses: %.200s",
					       MST_TCP_ADDRESSES_MAX, text);
		char shown[61];
		(void)snprintf(shown, sizeof(shown), "%s", item); /* reading spoils it */
		int rc = read(item, &one);
		if (rc == -ENODEV)
			return mst_reason_fail(
				why, -EINVAL,
				"\"%s\" lacks an interface of this host: a link-local address "
				"is fe80::1%%eth0 (ip address shows the interfaces)",
				shown);
		if (rc != 0 && rc != -EAGAIN)
			return mst_reason_fail(why, -EINVAL, "\"%s\" is not %s", shown, form);
		if (rc == 0 && !has(out, &one))
			out->at[out->count++] = one;
	}
	return 0;
}

static int read_own(char *text, union mst_tcp_address *out)
{
	return read_host(text, out);
}

int mst_tcp_address_parse(const char *text, struct mst_tcp_addresses *out, struct mst_reason *why)
{
	if (strncmp(text, PREFIX, strlen(PREFIX)) != 0)
		return mst_reason_fail(why, -EINVAL,
				       "\"%.60s\" is no address of a listener for TCP", text);
	int rc = read_all(text + strlen(PREFIX), read_endpoint,
			  "ADDRESS:PORT, as in 10.0.0.1:4711 or [fd00::1]:4711", out, why);
	if (rc == 0 && out->count == 0)
		return mst_reason_fail(why, -EINVAL,
				       "\"%.60s\" names no address of the server's host", text);
	return rc;
}

int mst_tcp_address_list(const char *text, struct mst_tcp_addresses *out, struct mst_reason *why)
{
	if (if_nametoindex(text) != 0)
		return mst_reason_fail(why, -EINVAL,
				       "\"%.60s\" is an interface, and a data address is an IP "
				       "address: ip address show dev %.60s has those of it",
				       text, text);
	return read_all(
		text, read_own,
		"an IP address of this host, such as 10.0.0.1, fd00::1 or fe80::1%eth0, as "
		"--data-address and MUSTER_DATA_ADDRESS need it (names and ports are not taken; "
		"ip address shows the addresses)",
		out, why);
}

/* ---- of this host ---- */

static void of_origin(const struct mst_origin *origin, union mst_tcp_address *out)
{
	struct in6_addr v6;

	memcpy(&v6, origin->address, sizeof(v6));
	*out = (union mst_tcp_address){ 0 };
	if (IN6_IS_ADDR_V4MAPPED(&v6)) {
		out->v4.sin_family = AF_INET;
		memcpy(&out->v4.sin_addr, origin->address + 12, sizeof(out->v4.sin_addr));
	} else {
		out->v6.sin6_family = AF_INET6;
		out->v6.sin6_addr = v6;
	}
}

int mst_tcp_address_host(struct mst_tcp_addresses *out)
{
	static const struct mst_fabric any = MST_FABRIC_DEFAULT;
	struct mst_origins own;
	int rc = mst_origins_own(&any, &own);

	*out = (struct mst_tcp_addresses){ 0 };
	/* With that at which the server is called they are as many as can be read. */
	for (uint32_t i = 0; i < own.count && out->count + 1 < MST_TCP_ADDRESSES_MAX; i++) {
		union mst_tcp_address *one = &out->at[out->count];
		of_origin(&own.at[i], one);
		/* One of a link means nothing without an interface of the caller's. */
		out->count += one->any.sa_family == AF_INET ||
			      !IN6_IS_ADDR_LINKLOCAL(&one->v6.sin6_addr);
	}
	if (out->count == 0) {
		out->at[0] = (union mst_tcp_address){ 0 };
		out->at[0].v4.sin_family = AF_INET;
		out->at[0].v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		out->count = 1;
	}
	return rc;
}
