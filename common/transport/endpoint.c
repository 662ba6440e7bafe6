/* SPDX-License-Identifier: MIT */
#include "common/transport/endpoint.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALLED "*" /* in place of a host, see common/transport/called.h */
/* What a host takes of the text of an endpoint, which has brackets and a port too. */
#define HOST_TEXT_MAX ((int)(INET6_ADDRSTRLEN + IF_NAMESIZE))

socklen_t mst_endpoint_bytes(const union mst_endpoint *a)
{
	return a->any.sa_family == AF_INET ? sizeof(a->v4) : sizeof(a->v6);
}

void mst_endpoint_set_port(union mst_endpoint *a, in_port_t port)
{
	if (a->any.sa_family == AF_INET)
		a->v4.sin_port = port;
	else
		a->v6.sin6_port = port;
}

in_port_t mst_endpoint_port(const union mst_endpoint *a)
{
	return a->any.sa_family == AF_INET ? a->v4.sin_port : a->v6.sin6_port;
}

bool mst_endpoint_is_any(const union mst_endpoint *a)
{
	return a->any.sa_family == AF_INET6 ? IN6_IS_ADDR_UNSPECIFIED(&a->v6.sin6_addr)
					    : a->v4.sin_addr.s_addr == htonl(INADDR_ANY);
}

/* ---- to text ---- */

/* What means the same as an address of IPv4 is shown as that. */
static bool as_v4(const struct sockaddr *a, struct in_addr *out)
{
	const struct sockaddr_in6 *v6 = (const void *)a;

	if (a->sa_family == AF_INET)
		*out = ((const struct sockaddr_in *)(const void *)a)->sin_addr;
	else if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
		memcpy(out, &v6->sin6_addr.s6_addr[12], sizeof(*out));
	else
		return false;
	return true;
}

const char *mst_endpoint_host_text(const struct sockaddr *a, char out[MST_ENDPOINT_TEXT_LEN])
{
	char host[INET6_ADDRSTRLEN] = "?", name[IF_NAMESIZE] = "";
	const struct sockaddr_in6 *v6 = (const void *)a;
	struct in_addr v4;

	if (as_v4(a, &v4)) {
		(void)inet_ntop(AF_INET, &v4, host, sizeof(host));
	} else {
		(void)inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof(host));
		if (v6->sin6_scope_id == 0 || if_indextoname(v6->sin6_scope_id, name) == NULL)
			name[0] = '\0';
	}
	(void)snprintf(out, MST_ENDPOINT_TEXT_LEN, "%s%s%s", host, name[0] != '\0' ? "%" : "",
		       name);
	return out;
}

const char *mst_endpoint_text(const struct sockaddr *a, char out[MST_ENDPOINT_TEXT_LEN])
{
	/* The port is at the same place in both families. */
	unsigned port = ntohs(((const struct sockaddr_in *)(const void *)a)->sin_port);
	char host[MST_ENDPOINT_TEXT_LEN];
	struct in_addr v4;

	mst_endpoint_host_text(a, host);
	(void)snprintf(out, MST_ENDPOINT_TEXT_LEN, as_v4(a, &v4) ? "%.*s:%u" : "[%.*s]:%u",
		       HOST_TEXT_MAX, host, port);
	return out;
}

int mst_endpoints_print(const struct mst_endpoints *e, const char *prefix, char *out, size_t len)
{
	char one[MST_ENDPOINT_TEXT_LEN], all[MST_ADDRESS_LEN] = "";
	size_t used = 0;

	if (e->called_port != 0)
		used = (size_t)snprintf(all, sizeof(all), "%s" CALLED ":%u", prefix,
					ntohs(e->called_port));
	for (uint32_t i = 0; i < e->count; i++) {
		mst_endpoint_text(&e->at[i].any, one);
		int n = snprintf(all + used, sizeof(all) - used, "%s%s", used == 0 ? prefix : ",",
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
static int read_host(const char *host, union mst_endpoint *out)
{
	char plain[INET6_ADDRSTRLEN + 1];
	const char *scope = strchr(host, '%');
	size_t len = scope != NULL ? (size_t)(scope - host) : strlen(host);

	*out = (union mst_endpoint){ 0 };
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
static int read_far_host(const char *host, union mst_endpoint *out)
{
	int rc = read_host(host, out);

	return rc == -ENODEV && IN6_IS_ADDR_LINKLOCAL(&out->v6.sin6_addr) ? 0 : rc;
}

/* "10.0.0.1:4711", "[fd00::1]:4711" or "*:4711", which gives no address; @text is spoilt. */
static int read_endpoint(char *text, union mst_endpoint *out)
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
	mst_endpoint_set_port(out, htons((uint16_t)port));
	return rc;
}

/* @read: of one, -EAGAIN: there is none in it; @form: what one has to look like. */
static int read_all(const char *text, int (*read)(char *one, union mst_endpoint *out),
		    const char *form, struct mst_endpoints *out, struct mst_reason *why)
{
	char copy[MST_ADDRESS_LEN], *rest = copy, *item;

	*out = (struct mst_endpoints){ 0 };
	if (strnlen(text, sizeof(copy)) == sizeof(copy))
		return mst_reason_fail(why, -EINVAL, "the list of addresses %.60s... is too long",
				       text);
	(void)snprintf(copy, sizeof(copy), "%s", text);
	while ((item = strsep(&rest, ",")) != NULL) {
		union mst_endpoint one;
		if (out->count == MST_ENDPOINTS_MAX)
			return mst_reason_fail(why, -EINVAL, "more than %u addresses: %.200s",
					       MST_ENDPOINTS_MAX, text);
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
		if (rc == 0)
			out->at[out->count++] = one;
	}
	return 0;
}

static int read_own(char *text, union mst_endpoint *out)
{
	return read_host(text, out);
}

int mst_endpoints_parse(const char *text, const struct mst_transport *of, struct mst_endpoints *out,
			struct mst_reason *why)
{
	size_t skip = strlen(of->prefix);

	if (strncmp(text, of->prefix, skip) != 0)
		return mst_reason_fail(why, -EINVAL, "\"%.60s\" is no address of a listener for %s",
				       text, of->medium);
	int rc = read_all(text + skip, read_endpoint,
			  "ADDRESS:PORT, as in 10.0.0.1:4711 or [fd00::1]:4711", out, why);
	if (rc == 0 && out->count == 0)
		return mst_reason_fail(why, -EINVAL,
				       "\"%.60s\" names no address of the server's host", text);
	return rc;
}

int mst_endpoints_list(const char *text, struct mst_endpoints *out, struct mst_reason *why)
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

void mst_endpoints_drop_repeated(struct mst_endpoints *e)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < e->count; i++) {
		uint32_t same = 0;
		while (same < kept && memcmp(&e->at[same], &e->at[i], sizeof(e->at[i])) != 0)
			same++;
		if (same == kept)
			e->at[kept++] = e->at[i];
	}
	e->count = kept;
}
