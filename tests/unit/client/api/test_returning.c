/* SPDX-License-Identifier: MIT */
/* A handle that comes back to another server when one is lost (PROTOCOL 11). */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "client/api/handle.h"
#include "common/base/clock.h"
#include "tests/unit/client/client_case.h"
#include "tests/ut.h"

#define RUN "0123456789abcdef"
#define FIRST 7u /* ids of generations */
#define NEXT 9u

/* What the case wants of the leader, whose script reads it once `go` is set. */
static struct {
	bool with_word;       /* the session ends with MST_AGAIN, and not without a word */
	uint64_t patience_ns; /* --server-patience */
	uint32_t refusals;    /* so many hellos are refused first, */
	int refusal;          /* with this error */
	uint32_t losses;      /* so many further sessions are lost once they are welcomed */
	bool same_generation; /* the worker comes back into the one that runs */
	uint64_t began;       /* else: the version that the next one begins with, */
	uint64_t made;        /* by whom that was made, */
	bool counted;         /* and the worker is in it */
	bool changes;         /* the policy is changed before the session is lost, and after it */
} plan;
static struct mst_in_force welcomed_with; /* what the first welcome has */
static _Atomic bool go;                   /* the session is to be lost */
static _Atomic bool back;                 /* the next one may go on after START */
static _Atomic unsigned hellos;           /* that were said after the loss */
static struct mst_returning said;         /* in the last of them; read once `linked` is set */
static struct mst_start_offer offer;
static _Atomic bool linked;             /* START has been said in the next session */
static _Atomic uint64_t goal, finishes; /* what the next session was told */
static float bytes[FAKE_ELEMS];

static const struct mst_in_force change = { 4, 1, "backup:1" }, later = { 5, 0, "ksync:2" };

static bool await(const struct fake_leader *f, const _Atomic bool *word)
{
	while (!atomic_load(word) && !atomic_load(&f->released))
		mst_sleep_ns(MST_MS / 4);
	return !atomic_load(&f->released);
}

/* ---- the leader ---- */

static void welcome(struct fake_leader *f, uint32_t incarnation)
{
	struct mst_welcome *w = &f->welcome;

	w->incarnation = incarnation;
	w->owner = MUSTER_WORKERS_OWN;
	w->history = 4;
	w->server_patience_ns = plan.patience_ns;
	w->generation = (struct mst_generation){ .run = RUN, .number = 1, .id = FIRST };
}

/* The first answer is copied to the worker. */
static bool begin_first(struct fake_leader *f)
{
	struct mst_lane_answer a = { .number = 1, .where = MST_WHERE_COPIED };

	welcome(f, 1);
	f->welcome.in_force = welcomed_with;
	return fake_link(f) && fake_hear(f, MST_MSG_START) &&
	       fake_put(f, f->layout.down_result, bytes, sizeof(bytes), 0) && fake_answer(f, &a);
}

/* All that the worker says until it is to be lost. */
static bool lose_first(struct fake_leader *f)
{
	struct mst_message msg = { .kind = MST_MSG_IN_FORCE, .in_force = change };

	if (!begin_first(f) || !await(f, &go))
		return false;
	if (plan.changes && !fake_say(f, &msg))
		return false;
	if (plan.with_word && !fake_refuse(f, MST_AGAIN, "another server takes its place"))
		return false;
	return true;
}

static bool refuse_next(struct fake_leader *f)
{
	for (uint32_t i = 0; i < plan.refusals; i++) {
		if (!fake_next(f) || !fake_hear(f, MST_MSG_HELLO))
			return false;
		atomic_fetch_add(&hellos, 1);
		if (plan.refusal != 0 && !fake_refuse(f, plan.refusal, "these are the words"))
			return false;
	}
	return true;
}

