/* SPDX-License-Identifier: MIT */
/*
 * The whole system in one process: control plane, data side and workers, each a thread. So the
 * sanitizers see every access of both sides to slots and results.
 */
#ifndef MST_TESTS_SYSTEM_TOWN_H
#define MST_TESTS_SYSTEM_TOWN_H

#include <pthread.h>
#include <stdatomic.h>

#include "common/transport/transport.h"
#include "muster/muster.h"
#include "server/admin.h"
#include "server/crew.h"

#define TOWN_ELEMS 9000u /* enough for two shards, with a thread each */
#define TOWN_WORKERS 4u

struct town {
	struct mst_server_options options;
	struct mst_options parsed;
	struct mst_admin *admin;
	pthread_t control;
	struct mst_crew *crew;
	struct mst_server *server;
	int over;
};

/* A server for TOWN_WORKERS workers. @settings: pairs of name and value, then NULL. */
void town_open(struct town *t, const struct mst_transport *transport, const char *const *settings);
/* Waits until the job is over, as `over` then says, and everybody gone. */
void town_close(struct town *t);

/* A worker: pushes what only depends on rank and tag, and keeps account of its tickets. */
struct citizen {
	const struct town *town;
	uint32_t rank;
	enum muster_owner owner;
	uint64_t pushed, verdicts, wrong, versions;
	int rc;
	char sentence[512]; /* of a failure */
};

/* What rank pushes as its element i, computed on version @tag. */
float citizen_value(uint32_t rank, uint64_t tag, uint64_t i);
struct muster_options citizen_options(const struct citizen *c);
/* Takes an outcome's verdict and version to account; where workers own, its result must be the mean
 * over its set, all of whose members computed on the version before. */
void citizen_note(struct citizen *c, const struct muster_outcome *out);
/* Offers a start state where the servers own. */
int citizen_start(const struct citizen *c, struct muster *m, struct muster_outcome *out);
/* Takes all outcomes that are ready. 0, or what muster_wait() failed with. */
int citizen_wait(struct citizen *c, struct muster *m, struct muster_outcome *out);
/* A thread's life: opens, calls @live until the job is over, and closes. */
void citizen_live(struct citizen *c, int (*live)(struct citizen *c, struct muster *m));

/* Runs such threads to their ends: every rank lives as @main says. The job is over then. */
void town_live(struct town *t, struct citizen *c, void *(*main)(void *citizen));

#endif
