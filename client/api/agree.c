/* SPDX-License-Identifier: MIT */
/* The call muster_agree(): workers agree on the state that they begin with. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/api/reply.h"
#include "client/local/parts.h"
#include "client/local/sized.h"

/* ---- what the program says ---- */

static int check_claim(struct muster *m, const struct muster_claim *mine)
{
	if (m->session.job.owner != MUSTER_WORKERS_OWN)
		return mst_reason_fail(&m->failure, -EINVAL,
				       "muster_agree() is for jobs whose workers own the "
				       "parameters (musterd --owner workers)");
	if (mine->part_count == 0)
		return mst_reason_fail(&m->failure, -EINVAL,
				       "muster_agree() needs 1 to %u parts of a state",
				       MUSTER_PARTS_MAX);
	return mst_parts_check(&m->failure, "muster_agree()", mine->parts, mine->part_count);
}

static int check_state(struct muster *m, const void *state, size_t bytes)
{
	if ((state == NULL) != (bytes == 0))
		return mst_reason_fail(&m->failure, -EINVAL,
				       "muster_agree() needs a state of %zu bytes", bytes);
	if (bytes > m->session.welcome.state_max)
		return mst_reason_fail(&m->failure, -EMSGSIZE,
				       "rank %" PRIu32 ": a state of %zu bytes is larger than the "
				       "server takes, %" PRIu64 ": raise musterd --state-max",
				       m->session.job.rank, bytes, m->session.welcome.state_max);
	if (m->worker.headers > 0 && !m->agreeing.claimed)
		return mst_reason_fail(&m->failure, -EINVAL,
				       "muster_agree() comes before the first push");
	return 0;
}

/* ---- what goes ---- */

static int claim(struct muster *m, const struct muster_claim *mine)
{
	if (m->agreeing.claimed)
		return 0;
	struct mst_message *msg = calloc(1, sizeof(*msg));
	if (msg == NULL)
		return mst_reason_fail(&m->failure, -ENOMEM, "no memory for a message");
	msg->kind = MST_MSG_CLAIM;
	msg->claim.version = mine->version;
	msg->claim.count = (uint32_t)mine->part_count;
	mst_parts_fill(mine->parts, mine->part_count, msg->claim.part);
	m->agreeing.claimed = mst_client_session_tell(&m->session, msg) == 0;
	free(msg);
	return 0;
}

/* The connection sends it by itself. */
static int give(struct muster *m, const void *state, size_t bytes)
{
	struct mst_gift gift = { .data = malloc(bytes),
				 .bytes = bytes,
				 .number = MST_AGREED_GIFT,
				 .version = m->worker.given };

	if (gift.data == NULL)
		return mst_reason_fail(&m->failure, -ENOMEM,
				       "no memory for a copy of a state of %zu bytes", bytes);
	memcpy(gift.data, state, bytes);
	m->agreeing.gave = mst_client_session_give(&m->session, &gift) == 0;
	if (!m->agreeing.gave) /* a state for a worker that comes back is still being sent */
		free(gift.data);
	return 0;
}

/* ---- what comes ---- */

static const struct mst_sized sized_claim = { "claim", "MUSTER_CLAIM",
					      sizeof(struct muster_claim) };
static const struct mst_sized sized_agreement = { "agreement", "MUSTER_AGREEMENT",
						  sizeof(struct muster_agreement) };

static void tell(struct muster *m, bool wants, struct muster_agreement *out)
{
	struct mst_agree *told = &m->agreeing.told;
	struct muster_agreement agreement;

	*told = m->session.told.agree; /* in memory that stays */
	agreement = (struct muster_agreement){ .state = m->agreeing.taken.data,
					       .state_bytes = m->agreeing.taken.bytes,
					       .why = told->why,
					       .version = told->version,
					       .from = told->from,
					       .give = wants,
					       .kernels_differ = told->kernels != 0 };
	mst_sized_write(&sized_agreement, &agreement, out);
}

/* Has all come that the leader has told this worker of? */
static bool is_settled(struct muster *m)
{
	const struct mst_told *told = &m->session.told;
	struct mst_gift *taken = &m->agreeing.taken;

	if (!told->agrees || told->agree.what == MST_AGREE_GIVE)
		return false;
	if (told->agree.what == MST_AGREE_DONE || taken->data != NULL)
		return true;
	return mst_control_claim(m->session.control, MST_AGREED_GIFT, taken);
}

/* Can nothing more come of it, for the job has ended? */
static int look_at_end(struct muster *m)
{
	const struct mst_told *told = &m->session.told;
	bool takes = told->agrees && told->agree.what == MST_AGREE_TAKE;

	if (!told->finished || (takes && !told->closed))
		return 0;
	return mst_reason_fail(&m->failure, -ESHUTDOWN,
			       "rank %" PRIu32
			       ": the job has ended before this worker had the state "
			       "that all others have begun with: %s",
			       m->session.job.rank, told->reason.text);
}

/* ---- the wait ---- */

/* How it may end well. */
enum {
	SETTLED = 1,
	WANTED, /* the state of this worker */
};

/* What this worker has. */
struct offer {
	const struct muster_claim *claim;
	const void *state; /* NULL: not this time */
	size_t bytes;
};

static int look(struct muster *m, void *ctx)
{
	int rc = mst_engine_update(&m->engine);

	(void)ctx;
	if (rc != 0)
		return rc;
	return is_settled(m) ? SETTLED : look_at_end(m);
}

static int say(struct muster *m, void *ctx)
{
	const struct mst_told *told = &m->session.told;
	const struct offer *mine = ctx;
	int rc = claim(m, mine->claim);

	if (rc != 0 || !told->agrees || told->agree.what != MST_AGREE_GIVE || m->agreeing.gave)
		return rc;
	return mine->state != NULL ? give(m, mine->state, mine->bytes) : WANTED;
}

/* Return: 0; 1 the state of this worker is wanted; or an error with its sentence. */
static int await(struct muster *m, struct offer *mine)
{
	const struct mst_reply reply = {
		.ctx = mine,
		.look = look,
		.tell = say,
		.late = "not all workers have said which state they begin with (muster status "
			"tells who is there); call muster_agree() again",
	};
	int rc = mst_reply_await(m, &reply);

	return rc < 0 ? rc : rc == WANTED;
}

int muster_agree(struct muster *m, const struct muster_claim *mine, const void *state,
		 size_t state_bytes, struct muster_agreement *out)
{
	struct muster_claim claimed = MUSTER_CLAIM;
	struct offer offered = { &claimed, state, state_bytes };
	int rc = mst_handle_enter(m, -EINVAL, "muster_agree()");

	if (rc < 0)
		return rc;
	if (mine == NULL || out == NULL)
		return mst_reason_fail(
			&m->failure, -EINVAL,
			"muster_agree() needs a claim, and an agreement to write to");
	bool over = rc == MST_ENTRY_OVER; /* nobody begins any more */
	rc = mst_sized_read(&sized_claim, mine, &claimed, &m->failure);
	if (rc == 0)
		rc = mst_sized_check(&sized_agreement, out, &m->failure);
	if (rc == 0)
		rc = check_claim(m, &claimed);
	if (rc == 0)
		rc = check_state(m, state, state_bytes);
	if (rc == 0)
		rc = over ? 0 : await(m, &offered);
	mst_hint_publish(&m->hint);
	if (rc == 0 || rc == 1)
		tell(m, rc == 1, out);
	return rc;
}

void mst_agreeing_let_go(struct mst_agreeing *a)
{
	free(a->taken.data);
	a->taken = (struct mst_gift){ .data = NULL };
}
