/* SPDX-License-Identifier: MIT */
/*
 * Which callers of a TLS listener are kept while they have not proven who they are: so many in all,
 * and so many of one address (of IPv6, of one network of 64 bits). If there is no room, the oldest
 * goes of the address that has the most. But none goes before it has had a moment for its proof, so
 * that many honest callers at once do not drive each other out; until then the newest is turned
 * away, and may call again. Decides only; time is an argument. For one thread.
 */
#ifndef MST_TRANSPORT_TLS_CALLERS_H
#define MST_TRANSPORT_TLS_CALLERS_H

#include <stdbool.h>
#include <stdint.h>

#define MST_CALLERS_NONE UINT32_MAX
/* Addresses share a group if there are more of them, or by chance. */
#define MST_CALLERS_GROUPS 4096u

struct mst_callers {
	uint32_t max, max_of_group;
	uint64_t moment_ns; /* what each caller has */
	uint64_t seed;      /* of the groups: nobody can choose an address that shares another's */
	/* Zeroed: */
	uint32_t count;
	struct mst_caller_place {
		bool taken;
		uint32_t group;
		uint64_t since_ns;
	} * place; /* [max], the owner's */
	uint32_t of_group[MST_CALLERS_GROUPS];
};

/* The group of an address such as "10.0.0.1:1234" or "[fe80::1]:1234". */
uint32_t mst_callers_group(const struct mst_callers *c, const char *peer);

/* @goes: the caller that a new one of @group drives out; MST_CALLERS_NONE: none.
 * Return: false: there is no room now. */
bool mst_callers_room(const struct mst_callers *c, uint32_t group, uint64_t now_ns, uint32_t *goes);
/* There is room. Return: the place. */
uint32_t mst_callers_enter(struct mst_callers *c, uint32_t group, uint64_t now_ns);
void mst_callers_leave(struct mst_callers *c, uint32_t place);
/* Is @place served before @other? Callers of the address that has fewer are; of those, the newest:
 * an honest caller does not wait for a crowd, neither at another address nor at its own. */
bool mst_callers_precedes(const struct mst_callers *c, uint32_t place, uint32_t other);

#endif