static bool greet_next(struct fake_leader *f, uint32_t incarnation)
{
	struct mst_message msg = { .kind = MST_MSG_WELCOME };

	welcome(f, incarnation);
	f->welcome.in_force = (struct mst_in_force){ .number = 0 };
	if (!plan.same_generation)
		f->welcome.generation = (struct mst_generation){ .number = 0 };
	msg.welcome = f->welcome;
	if (plan.same_generation) {
		msg.welcome.verdict_count = 1;
		msg.welcome.verdict[0] = (struct muster_push_verdict){
			.incarnation = 1, .ticket = 1, .verdict = MUSTER_COUNTED, .counted_in = 1
		};
	}
	if (!fake_next(f) || !fake_hear(f, MST_MSG_HELLO))
		return false;
	said = f->message.hello.returning;
	atomic_fetch_add(&hellos, 1);
	return fake_say(f, &msg);
}

/* The worker has heard the welcome: then the session is lost, and not the try. */
static bool is_heard(const struct fake_leader *f)
{
	struct mst_reason why;

	while (!atomic_load(&f->released) &&
	       mst_reconnect_look(&client_handle->reconnect, &why) != MST_RECONNECT_WELCOMED)
		mst_sleep_ns(MST_MS / 4);
	return !atomic_load(&f->released);
}

/* The links of the last session have ended when the next is welcomed. */
static bool let_in_next(struct fake_leader *f)
{
	uint32_t incarnation = 2;

	for (uint32_t i = 0; i < plan.losses; i++) {
		if (!greet_next(f, incarnation++) || !is_heard(f))
			return false;
	}
	fake_unlink(f);
	return greet_next(f, incarnation) && fake_let_in(f) && fake_hear(f, MST_MSG_START);
}

static bool say_begins(struct fake_leader *f)
{
	struct mst_message msg = { .kind = MST_MSG_BEGINS };

	if (plan.same_generation)
		return true;
	msg.begins.generation = (struct mst_generation){ .run = RUN,
							 .number = 2,
							 .id = NEXT,
							 .began = plan.began,
							 .made = plan.began > 0 ? FIRST : 0 };
	if (plan.counted) {
		msg.begins.counted.count = 1;
		msg.begins.counted.row[0] = (struct mst_counted_row){ .version = plan.began,
								      .made = plan.made,
								      .count = 1 };
	}
	if (plan.changes) {
		msg.begins.in_force = later;
		(void)snprintf(msg.begins.policy, sizeof(msg.begins.policy), "%s", later.policy);
	}
	return fake_say(f, &msg);
}

static bool answer_next(struct fake_leader *f)
{
	uint64_t version = plan.same_generation ? 1 : plan.began;
	struct mst_lane_answer a = { .number = 1,
				     .version = version,
				     .newest = version,
				     .where = version > 0 ? MST_WHERE_COPIED : MST_WHERE_KEEP };

	return say_begins(f) && fake_answer(f, &a);
}

static bool come_back(struct fake_leader *f)
{
	if (!lose_first(f) || !refuse_next(f) || !let_in_next(f))
		return false;
	offer = f->message.start;
	atomic_store(&linked, true);
	return await(f, &back) && answer_next(f) && fake_stay(f);
}

/* It is lost, and takes connections without a word. */
static bool stay_away(struct fake_leader *f)
{
	return lose_first(f) && fake_next(f) && fake_stay(f);
}

/* The leader closes each connection that is made, as long as somebody comes. */
static bool hang_up_for_ever(struct fake_leader *f)
{
	if (!lose_first(f))
		return false;
	while (fake_next(f))
		atomic_fetch_add(&hellos, 1);
	return true;
}

/* It sends the new worker to another one for a state, as the next leader does. */
static bool send_for_a_state(struct fake_leader *f)
{
	struct mst_message behind = { .kind = MST_MSG_BEHIND };

	behind.number = 5;
	welcome(f, 1);
	if (!fake_link(f) || !fake_hear(f, MST_MSG_START) || !fake_say(f, &behind) ||
	    !await(f, &go) || !let_in_next(f) || !fake_say(f, &behind))
		return false;
	atomic_store(&linked, true);
	return fake_stay(f);
}

/* The worker has version 0, and is to take a state, when its session is lost. The next leader goes
 * on from version 3, and sends it the state of version 5. */
