/* SPDX-License-Identifier: MIT */
/*
 * The progress engine of a handle: it takes in what has come on the control connection and on the
 * links, notices when the session has ended, and sleeps until more may have come. All
 * waiting of the library is done here. Every sleep has an end, and every end has a sentence.
 */
#ifndef MST_CLIENT_SESSION_ENGINE_H
#define MST_CLIENT_SESSION_ENGINE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "client/core/worker.h"
#include "client/local/readers.h"
#include "client/session/control.h"
#include "client/session/end_cause.h"
#include "client/session/inbound.h"
#include "client/session/session.h"

/* What muster_check() reads, which any thread may call at any moment: words that the handle's
 * thread publishes, and the preemption hint that the leader puts. Each word stands for itself. */
struct mst_hint {
	const struct mst_worker *worker;
	const struct mst_control *control;
	const _Atomic uint64_t *word; /* as mst_hint_word() makes it */

	_Atomic uint64_t computes_on; /* version */
	_Atomic bool over;
	struct mst_readers *readers; /* of what the first three point to */
};

/* From now on nobody reads what the hint points to, until it is published again: the session is
 * replaced. */
void mst_hint_suspend(struct mst_hint *h);

/* The worker has changed: other threads may learn of it. */
void mst_hint_publish(struct mst_hint *h);
/* From now on there is nothing but to give up. Takes no lock; any thread. */
void mst_hint_end(struct mst_hint *h);
/* Any thread. */
enum muster_hint mst_hint_read(const struct mst_hint *h);

struct mst_engine {
	uint64_t last_words_ns; /* MST_LAST_WORDS_NS */
	struct mst_client_session *session;
	struct mst_links *links;
	struct mst_inbound *inbound;
	struct mst_worker *worker;
	struct mst_hint *hint;
	struct mst_reason *failure;

	struct mst_end_cause *cause; /* of the end, once the session has ended */
	_Atomic bool woken;          /* by mst_engine_wake(); no wait has returned for it yet */
};

/* Takes in all that has arrived. Never blocks, allocates or locks, unless the leader has just said
 * something on the control connection, or the session has ended. 0, or the error that ended the
 * session, with its sentence as far as it is known now. */
int mst_engine_take(struct mst_engine *e);
/* The same for calls of the user's: the first that finds the session ended gives the leader a
 * moment to say why. */
int mst_engine_update(struct mst_engine *e);

/* A link has refused a put: the session has ended. Return: as mst_engine_update(). */
int mst_engine_refused(struct mst_engine *e);
/* Ends the session from this side, unless it has ended already. The sentence is the caller's. */
void mst_engine_fail(struct mst_engine *e, int error);
/* Before the caller hears that the session has ended for good: from now on nothing is written to
 * memory of the program's own. Of what links were sending nothing comes back by itself then. */
void mst_engine_withdraw(struct mst_engine *e);

/* Sleeps until something may have changed. 0; -ETIMEDOUT, and -EINTR where a signal's handler
 * has run, without a sentence. */
int mst_engine_sleep(struct mst_engine *e, uint64_t deadline_ns);

/* Any thread: ends the present or the next wait of the handle's thread. */
void mst_engine_wake(struct mst_engine *e);
/* Must a wait end that has not found anything? @slept: what its last sleep returned. 0, or -EINTR
 * with its sentence. */
int mst_engine_interrupted(struct mst_engine *e, int slept);

/* What a wait knows of its servers; zero where it begins. */
struct mst_engine_watch {
	uint64_t began_ns, next_ns;
	bool goes_on; /* the wait cannot be repeated by the caller: never -ETIMEDOUT */
};
/* To be called before a wait sleeps. 0; -ETIMEDOUT with its sentence: a server has been silent
 * for a lease, and this wait has lasted as long; or the error that has ended the session because a
 * server has been silent for the lease of servers. */
int mst_engine_watch(struct mst_engine *e, struct mst_engine_watch *w);

/* The job has ended well. Why nothing can come any more that a wait still misses; 0: it can come,
 * or the job has not ended; 1: nothing is missed now. */
int mst_engine_cut_off(struct mst_engine *e);
/* The job has ended well, and its last version cannot come any more. Return: -ENOTCONN. */
int mst_engine_missed_end(struct mst_engine *e);

#endif
