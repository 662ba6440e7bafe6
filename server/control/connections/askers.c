/* SPDX-License-Identifier: MIT */
#include "server/control/connections/askers.h"

#include <string.h>

#include "server/control/connections/roles.h"

static struct mst_conn *next_watcher(const struct mst_places *p, uint32_t *i)
{
	return mst_places_next(p, &p->of_role[MST_CONN_WATCHER], i);
}

/* How far a peer's ask goes before those of others. */
enum asker_standing {
	ANYBODY, /* has proven nothing, or to be a member of the job */
	OBSERVER,
	OPERATOR,
};

static enum asker_standing standing_of(const struct mst_conn *c)
{
	if (c->asks_changes || mst_roles_is_operator(c))
		return OPERATOR;
	return mst_roles_is_observer(c) ? OBSERVER : ANYBODY;
}

/* The length of the host in "HOST:PORT". */
static size_t host_length(const struct mst_conn *c)
{
	const char *colon = strrchr(c->peer, ':');

	return colon != NULL ? (size_t)(colon - c->peer) : strlen(c->peer);
}

static bool are_of_one_host(const struct mst_conn *a, const struct mst_conn *b)
{
	size_t length = host_length(a);

	return length == host_length(b) && memcmp(a->peer, b->peer, length) == 0;
}

/* How many watchers of the host of @c have this standing. */
static uint32_t count_of_host(const struct mst_places *p, const struct mst_conn *c,
			      enum asker_standing standing)
{
	const struct mst_conn *other;
	uint32_t count = 0;

	for (uint32_t i = 0; (other = next_watcher(p, &i)) != NULL;)
		count += standing_of(other) == standing && are_of_one_host(c, other);
	return count;
}

/* Takes the host that has most watchers of this standing, and at least @least.
 * Return: the one of them that has been silent longest. */
static struct mst_conn *of_largest_host(const struct mst_places *p, enum asker_standing standing,
					uint32_t least)
{
	struct mst_conn *other, *found = NULL;

	for (uint32_t i = 0; (other = next_watcher(p, &i)) != NULL;) {
		if (standing_of(other) != standing)
			continue;
		uint32_t count = count_of_host(p, other, standing);
		if (count < least ||
		    (count == least && found != NULL && !mst_conn_is_older(other, found)))
			continue;
		least = count;
		found = other;
	}
	return found;
}

static struct mst_conn *oldest(const struct mst_places *p)
{
	struct mst_conn *other, *found = NULL;

	for (uint32_t i = 0; (other = next_watcher(p, &i)) != NULL;) {
		if (found == NULL || mst_conn_is_older(other, found))
			found = other;
	}
	return found;
}

struct mst_conn *mst_askers_yield(const struct mst_places *p, const struct mst_conn *c)
{
	enum asker_standing own = standing_of(c);

	if (own == ANYBODY)
		return of_largest_host(p, ANYBODY, count_of_host(p, c, ANYBODY) + 2);
	struct mst_conn *found = of_largest_host(p, ANYBODY, 1);
	if (found == NULL)
		found = of_largest_host(p, OBSERVER, 1);
	return found != NULL || own == OBSERVER ? found : oldest(p);
}