static bool send_the_state_next(struct fake_leader *f)
{
	static uint64_t state = 5;
	struct mst_message behind = { .kind = MST_MSG_BEHIND, .number = 3 };
	struct mst_message take = { .kind = MST_MSG_TAKE };
	struct mst_lane_answer a = {
		.number = 1, .version = 6, .newest = 6, .where = MST_WHERE_COPIED
	};

	take.handed = (struct mst_handed){
		.number = 1,
		.version = state,
		.piece = { .total = sizeof(state), .length = sizeof(state), .data = (void *)&state }
	};
	plan.began = 3;
	return begin_first(f) && fake_say(f, &behind) && await(f, &go) && let_in_next(f) &&
	       say_begins(f) && fake_say(f, &behind) && fake_say(f, &take) &&
	       fake_hear(f, MST_MSG_TOOK) && fake_answer(f, &a) && fake_stay(f);
}

/* The leader gathers workers until it answers. A worker that asks for the end of the job before
 * that is not heard. */
static bool hear_goal_again(struct fake_leader *f)
{
	struct mst_message done = { .kind = MST_MSG_DONE };

	done.goal = 9;
	if (!begin_first(f) || !fake_hear(f, MST_MSG_FINISH) || !fake_say(f, &done) ||
	    !fake_hear(f, MST_MSG_FINISH) || !await(f, &go) || !let_in_next(f) ||
	    !fake_hear(f, MST_MSG_FINISH))
		return false;
	atomic_store(&goal, f->message.goal);
	if (!fake_hear(f, MST_MSG_HEARTBEAT)) /* it comes next: nothing is told yet */
		return false;
	atomic_store(&linked, true);
	if (!await(f, &back) || !answer_next(f) || !fake_hear(f, MST_MSG_FINISH))
		return false;
	atomic_store(&finishes, f->message.goal == 0);
	return fake_stay(f);
}

/* It lets the worker in, and hears of its end before its handle is closed. */
static bool hear_the_end(struct fake_leader *f)
{
	if (!lose_first(f) || !greet_next(f, 2) || !is_heard(f))
		return false;
	atomic_store(&linked, true);
	while (fake_hear(f, MST_MSG_HEARTBEAT))
		;
	atomic_store(&finishes, !atomic_load(&f->released));
	return true;
}

/* ---- the worker ---- */

static void join(bool (*script)(struct fake_leader *), uint64_t patience_ns, bool comes_back)
{
	memset(&plan, 0, sizeof(plan));
	plan.patience_ns = patience_ns;
	plan.made = FIRST;
	atomic_store(&go, false);
	atomic_store(&back, true);
	atomic_store(&linked, false);
	atomic_store(&hellos, 0);
	atomic_store(&goal, 0);
	atomic_store(&finishes, 0);
	for (uint32_t i = 0; i < FAKE_ELEMS; i++)
		bytes[i] = (float)i;
	fake_marked = true;
	fake_open(&client_fake, script);
	struct muster_options opt = client_options_for(client_fake.address, CLIENT_LONG_MS);
	opt.owner = MUSTER_WORKERS_OWN;
	opt.comes_back = comes_back;
	client_handle = NULL;
	CU_ASSERT_EQUAL_FATAL(muster_open(&opt, &client_handle), 0);
}

static void begin(bool (*script)(struct fake_leader *), uint64_t patience_ns)
{
	join(script, patience_ns, false);
	CU_ASSERT_EQUAL_FATAL(client_start(NULL, &client_outcome), 0);
}

static void push(void)
{
	struct muster_contribution c = MUSTER_CONTRIBUTION;
	uint64_t ticket = 0;

	c.weight = 1;
	c.full = true;
	c.keep = true;
	CU_ASSERT_PTR_NOT_NULL_FATAL(muster_gradient(client_handle));
	CU_ASSERT_EQUAL(muster_push(client_handle, &c, &ticket), 0);
	CU_ASSERT_EQUAL(ticket, 1);
}

/* The session is lost, and the handle knows. */
static void lose(void)
{
	atomic_store(&go, true);
	while (!client_handle->worker.adrift)
		CU_ASSERT_EQUAL_FATAL(muster_wait(client_handle, &client_outcome), -ETIMEDOUT);
}

