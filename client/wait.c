/* SPDX-License-Identifier: MIT */
/* Waiting: muster_wait(), and what muster_start() and muster_close() wait with. Every sleep has an
 * end, and every end a sentence. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/client.h"
#include "common/base/clock.h"

/* A sleep ends after so long to look again, whatever was promised. */
#define NAP_NS MST_SECOND
/* The link tells of an end faster than the control connection tells why. */
#define LAST_WORDS_NS (500 * MST_MS)
/* And now and then it is the other way round. */
#define LINK_WORDS_NS (100 * MST_MS)

/* A struct larger than this is one whose size nobody has set. */
#define OUTCOME_BYTES_MAX 4096u

uint64_t mst_client_deadline(uint64_t timeout_ns)
{
	uint64_t now_ns = mst_now_ns();

	return timeout_ns < MST_NEVER - now_ns ? now_ns + timeout_ns : MST_NEVER;
}

uint64_t mst_client_left_ns(uint64_t deadline_ns)
{
	uint64_t now_ns = mst_now_ns();

	return now_ns < deadline_ns ? deadline_ns - now_ns : 0;
}

int mst_client_sleep(struct muster *m, uint64_t deadline_ns)
{
	uint64_t now_ns = mst_now_ns();

	if (now_ns >= deadline_ns)
		return -ETIMEDOUT;
	uint64_t left_ns = deadline_ns - now_ns;
	return m->transport->wait(m->net, left_ns < NAP_NS ? left_ns : NAP_NS);
}

int mst_client_learn_why(struct muster *m)
{
	uint64_t deadline_ns = mst_client_deadline(LAST_WORDS_NS);

	while (m->told.error == 0 && !m->learned_why &&
	       mst_client_sleep(m, deadline_ns) != -ETIMEDOUT)
		(void)mst_client_update(m);
	m->learned_why = true;
	return mst_client_ended(m);
}

/* Is a link lost on which an answer was still to come? */
static bool misses_part(const struct muster *m)
{
	for (uint32_t k = 0; k < m->part_count; k++)
		if (m->part[k].lost && !mst_worker_has_part(&m->worker, k))
			return true;
	return false;
}

/* The control connection may be closed before all that a server has put is here. */
static void hear_links_out(struct muster *m)
{
	uint64_t deadline_ns = mst_client_deadline(LINK_WORDS_NS);

	while (!misses_part(m) && m->worker.phase != MST_WORKER_FAILED &&
	       mst_worker_misses(&m->worker) != 0 && mst_client_sleep(m, deadline_ns) != -ETIMEDOUT)
		(void)mst_client_update(m);
}

int mst_client_cut_off(struct muster *m)
{
	bool ended = m->told.finished || m->worker.last != MST_VERSION_NONE;

	if (!ended || (!misses_part(m) && !m->told.closed))
		return 0;
	hear_links_out(m);
	if (m->worker.phase == MST_WORKER_FAILED)
		return mst_client_ended(m);
	if (mst_worker_misses(&m->worker) == 0)
		return 1;
	return mst_client_fail(m, -ENOTCONN,
			       "rank %" PRIu32 ": the job has ended (%.300s), and its server "
			       "is gone before this worker had the last version",
			       m->job.rank, m->told.sentence);
}

/* ---- outcomes ---- */

/* Which fields the caller's struct has. One whose size was never set is of this first release. */
static size_t size_of(const struct muster_outcome *out)
{
	bool set = out->size >= sizeof(*out) && out->size <= OUTCOME_BYTES_MAX;

	return set ? out->size : sizeof(*out);
}

int mst_client_give(struct muster *m, struct muster_outcome *out)
{
	struct muster_outcome outcome;
	size_t size = size_of(out);
	int more = mst_worker_take(&m->worker, &outcome);

	outcome.size = size;
	outcome.result = mst_client_result(m);
	memcpy(out, &outcome, size < sizeof(outcome) ? size : sizeof(outcome));
	mst_client_publish(m);
	return more;
}

/* ---- muster_wait() ---- */

static int time_is_over(struct muster *m)
{
	unsigned misses = mst_worker_misses(&m->worker);

	return mst_client_fail(m, -ETIMEDOUT,
			       "rank %" PRIu32 ": after %.3g s there is still missing:%s%s%s%s; "
			       "nothing is lost, wait again",
			       m->job.rank, (double)m->wait_ns / (double)MST_SECOND,
			       misses & MST_MISSES_ANSWER ? " an answer" : "",
			       misses & MST_MISSES_VERDICT ? " a verdict" : "",
			       misses & MST_MISSES_SLOT ? " a free gradient buffer" : "",
			       misses & MST_MISSES_END ? " the end of the job" : "");
}

static int await_outcome(struct muster *m, uint64_t deadline_ns)
{
	struct mst_lane_ask ask;
	int slept = 0;

	for (;;) {
		int rc = mst_client_update(m);
		if (rc != 0)
			return mst_client_learn_why(m);
		if (mst_worker_misses(&m->worker) == 0)
			return 0;
		if (slept == -ETIMEDOUT)
			return time_is_over(m);
		if (slept == -EINTR)
			return mst_client_fail(m, -EINTR,
					       "a signal ended the wait; nothing is lost");
		if (mst_worker_wait_asks(&m->worker, &ask)) {
			rc = mst_client_send_ask(m, &ask);
			if (rc != 0)
				return mst_client_learn_why(m);
		}
		rc = mst_client_cut_off(m);
		if (rc < 0)
			return rc;
		if (rc > 0)
			continue;
		slept = mst_client_sleep(m, deadline_ns);
	}
}

int muster_wait(struct muster *m, struct muster_outcome *out)
{
	if (out == NULL)
		return mst_client_fail(m, -EINVAL, "muster_wait() needs an outcome to write to");
	if (m->worker.phase == MST_WORKER_OVER)
		return mst_client_give(m, out);
	if (m->worker.phase < MST_WORKER_WORKING)
		return mst_client_fail(m, -EINVAL, "call muster_start() before muster_wait()");
	int rc = await_outcome(m, mst_client_deadline(m->wait_ns));
	return rc != 0 ? rc : mst_client_give(m, out);
}
