/* SPDX-License-Identifier: MIT */
#include "common/transport/origins.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#define NAMED_MAX 4u /* addresses in a text; there may be many */

/* ---- one address ---- */

static void map_v4(const struct in_addr *v4, struct mst_origin *out)
{
	memset(out->address + 10, 0xff, 2);
	memcpy(out->address + 12, v4, sizeof(*v4));
}

bool mst_origin_of(const struct sockaddr *address, struct mst_origin *out)
{
	*out = (struct mst_origin){ 0 };
	if (address->sa_family == AF_INET) {
		map_v4(&((const struct sockaddr_in *)(const void *)address)->sin_addr, out);
		return true;
	}
	if (address->sa_family != AF_INET6)
		return false;
	memcpy(out->address, &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr,
	       sizeof(out->address));
	return true;
}

/* "10.0.0.1", "fd00::1" or "fe80::1%eth0" */
static bool parse(const char *text, size_t len, struct mst_origin *out)
{
	char plain[INET6_ADDRSTRLEN];
	struct in_addr v4;
	const char *scope = memchr(text, '%', len);

	len = scope != NULL ? (size_t)(scope - text) : len;
	*out = (struct mst_origin){ 0 };
	if (len >= sizeof(plain))
		return false;
	memcpy(plain, text, len);
	plain[len] = '\0';
	if (inet_pton(AF_INET, plain, &v4) != 1)
		return inet_pton(AF_INET6, plain, out->address) == 1;
	map_v4(&v4, out);
	return true;
}

/* ---- lists of them ---- */

static bool has(const struct mst_origins *origins, const struct mst_origin *one)
{
	for (uint32_t i = 0; i < origins->count; i++)
		if (memcmp(&origins->at[i], one, sizeof(*one)) == 0)
			return true;
	return false;
}

static void add(struct mst_origins *origins, const struct mst_origin *one)
{
	if (origins->count < MST_ORIGINS_MAX && !has(origins, one))
		origins->at[origins->count++] = *one;
}

bool mst_origins_cover(const struct mst_origins *announced, const struct mst_origins *from)
{
	for (uint32_t i = 0; i < from->count; i++)
		if (!has(announced, &from->at[i]))
			return false;
	return true;
}

void mst_origins_add_peer(struct mst_origins *origins, const char *peer)
{
	const char *colon = strrchr(peer, ':');
	struct mst_origin one;

	if (colon == NULL || colon == peer)
		return;
	bool bracketed = peer[0] == '[' && colon[-1] == ']';
	if (!parse(peer + bracketed, (size_t)(colon - peer) - 2u * bracketed, &one) ||
	    has(origins, &one))
		return;
	if (origins->count == MST_ORIGINS_MAX)
		origins->count--;
	add(origins, &one);
}

static void read_list(const char *list, struct mst_origins *out)
{
	struct mst_origin one;

	for (const char *at = list; *at != '\0';) {
		size_t len = strcspn(at, ",");
		if (parse(at, len, &one))
			add(out, &one);
		at += len + (at[len] == ',');
	}
}

/* ---- the host's ---- */

enum reach {
	REACH_HOST, /* loopback */
	REACH_LINK, /* means something on its own link only */
	REACH_BEYOND,
};

static enum reach reach_of(const struct mst_origin *one)
{
	struct in6_addr a;

	memcpy(&a, one->address, sizeof(a));
	if (IN6_IS_ADDR_V4MAPPED(&a)) {
		if (one->address[12] == 127)
			return REACH_HOST;
		return one->address[12] == 169 && one->address[13] == 254 ? REACH_LINK
									  : REACH_BEYOND;
	}
	if (IN6_IS_ADDR_LOOPBACK(&a))
		return REACH_HOST;
	return IN6_IS_ADDR_LINKLOCAL(&a) ? REACH_LINK : REACH_BEYOND;
}

static void add_those(const struct ifaddrs *all, enum reach reach, struct mst_origins *out)
{
	struct mst_origin one;

	for (const struct ifaddrs *i = all; i != NULL; i = i->ifa_next)
		if (i->ifa_addr != NULL && (i->ifa_flags & IFF_UP) != 0 &&
		    mst_origin_of(i->ifa_addr, &one) && reach_of(&one) == reach)
			add(out, &one);
}

int mst_origins_own(const struct mst_fabric *fabric, struct mst_origins *out)
{
	struct ifaddrs *all;

	*out = (struct mst_origins){ 0 };
	if (fabric->addresses != NULL) {
		read_list(fabric->addresses, out);
		return 0;
	}
	if (getifaddrs(&all) != 0)
		return -errno;
	add_those(all, REACH_BEYOND, out);
	add_those(all, REACH_LINK, out);
	freeifaddrs(all);
	return 0;
}

/* ---- text ---- */

static const char *text_of(const struct mst_origin *one, char out[INET6_ADDRSTRLEN])
{
	struct in6_addr a;

	memcpy(&a, one->address, sizeof(a));
	if (IN6_IS_ADDR_V4MAPPED(&a))
		return inet_ntop(AF_INET, one->address + 12, out, INET6_ADDRSTRLEN);
	return inet_ntop(AF_INET6, one->address, out, INET6_ADDRSTRLEN);
}

const char *mst_origins_text(const struct mst_origins *origins, char *out, size_t len)
{
	uint32_t count = origins->count;
	/* one more of them is as short as "and 1 more" */
	uint32_t named = count > NAMED_MAX + 1 ? NAMED_MAX : count;
	char one[INET6_ADDRSTRLEN];
	size_t used = 0;

	(void)snprintf(out, len, "%s", count == 0 ? "no address" : "");
	for (uint32_t i = 0; i < named && used < len; i++)
		used += (size_t)snprintf(out + used, len - used, "%s%s", i > 0 ? ", " : "",
					 text_of(&origins->at[i], one));
	if (named < count && used < len)
		(void)snprintf(out + used, len - used, " and %u more", count - named);
	return out;
}