static bool is_told(enum muster_verdict verdict, uint64_t counted_in, uint64_t version)
{
	return client_outcome.ticket == 1 && client_outcome.verdict == verdict &&
	       client_outcome.counted_in == counted_in && client_outcome.version == version;
}

static bool says_hello_again(bool with_word)
{
	begin(come_back, 60 * MST_SECOND);
	plan.with_word = with_word;
	push();
	atomic_store(&go, true);
	int rc = client_wait();
	bool once = atomic_load(&hellos) == 1;
	bool claimed = strcmp(said.run, RUN) == 0 && said.number == 1 && said.version == 0 &&
		       said.made == 0 && said.incarnation == 1;
	bool told = is_told(MUSTER_CANCELLED, 0, 0) && !client_outcome.fresh;
	client_close();
	return rc >= 0 && once && claimed && told;
}

static void worker_that_loses_its_leader_says_hello_again_with_its_claim(void)
{
	CU_ASSERT(says_hello_again(false));
	CU_ASSERT(says_hello_again(true));
}

/* What it has is what the next servers may ask for. */
static void last_result_stays_and_is_offered(void)
{
	begin(come_back, 60 * MST_SECOND);
	push();
	atomic_store(&go, true);
	CU_ASSERT(client_wait() >= 0);
	CU_ASSERT_FATAL(atomic_load(&linked));
	CU_ASSERT_EQUAL(offer.offers, 1);
	CU_ASSERT_PTR_NOT_NULL_FATAL(client_outcome.result);
	CU_ASSERT_EQUAL(memcmp(client_outcome.result, bytes, sizeof(bytes)), 0);
	client_close();
}

static enum muster_verdict verdict_of(uint64_t made, bool counted, bool same)
{
	begin(come_back, 60 * MST_SECOND);
	plan.began = 1;
	plan.made = made;
	plan.counted = counted;
	plan.same_generation = same;
	push();
	atomic_store(&go, true);
	CU_ASSERT(client_wait() >= 0);
	CU_ASSERT_EQUAL(client_outcome.ticket, 1);
	CU_ASSERT_EQUAL(client_outcome.version, 1);
	CU_ASSERT_EQUAL(client_outcome.counted_in, client_outcome.verdict == MUSTER_COUNTED);
	client_close();
	return client_outcome.verdict;
}

static void gradient_that_a_set_names_has_counted(void)
{
	CU_ASSERT_EQUAL(verdict_of(FIRST, true, false), MUSTER_COUNTED);
	CU_ASSERT_EQUAL(verdict_of(FIRST, false, false), MUSTER_CANCELLED);
}

/* A set names a rank, and that has pushed something in each generation. */
static void set_of_another_generation_does_not_name_the_gradient(void)
{
	CU_ASSERT_EQUAL(verdict_of(NEXT, true, false), MUSTER_CANCELLED);
}

static void in_the_same_generation_the_welcome_has_the_verdict(void)
{
	CU_ASSERT_EQUAL(verdict_of(FIRST, false, true), MUSTER_COUNTED);
}

static void session_that_is_lost_before_it_is_taken_changes_no_claim(void)
{
	begin(come_back, 60 * MST_SECOND);
	plan.losses = 2;
	push();
	atomic_store(&go, true);
	uint64_t until_ns = mst_now_ns() + CLIENT_LONG_MS * MST_MS;
	while (atomic_load(&hellos) < 3 && mst_now_ns() < until_ns)
		mst_sleep_ns(MST_MS); /* only a wait takes one */
	CU_ASSERT(client_wait() >= 0);
	CU_ASSERT(atomic_load(&hellos) == 3 && said.number == 1 && said.version == 0);
	CU_ASSERT(is_told(MUSTER_CANCELLED, 0, 0));
	client_close();
}

/* ---- until it has come back ---- */

