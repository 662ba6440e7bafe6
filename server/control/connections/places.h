/* SPDX-License-Identifier: MIT */
/*
 * The places of a server's control connections: a table of entries, and sets of their indices. The
 * sets say which entries are free, which connections have a role, and for which of them there is
 * something to do. So a step of the frontend looks only at connections that have something, and not
 * at thousands of workers that compute. All searches go through the table in the same order.
 */
#ifndef MST_SERVER_CONTROL_CONNECTIONS_PLACES_H
#define MST_SERVER_CONTROL_CONNECTIONS_PLACES_H

#include "server/control/connections/conn.h"
#include "server/core/ranks.h"

struct mst_places {
	struct mst_conn *conn;
	uint32_t max;
	uint32_t *of_rank; /* the entry of the connection that this rank was admitted on last */
	uint32_t workers;
	/* Sets of indices of entries: */
	struct mst_ranks free;
	struct mst_ranks of_role[MST_CONN_ROLES];
	struct mst_ranks ready; /* mst_places_note() has found something to do */
};

/* @max: entries. @workers: ranks that may be admitted; 0: none.
 * Return: 0 or -ENOMEM; then mst_places_fini() frees what has been made. */
int mst_places_init(struct mst_places *p, uint32_t max, uint32_t workers);
uint64_t mst_places_bytes(uint32_t max, uint32_t workers); /* that mst_places_init() allocates */
/* Closes all connections. Accepts zeroed memory. */
void mst_places_fini(struct mst_places *p);

/* The first free entry, which stays free until mst_places_open(); NULL: there is none. */
struct mst_conn *mst_places_free(const struct mst_places *p);
/* Opens a connection in the free entry @c. */
void mst_places_open(struct mst_places *p, struct mst_conn *c, const struct mst_stream_ops *ops,
		     struct mst_stream *stream, uint64_t id);
/* Closes the connection, and frees its entry. */
void mst_places_close(struct mst_places *p, struct mst_conn *c);

/* Changes the role of a connection.
 * Return: false: such a change cannot be (mst_conn_enter()). */
bool mst_places_enter(struct mst_places *p, struct mst_conn *c, enum mst_conn_event event);
/* Makes the worker's connection the one that mst_places_of_worker() finds. */
bool mst_places_admit(struct mst_places *p, struct mst_conn *c, struct mst_identity who);
/* Notes whether there is something to do for @c. To be called after c->readable, c->waits or
 * c->paused has changed. */
void mst_places_note(struct mst_places *p, const struct mst_conn *c);

static inline bool mst_places_is_ready(const struct mst_places *p, const struct mst_conn *c)
{
	return mst_ranks_has(&p->ready, (uint32_t)(c - p->conn));
}

static inline uint32_t mst_places_count(const struct mst_places *p, enum mst_conn_role role)
{
	return p->of_role[role].count;
}
/* The worker's connection of this session, or NULL. */
struct mst_conn *mst_places_of_worker(const struct mst_places *p, struct mst_identity who);
/* The next connection in @set from entry *@i on, or NULL:
 *     for (uint32_t i = 0; (c = mst_places_next(p, &p->ready, &i)) != NULL;) */
struct mst_conn *mst_places_next(const struct mst_places *p, const struct mst_ranks *set,
				 uint32_t *i);

/*
 * mst_places_yield() chooses the watcher that gives its place to another peer when all places are
 * taken. Pure.
 *
 * With certificates, an operator always finds a place, and so does an observer, unless operators
 * have all of them. Without certificates nobody proves anything: there a peer that has asked for a
 * change of the job, which only an operator may, is taken for one.
 */
/* The watcher that gives its place to @c. To an operator or an observer it is one that is neither,
 * or else an observer; in both cases the one that has been silent longest of the host that has most
 * of them. To an operator, if there are only operators, it is the one of them that has been silent
 * longest. To another peer it is one that is neither, of a host that has at least two places more
 * than the host of @c.
 * Return: NULL: nobody does. */
struct mst_conn *mst_places_yield(const struct mst_places *p, const struct mst_conn *c);

#endif
