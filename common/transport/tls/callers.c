/* SPDX-License-Identifier: MIT */
#include "common/transport/tls/callers.h"

#include <arpa/inet.h>
#include <string.h>

#include "common/base/assert.h"

#define HOST_LEN 64u
#define NETWORK_BYTES 8u

/* The address of @peer in binary, of IPv6 its network; else the text itself. Return: the length. */
static size_t address_of(const char *peer, unsigned char out[HOST_LEN])
{
	const char *end = strrchr(peer, ':');
	size_t skip = peer[0] == '[', len = end != NULL ? (size_t)(end - peer) : strlen(peer);
	char host[HOST_LEN] = "";

	len = len > 2 * skip ? len - 2 * skip : 0;
	len = len < sizeof(host) ? len : sizeof(host) - 1;
	memcpy(host, peer + skip, len);
	if (inet_pton(AF_INET6, host, out) == 1)
		return NETWORK_BYTES;
	if (inet_pton(AF_INET, host, out) == 1)
		return sizeof(struct in_addr);
	memcpy(out, host, len);
	return len;
}

uint32_t mst_callers_group(const struct mst_callers *c, const char *peer)
{
	unsigned char address[HOST_LEN];
	size_t len = address_of(peer, address);
	uint64_t mixed = c->seed;

	for (size_t i = 0; i < len; i++) {
		mixed = (mixed ^ address[i]) * UINT64_C(0x9e3779b97f4a7c15);
		mixed ^= mixed >> 29;
	}
	return (uint32_t)(mixed >> 32) % MST_CALLERS_GROUPS;
}

/* The oldest of @group, or of all if it is MST_CALLERS_NONE. */
static uint32_t oldest(const struct mst_callers *c, uint32_t group)
{
	uint32_t found = MST_CALLERS_NONE;

	for (uint32_t i = 0; i < c->max; i++) {
		if (!c->place[i].taken || (group != MST_CALLERS_NONE && c->place[i].group != group))
			continue;
		if (found == MST_CALLERS_NONE || c->place[i].since_ns < c->place[found].since_ns)
			found = i;
	}
	return found;
}

static uint32_t largest_group(const struct mst_callers *c)
{
	uint32_t found = 0;

	for (uint32_t g = 1; g < MST_CALLERS_GROUPS; g++)
		if (c->of_group[g] > c->of_group[found])
			found = g;
	return found;
}

bool mst_callers_room(const struct mst_callers *c, uint32_t group, uint64_t now_ns, uint32_t *goes)
{
	*goes = MST_CALLERS_NONE;
	if (c->of_group[group] >= c->max_of_group)
		*goes = oldest(c, group);
	else if (c->count >= c->max)
		*goes = oldest(c, largest_group(c));
	return *goes == MST_CALLERS_NONE || now_ns - c->place[*goes].since_ns >= c->moment_ns;
}

uint32_t mst_callers_enter(struct mst_callers *c, uint32_t group, uint64_t now_ns)
{
	uint32_t i = 0;

	MST_ASSERT(c->count < c->max);
	while (c->place[i].taken)
		i++;
	c->place[i] = (struct mst_caller_place){ .taken = true,
						 .group = group,
						 .since_ns = now_ns };
	c->count++;
	c->of_group[group]++;
	return i;
}

void mst_callers_leave(struct mst_callers *c, uint32_t place)
{
	MST_ASSERT(c->place[place].taken);
	c->place[place].taken = false;
	c->count--;
	c->of_group[c->place[place].group]--;
}

bool mst_callers_precedes(const struct mst_callers *c, uint32_t place, uint32_t other)
{
	const struct mst_caller_place *p = &c->place[place], *o = &c->place[other];
	uint32_t crowd = c->of_group[p->group], others = c->of_group[o->group];

	return crowd != others ? crowd < others : p->since_ns > o->since_ns;
}