/* What the last hello claims, of some that were lost at once. */
static struct mst_in_force claimed_after(uint32_t losses, bool changes)
{
	begin(come_back, 60 * MST_SECOND);
	plan.losses = losses;
	plan.changes = changes;
	push();
	atomic_store(&go, true);
	uint64_t until_ns = mst_now_ns() + CLIENT_LONG_MS * MST_MS;
	while (atomic_load(&hellos) < losses + 1 && mst_now_ns() < until_ns)
		mst_sleep_ns(MST_MS);
	CU_ASSERT(client_wait() >= 0);
	if (changes)
		CU_ASSERT_STRING_EQUAL(muster_job(client_handle)->policy, later.policy);
	client_close();
	return said.in_force;
}

static bool is_change(const struct mst_in_force *of)
{
	return of->number == change.number && of->forced == change.forced &&
	       strcmp(of->policy, change.policy) == 0;
}

/* By a message, or by the welcome; also after a session that was lost before its generation has
 * begun, and has not said which change is in force. */
static void last_change_of_policy_is_claimed(void)
{
	struct mst_in_force claimed = claimed_after(0, true);

	CU_ASSERT(is_change(&claimed));
	claimed = claimed_after(2, true);
	CU_ASSERT(is_change(&claimed));
	welcomed_with = change;
	claimed = claimed_after(2, false);
	CU_ASSERT(is_change(&claimed));
	welcomed_with = (struct mst_in_force){ 0 };
	claimed = claimed_after(0, false);
	CU_ASSERT(claimed.number == 0 && claimed.policy[0] == '\0');
}

static void worker_without_a_server_computes_on(void)
{
	struct muster_contribution c = MUSTER_CONTRIBUTION;

	begin(stay_away, 3600 * MST_SECOND);
	lose();
	CU_ASSERT_EQUAL(muster_check(client_handle), MUSTER_GIVE_UP);
	CU_ASSERT_PTR_NOT_NULL(muster_gradient(client_handle));
	CU_ASSERT_EQUAL(muster_push_range(client_handle, 0, 10, NULL), 0);
	CU_ASSERT_EQUAL(muster_abandon(client_handle), 0);
	CU_ASSERT_EQUAL(muster_wait(client_handle, &client_outcome), -ETIMEDOUT);
	CU_ASSERT(client_says(muster_error(client_handle), "nothing is lost, wait again"));
	CU_ASSERT_EQUAL(muster_try_wait(client_handle, &client_outcome), -EAGAIN);
	if (muster_gradient(client_handle) != NULL) {
		c.weight = 1;
		c.full = true;
		CU_ASSERT_EQUAL(muster_push(client_handle, &c, NULL), 0);
	}
	CU_ASSERT_EQUAL(muster_check(client_handle), MUSTER_GIVE_UP);
	client_close();
}

/* The leader has taken the connection, and says nothing: a try would wait for ten seconds. */
static void handle_that_seeks_a_server_closes_at_once(void)
{
	begin(stay_away, 3600 * MST_SECOND);
	lose();
	uint64_t before_ns = mst_now_ns();
	muster_close(client_handle);
	CU_ASSERT(mst_now_ns() - before_ns < 8 * MST_SECOND);
	fake_release(&client_fake);
	fake_close(&client_fake);
}

static void wake_ends_the_wait_for_a_server(void)
{
	begin(stay_away, 3600 * MST_SECOND);
	lose();
	muster_wake(client_handle);
	CU_ASSERT_EQUAL(muster_wait(client_handle, &client_outcome), -EINTR);
	CU_ASSERT_EQUAL(muster_wait(client_handle, &client_outcome), -ETIMEDOUT);
	client_close();
}

/* ---- before the first outcome ---- */

static void new_worker_that_waits_for_a_state_says_start_again(void)
{
	uint64_t until_ns = mst_now_ns() + CLIENT_LONG_MS * MST_MS, version;
	const void *state;
	size_t length;
	int rc = -ETIMEDOUT;

	join(send_for_a_state, 3600 * MST_SECOND, true);
	CU_ASSERT_EQUAL(client_start(NULL, &client_outcome), -ESTALE);
	atomic_store(&go, true);
	while (rc == -ETIMEDOUT && !atomic_load(&linked) && mst_now_ns() < until_ns)
		rc = muster_take_state(client_handle, &state, &length, &version);
	CU_ASSERT(atomic_load(&linked));
	CU_ASSERT_EQUAL(rc, -ETIMEDOUT); /* and nothing is wrong */
	client_close();
}

