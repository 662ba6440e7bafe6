/* SPDX-License-Identifier: MIT */
#include "server/control/connections/places.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "server/control/connections/roles.h"

static uint32_t index_of(const struct mst_places *p, const struct mst_conn *c)
{
	return (uint32_t)(c - p->conn);
}

/* ---- beginning and end ---- */

int mst_places_init(struct mst_places *p, uint32_t max, uint32_t workers)
{
	*p = (struct mst_places){ .max = max, .workers = workers };
	p->conn = calloc(max, sizeof(*p->conn));
	p->of_rank = calloc((size_t)workers + 1, sizeof(*p->of_rank));
	int rc = p->conn == NULL || p->of_rank == NULL ? -ENOMEM : 0;
	if (rc == 0)
		rc = mst_ranks_init(&p->free, max);
	if (rc == 0)
		rc = mst_ranks_init(&p->ready, max);
	for (int role = 0; role < MST_CONN_ROLES && rc == 0; role++)
		rc = mst_ranks_init(&p->of_role[role], max);
	for (uint32_t i = 0; i < max && rc == 0; i++)
		mst_ranks_add(&p->free, i);
	return rc;
}

uint64_t mst_places_bytes(uint32_t max, uint32_t workers)
{
	return max * (uint64_t)sizeof(struct mst_conn) +
	       (workers + UINT64_C(1)) * sizeof(uint32_t) +
	       (MST_CONN_ROLES + 2) * mst_ranks_bytes(max);
}

void mst_places_fini(struct mst_places *p)
{
	for (uint32_t i = 0; p->conn != NULL && i < p->max; i++)
		mst_conn_close(&p->conn[i]);
	for (int role = 0; role < MST_CONN_ROLES; role++)
		mst_ranks_fini(&p->of_role[role]);
	mst_ranks_fini(&p->free);
	mst_ranks_fini(&p->ready);
	free(p->of_rank);
	free(p->conn);
	*p = (struct mst_places){ 0 };
}

/* ---- entries ---- */

struct mst_conn *mst_places_free(const struct mst_places *p)
{
	uint32_t i = mst_ranks_first(&p->free);

	return i != MST_RANK_NONE ? &p->conn[i] : NULL;
}

void mst_places_open(struct mst_places *p, struct mst_conn *c, const struct mst_stream_ops *ops,
		     struct mst_stream *stream, uint64_t id)
{
	MST_ASSERT(c->stream == NULL);
	mst_conn_open(c, ops, stream, id);
	mst_ranks_remove(&p->free, index_of(p, c));
	mst_ranks_add(&p->of_role[c->role], index_of(p, c));
	mst_places_note(p, c);
}

void mst_places_close(struct mst_places *p, struct mst_conn *c)
{
	if (c->stream == NULL)
		return;
	mst_ranks_remove(&p->of_role[c->role], index_of(p, c));
	mst_ranks_remove(&p->ready, index_of(p, c));
	mst_ranks_add(&p->free, index_of(p, c));
	mst_conn_close(c);
}

/* ---- what is noted of connections ---- */

bool mst_places_enter(struct mst_places *p, struct mst_conn *c, enum mst_conn_event event)
{
	enum mst_conn_role before = c->role;

	if (!mst_conn_enter(&c->role, event))
		return false;
	mst_ranks_remove(&p->of_role[before], index_of(p, c));
	mst_ranks_add(&p->of_role[c->role], index_of(p, c));
	mst_places_note(p, c);
	return true;
}

bool mst_places_admit(struct mst_places *p, struct mst_conn *c, struct mst_identity who)
{
	MST_ASSERT(who.rank < p->workers);
	if (!mst_places_enter(p, c, MST_CONN_ADMIT))
		return false;
	c->who = who;
	p->of_rank[who.rank] = index_of(p, c);
	return true;
}

/* What is queued for a closing connection may have been sent since the last step. Nothing reports
 * that a stream without a descriptor is readable, so each step has to look. */
static bool has_something(const struct mst_conn *c)
{
	return c->readable || c->waits || c->paused || c->role == MST_CONN_CLOSING ||
	       c->ops->stream_fd(c->stream) < 0;
}

void mst_places_note(struct mst_places *p, const struct mst_conn *c)
{
	if (has_something(c))
		mst_ranks_add(&p->ready, index_of(p, c));
	else
		mst_ranks_remove(&p->ready, index_of(p, c));
}

/* ---- looking for one ---- */

struct mst_conn *mst_places_of_worker(const struct mst_places *p, struct mst_identity who)
{
	if (who.rank >= p->workers)
		return NULL;
	struct mst_conn *c = &p->conn[p->of_rank[who.rank]];
	bool is_its = c->role == MST_CONN_WORKER && c->who.rank == who.rank &&
		      c->who.incarnation == who.incarnation;
	return is_its ? c : NULL;
}

struct mst_conn *mst_places_next(const struct mst_places *p, const struct mst_ranks *set,
				 uint32_t *i)
{
	uint32_t found = mst_ranks_next(set, *i);

	if (found == MST_RANK_NONE)
		return NULL;
	*i = found + 1;
	return &p->conn[found];
}

/* ---- who gives its place to another ---- */

static struct mst_conn *next_watcher(const struct mst_places *p, uint32_t *i)
{
	return mst_places_next(p, &p->of_role[MST_CONN_WATCHER], i);
}

/* How far a peer's ask goes before those of others. */
enum requester_standing {
	ANYBODY, /* has proven nothing, or to be a member of the job */
	OBSERVER,
	OPERATOR,
};

static enum requester_standing standing_of(const struct mst_conn *c)
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
			      enum requester_standing standing)
{
	const struct mst_conn *other;
	uint32_t count = 0;

	for (uint32_t i = 0; (other = next_watcher(p, &i)) != NULL;)
		count += standing_of(other) == standing && are_of_one_host(c, other);
	return count;
}

/* Takes the host that has most watchers of this standing, and at least @least.
 * Return: the one of them that has been silent longest. */
static struct mst_conn *of_largest_host(const struct mst_places *p,
					enum requester_standing standing, uint32_t least)
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

struct mst_conn *mst_places_yield(const struct mst_places *p, const struct mst_conn *c)
{
	enum requester_standing own = standing_of(c);

	if (own == ANYBODY)
		return of_largest_host(p, ANYBODY, count_of_host(p, c, ANYBODY) + 2);
	struct mst_conn *found = of_largest_host(p, ANYBODY, 1);
	if (found == NULL)
		found = of_largest_host(p, OBSERVER, 1);
	return found != NULL || own == OBSERVER ? found : oldest(p);
}