/* What a worker takes at the next leader it has not had before, and nothing of it is void. */
static void state_of_the_next_generation_is_not_withdrawn(void)
{
	uint64_t until_ns = mst_now_ns() + CLIENT_LONG_MS * MST_MS, version = 0;
	const void *state;
	size_t length;
	int rc;

	join(send_the_state_next, 3600 * MST_SECOND, true);
	CU_ASSERT_EQUAL_FATAL(client_start(NULL, &client_outcome), 0);
	push();
	while ((rc = muster_wait(client_handle, &client_outcome)) == -ETIMEDOUT &&
	       mst_now_ns() < until_ns)
		;
	CU_ASSERT_EQUAL_FATAL(rc, -ESTALE);
	atomic_store(&go, true);
	while ((rc = muster_take_state(client_handle, &state, &length, &version)) == -ETIMEDOUT &&
	       mst_now_ns() < until_ns)
		;
	CU_ASSERT_EQUAL_FATAL(rc, 0);
	CU_ASSERT_EQUAL(version, 5);
	CU_ASSERT(client_wait() >= 0);
	CU_ASSERT_EQUAL(client_outcome.version, 6);
	CU_ASSERT_EQUAL(client_outcome.generation, 2);
	CU_ASSERT_EQUAL(client_outcome.withdrawn, 0);
	client_close();
}

/* ---- nobody comes back ---- */

static void error_that_no_other_try_makes_good_ends_the_handle(void)
{
	static const int final[] = { -ESTALE, -ESHUTDOWN, -EPERM };

	for (size_t i = 0; i < sizeof(final) / sizeof(final[0]); i++) {
		begin(come_back, 3600 * MST_SECOND);
		plan.refusals = 1;
		plan.refusal = final[i];
		atomic_store(&go, true);
		CU_ASSERT_EQUAL(client_wait(), final[i]);
		CU_ASSERT(client_says(muster_error(client_handle), "its server was lost"));
		CU_ASSERT(client_says(muster_error(client_handle), "these are the words"));
		CU_ASSERT_EQUAL(atomic_load(&hellos), 1);
		/* and so does each later call */
		CU_ASSERT_EQUAL(client_wait(), final[i]);
		CU_ASSERT(client_says(muster_error(client_handle), "these are the words"));
		client_close();
	}
}

/* Else the next start waits for a worker that never says START. */
static void session_that_waits_ends_with_its_handle(void)
{
	uint64_t until_ns = mst_now_ns() + CLIENT_LONG_MS * MST_MS;

	begin(hear_the_end, 3600 * MST_SECOND);
	atomic_store(&go, true);
	while (!atomic_load(&linked) && mst_now_ns() < until_ns)
		mst_sleep_ns(MST_MS);
	mst_reconnect_end(&client_handle->reconnect);
	mst_heartbeat_ring(client_handle->session.heartbeat);
	while (atomic_load(&finishes) == 0 && mst_now_ns() < until_ns)
		mst_sleep_ns(MST_MS);
	CU_ASSERT_EQUAL(atomic_load(&finishes), 1);
	client_close();
}

static void any_other_error_is_tried_again(void)
{
	static const int other[] = { -EEXIST, -ENOSPC, -EHOSTDOWN, MST_AGAIN,
				     -EINVAL, -EPROTO, -EACCES };

	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
		begin(come_back, 3600 * MST_SECOND);
		plan.refusals = 2;
		plan.refusal = other[i];
		push();
		atomic_store(&go, true);
		CU_ASSERT(client_wait() >= 0);
		CU_ASSERT_EQUAL(atomic_load(&hellos), 3);
		client_close();
	}
}

static void handle_ends_when_patience_is_over(void)
{
	begin(hang_up_for_ever, 400 * MST_MS);
	atomic_store(&go, true);
	CU_ASSERT_EQUAL(client_wait(), -ENOTCONN);
	CU_ASSERT(client_says(muster_error(client_handle), "--server-patience 0.4 s"));
	CU_ASSERT(atomic_load(&hellos) >= 1);
	CU_ASSERT_EQUAL(client_wait(), -ENOTCONN);
	client_close();
}

static void without_patience_nobody_comes_back(void)
{
	begin(hang_up_for_ever, 0);
	plan.with_word = true;
	atomic_store(&go, true);
	CU_ASSERT_EQUAL(client_wait(), -ENOTCONN);
	client_close();
	CU_ASSERT_EQUAL(atomic_load(&hellos), 0);
}

/* ---- what the next servers are told ---- */

static void goal_is_told_again_and_the_end_after_the_start(void)
{
	uint64_t until_ns = mst_now_ns() + CLIENT_LONG_MS * MST_MS, ends_with = 0;
	int rc;

	begin(hear_goal_again, 3600 * MST_SECOND);
	while ((rc = muster_goal(client_handle, 9, &ends_with)) == -ETIMEDOUT &&
	       mst_now_ns() < until_ns)
		;
	CU_ASSERT_EQUAL(rc, 0);
	CU_ASSERT_EQUAL(muster_finish(client_handle, "enough"), 0);
	atomic_store(&back, false);
	atomic_store(&go, true);
	while (!atomic_load(&linked) && mst_now_ns() < until_ns)
		CU_ASSERT_EQUAL_FATAL(muster_wait(client_handle, &client_outcome), -ETIMEDOUT);
	CU_ASSERT_EQUAL(atomic_load(&goal), 9);
	CU_ASSERT_EQUAL(atomic_load(&finishes), 0);
	atomic_store(&back, true);
	while ((rc = muster_wait(client_handle, &client_outcome)) == -ETIMEDOUT &&
	       mst_now_ns() < until_ns)
		;
	CU_ASSERT(rc >= 0 && !client_outcome.finished);
	while (atomic_load(&finishes) == 0 && mst_now_ns() < until_ns)
		CU_ASSERT_EQUAL_FATAL(muster_wait(client_handle, &client_outcome), -ETIMEDOUT);
	CU_ASSERT_EQUAL(atomic_load(&finishes), 1);
	client_close();
}

static CU_TestInfo cases[] = {
	{ "a worker that loses its leader says hello again, with its claim",
	  worker_that_loses_its_leader_says_hello_again_with_its_claim },
	{ "the last result stays, and is offered", last_result_stays_and_is_offered },
	{ "a gradient that a set names has counted", gradient_that_a_set_names_has_counted },
	{ "a set of another generation does not name the gradient",
	  set_of_another_generation_does_not_name_the_gradient },
	{ "in the same generation the welcome has the verdict",
	  in_the_same_generation_the_welcome_has_the_verdict },
	{ "a session that is lost before it is taken changes no claim",
	  session_that_is_lost_before_it_is_taken_changes_no_claim },
	{ "the last change of policy is claimed", last_change_of_policy_is_claimed },
	{ "a worker without a server computes on", worker_without_a_server_computes_on },
	{ "a handle that seeks a server closes at once",
	  handle_that_seeks_a_server_closes_at_once },
	{ "a wake ends the wait for a server", wake_ends_the_wait_for_a_server },
	{ "a new worker that waits for a state says START again",
	  new_worker_that_waits_for_a_state_says_start_again },
	{ "the state of the next generation is not withdrawn",
	  state_of_the_next_generation_is_not_withdrawn },
	{ "an error that no other try makes good ends the handle",
	  error_that_no_other_try_makes_good_ends_the_handle },
	{ "a session that waits ends with its handle", session_that_waits_ends_with_its_handle },
	{ "any other error is tried again", any_other_error_is_tried_again },
	{ "a handle ends when patience is over", handle_ends_when_patience_is_over },
	{ "without patience nobody comes back", without_patience_nobody_comes_back },
	{ "the goal is told again, and the end after the start",
	  goal_is_told_again_and_the_end_after_the_start },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("handles that come back", cases);
}
