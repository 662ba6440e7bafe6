/* SPDX-License-Identifier: MIT */
/* From hello to link: the first valid hello makes the job's data side; each admitted one becomes a
 * guest with a single-use token; whoever knocks with it is let in. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/rand.h"
#include "common/kernels/sum.h"
#include "server/admin_state.h"
#include "server/memory.h"
#include "server/sentence.h"
#include "server/shard.h"

/* Untouched shared memory costs nothing, and the policy may change to one that needs two. Elsewhere
 * all of it is pinned. */
uint32_t mst_admin_slots(const struct mst_admin *a)
{
	if (a->o->slots != 0)
		return a->o->slots;
	return a->cfg.transport->maps ? 2 : mst_rule_slots(&a->rule);
}

static void notify(void *ctx)
{
	mst_admin_wake(ctx);
}

static struct mst_ledger_cfg ledger_cfg(const struct mst_admin *a)
{
	const struct mst_server_options *o = a->o;
	bool workers_own = o->owner == MUSTER_WORKERS_OWN;

	return (struct mst_ledger_cfg){
		.workers = o->workers,
		.shards = 1,
		.slots = mst_admin_slots(a),
		.buffers = o->buffers,
		.history = workers_own ? o->history : 0,
		.in_place = a->cfg.transport->maps,
		.sent = !a->cfg.transport->maps,
		.owner = workers_own ? MUSTER_WORKERS_OWN : MUSTER_SERVERS_OWN,
		.rule = a->rule,
		.lr = a->optimizer.lr,
		.lr_linear = o->lr_scale == 0,
		.commits_max = o->commits,
		.samples_max = o->samples,
		.lease_ns = o->lease_ns,
		.join_timeout_ns = o->join_timeout_ns,
	};
}

/* Half of the quorum is enough for a step: each fold stands for two contributions at least. Where a
 * rank contributes once, whole groups are summed early, if there are several. */
static uint32_t folds_of(const struct mst_admin *a)
{
	uint32_t half = a->rule.quorum > 1 ? (uint32_t)a->rule.quorum / 2 : 0;

	if (mst_rule_repeats(&a->rule))
		return half < a->o->workers ? half : a->o->workers;
	return a->o->workers > a->o->group ? (a->o->workers - 1) / a->o->group : 0;
}

/* A thread is worth its hand-overs where it has so much to sum of each worker, and a core. */
#define SHARD_BYTES_MIN (UINT64_C(512) << 10)

static uint32_t shards_of(const struct mst_admin *a)
{
	uint64_t want = a->o->shards;
	uint64_t most = a->elems / MST_SHARD_ELEMS_MIN;

	if (want == 0) {
		want = a->elems * sizeof(float) / SHARD_BYTES_MIN;
		most = most < a->cfg.cores ? most : a->cfg.cores;
	}
	most = most < MST_SHARDS_MAX ? most : MST_SHARDS_MAX;
	if (want > most)
		want = most;
	return want > 0 ? (uint32_t)want : 1;
}

static struct mst_aggregator_cfg aggregator_cfg(const struct mst_admin *a,
						const struct mst_ledger_cfg *ledger)
{
	return (struct mst_aggregator_cfg){
		.type = a->type,
		.result_type = a->result_type,
		.owner = (enum muster_owner)a->o->owner,
		.shards = shards_of(a),
		.elems = a->elems,
		.chunk_elems = a->o->chunk / sizeof(float),
		.group = a->o->group,
		.workers = a->o->workers,
		.slots = ledger->slots,
		.buffers = mst_ledger_buffers(ledger),
		.entries_max = mst_ledger_entries(ledger),
		.sessions_max = a->guest_max,
		.folds = folds_of(a),
		.optimizer = a->optimizer,
		.layout = a->layout,
	};
}

/* Of the outbox only the records are composed; results are put from where they are published. */
static uint64_t session_bytes(const struct mst_admin *a)
{
	const struct mst_lane_layout *l = &a->layout;

	return l->up_bytes + (a->cfg.transport->maps ? l->down_bytes : l->down_result);
}

static int check_memory(struct mst_admin *a, struct mst_server_cfg *cfg, char *why, size_t len)
{
	uint64_t budget = a->o->memory != 0 ? a->o->memory : mst_memory_budget();
	uint64_t slots = session_bytes(a);
	uint64_t workers = slots * a->o->workers;
	const char *source = a->o->memory != 0 ? "--memory" : "3/4 of what is free,";
	char text[4][32];

	/* Sums of groups can wait for the commit; those of ranks cannot. */
	if (budget != 0 && !mst_rule_repeats(&a->rule) && workers + mst_server_bytes(cfg) > budget)
		cfg->aggregator.folds = 0;
	uint64_t own = mst_server_bytes(cfg);
	mst_info("memory: %s for %" PRIu32 " workers, %s for sums and versions, of %s",
		 mst_memory_text(workers, text[0], 32), a->o->workers,
		 mst_memory_text(own, text[1], 32), mst_memory_text(budget, text[2], 32));
	if (budget == 0 || workers + own <= budget)
		return 0;
	snprintf(why, len,
		 "no memory for job \"%s\": %" PRIu32 " workers with %" PRIu32
		 " slots need %s each and "
		 "the server %s, in all more than %s %s; raise --memory, or lower "
		 "--slots, --buffers or --history",
		 a->o->job, a->o->workers, a->layout.slots, mst_memory_text(slots, text[0], 32),
		 mst_memory_text(own, text[1], 32), source, mst_memory_text(budget, text[2], 32));
	return -ENOMEM;
}

static int open_data_side(struct mst_admin *a, char *why, size_t len)
{
	struct mst_ledger_cfg ledger = ledger_cfg(a);
	struct mst_server_cfg cfg = {
		.ledger = ledger,
		.aggregator = aggregator_cfg(a, &ledger),
		.transport = a->cfg.transport,
		.net = { .outbox_max = a->layout.down_result,
			 .lanes = mst_admin_lanes(&a->layout),
			 .fabric = &a->fabric,
			 .spin_pauses = a->o->spin_pauses,
			 .spin_yields = a->o->spin_yields },
		.notify = notify,
		.notify_ctx = a,
	};

	int rc = check_memory(a, &cfg, why, len);
	if (rc != 0)
		return rc;
	rc = mst_server_new(&cfg, &a->server);
	if (rc == 0)
		rc = a->cfg.transport->door->open(mst_server_net(a->server), &a->door);
	if (rc == 0)
		rc = mst_admin_watch_door(a);
	if (rc != 0) {
		snprintf(why, len, "cannot set up job \"%s\" over %s: %s", a->o->job,
			 a->cfg.transport->scheme, mst_sentence_cause(rc));
		a->cfg.transport->door->close(a->door);
		a->door = NULL;
		mst_server_free(a->server);
		a->server = NULL;
	}
	return rc;
}

/* The first valid hello fixes length and types. */
static int fix_job(struct mst_admin *a, const struct mst_hello *h, char *why, size_t len)
{
	a->elems = h->elems;
	a->type = (enum muster_type)h->type;
	a->result_type = (enum muster_type)h->result_type;
	mst_lane_layout(&(struct mst_lane_figures){ .elems = a->elems,
						    .type_bytes = (uint32_t)mst_type_bytes(a->type),
						    .result_type_bytes = (uint32_t)mst_type_bytes(
							    a->result_type),
						    .slots = mst_admin_slots(a),
						    .workers = a->o->workers },
			&a->layout);
	int rc = open_data_side(a, why, len);
	if (rc != 0)
		a->elems = 0;
	else
		mst_info("job \"%s\": %" PRIu64 " elements of %s, results of %s, %s own", a->o->job,
			 a->elems, mst_type_name(a->type), mst_type_name(a->result_type),
			 mst_owner_name((enum muster_owner)a->o->owner));
	return rc;
}

static int check_hello(const struct mst_admin *a, const struct mst_hello *h, char *why, size_t len)
{
	const char *job = a->o->job;

	if (a->state == MST_JOB_FINISHED || a->state == MST_JOB_FAILED) {
		snprintf(why, len, "job \"%s\" is over: %.300s", job, a->why);
		return -ESHUTDOWN;
	}
	if (h->rank >= 0 && (uint32_t)h->rank >= a->o->workers) {
		mst_sentence_refused(why, len, -ERANGE, h, a->o);
		return -EINVAL;
	}
	if (strcmp(h->job, job) != 0)
		snprintf(why, len, "there is no job \"%s\" here, this server runs \"%s\"", h->job,
			 job);
	else if (h->elems == 0 || h->elems > MST_ELEMS_MAX)
		snprintf(why, len, "a length of %" PRIu64 " elements cannot be", h->elems);
	else if (h->owner != a->o->owner)
		snprintf(why, len,
			 "owner %s does not match job \"%s\" (%s): start the server with "
			 "--owner %s, "
			 "or set options.owner",
			 mst_owner_name((enum muster_owner)h->owner), job,
			 mst_owner_name((enum muster_owner)a->o->owner),
			 mst_owner_name((enum muster_owner)h->owner));
	else if (a->elems != 0 && h->elems != a->elems)
		snprintf(why, len, "length %" PRIu64 " does not match job \"%s\" (%" PRIu64 ")",
			 h->elems, job, a->elems);
	else if (a->elems != 0 && h->type != (uint32_t)a->type)
		snprintf(why, len, "gradients of %s do not match job \"%s\" (%s)",
			 mst_type_name((enum muster_type)h->type), job, mst_type_name(a->type));
	else if (a->elems != 0 && h->result_type != (uint32_t)a->result_type)
		snprintf(why, len, "results of %s do not match job \"%s\" (%s)",
			 mst_type_name((enum muster_type)h->result_type), job,
			 mst_type_name(a->result_type));
	else
		return 0;
	return -EINVAL;
}

uint32_t mst_admin_guests(const struct mst_admin *a)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < a->guest_max; i++)
		count += a->guest[i].in_use;
	return count;
}

bool mst_admin_hello(struct mst_admin *a, struct mst_conn *c, const struct mst_hello *hello,
		     uint64_t now_ns)
{
	struct mst_ledger_event ev = { .kind = MST_EV_JOIN };
	char why[MST_SENTENCE_LEN];

	int rc = check_hello(a, hello, why, sizeof(why));
	if (rc == 0 && a->elems == 0)
		rc = fix_job(a, hello, why, sizeof(why));
	if (rc == 0 && mst_admin_guests(a) + a->o->workers > a->guest_max) {
		mst_sentence_refused(why, sizeof(why), -EBUSY, hello, a->o);
		rc = -EBUSY;
	}
	if (rc != 0) {
		mst_warn("%s refused: %s", c->peer, why);
		mst_admin_error(a, c, rc, why, now_ns);
		return true;
	}
	ev.join.cookie = c->id;
	ev.join.rank = hello->rank;
	if (!mst_admin_event(a, &ev))
		return false;
	c->role = MST_CONN_JOINING;
	c->pid = hello->pid;
	c->who.rank = (uint32_t)hello->rank;
	return true;
}

/* Guests. */

static struct mst_guest *guest_new(struct mst_admin *a, struct mst_identity who)
{
	for (uint32_t i = 0; i < a->guest_max; i++) {
		struct mst_guest *g = &a->guest[i];
		if (g->in_use)
			continue;
		*g = (struct mst_guest){ .session = { .who = who } };
		if (mst_rand_secret(g->token, sizeof(g->token)) != 0)
			return NULL;
		g->in_use = g->expected = true;
		return g;
	}
	return NULL;
}

void mst_admin_guest_free(struct mst_admin *a, struct mst_guest *g)
{
	if (!g->in_use)
		return;
	if (g->session.link != NULL)
		a->cfg.transport->link_free(g->session.link);
	*g = (struct mst_guest){ 0 };
}

void mst_admin_guest_forget(struct mst_admin *a, struct mst_identity who)
{
	for (uint32_t i = 0; i < a->guest_max; i++) {
		struct mst_guest *g = &a->guest[i];
		if (g->in_use && !g->handed_over && g->session.who.rank == who.rank &&
		    g->session.who.incarnation == who.incarnation)
			mst_admin_guest_free(a, g);
	}
}

static void fill_welcome(const struct mst_admin *a, const struct mst_guest *g,
			 const struct mst_notice *notice, struct mst_welcome *w)
{
	snprintf(w->job, sizeof(w->job), "%s", a->o->job);
	snprintf(w->policy, sizeof(w->policy), "%s", a->o->policy);
	snprintf(w->address, sizeof(w->address), "%s", a->door->address);
	static_assert(sizeof(w->address) == sizeof(a->door->address), "room for any door");
	memcpy(w->token, g->token, sizeof(w->token));
	w->ack_timeout = a->fabric.ack_timeout;
	w->retries = a->fabric.retries;
	w->traffic_class = a->fabric.traffic_class;
	w->service_level = a->fabric.service_level;
	w->pkey = a->fabric.pkey;
	w->rank = notice->who.rank;
	w->incarnation = notice->who.incarnation;
	w->workers = a->o->workers;
	w->slots = a->layout.slots;
	w->shards = 1;
	w->elems = a->elems;
	w->type = (uint32_t)a->type;
	w->result_type = (uint32_t)a->result_type;
	w->owner = a->o->owner;
	w->buffers = a->o->buffers + (a->o->owner == MUSTER_WORKERS_OWN ? a->o->history : 0);
	w->lease_ns = a->o->lease_ns;
	w->patience_ns = a->o->patience_ns;
	w->fate_count = notice->join.fate_count;
	memcpy(w->fate, notice->join.fate, sizeof(w->fate));
}

static struct mst_conn *conn_of_cookie(struct mst_admin *a, uint64_t cookie)
{
	for (uint32_t i = 0; i < a->conn_max; i++) {
		struct mst_conn *c = &a->conn[i];
		if (c->stream != NULL && c->id == cookie && c->role == MST_CONN_JOINING)
			return c;
	}
	return NULL;
}

static void refuse(struct mst_admin *a, struct mst_conn *c, int error, uint64_t now_ns)
{
	struct mst_hello hello = { .rank = (int32_t)c->who.rank };
	char why[MST_SENTENCE_LEN];

	mst_sentence_refused(why, sizeof(why), error, &hello, a->o);
	mst_warn("%s refused: %s", c->peer, why);
	mst_admin_error(a, c, error, why, now_ns);
}

/* The ledger has decided on a hello. */
void mst_admin_welcome(struct mst_admin *a, const struct mst_notice *notice, uint64_t now_ns)
{
	struct mst_conn *c = conn_of_cookie(a, notice->join.cookie);
	struct mst_message *m = &a->message;

	if (notice->kind == MST_NOTE_REFUSED) {
		if (c != NULL)
			refuse(a, c, notice->join.error, now_ns);
		return;
	}
	struct mst_guest *g = c != NULL ? guest_new(a, notice->who) : NULL;
	if (g == NULL) {
		struct mst_ledger_event ev = { .kind = MST_EV_LOST,
					       .who = notice->who,
					       .error = -EPIPE };
		(void)mst_admin_event(a, &ev);
		if (c != NULL)
			refuse(a, c, -EBUSY, now_ns);
		return;
	}
	c->role = MST_CONN_WORKER;
	c->who = notice->who;
	mst_info("rank %" PRIu32 " joined from %s, process %" PRIu32 "%s", c->who.rank, c->peer,
		 c->pid, c->who.incarnation > 1 ? ", again" : "");
	memset(m, 0, sizeof(*m));
	m->kind = MST_MSG_WELCOME;
	fill_welcome(a, g, notice, &m->welcome);
	mst_admin_send(a, c, m);
}

/* Doors. */

static struct mst_guest *guest_expected(struct mst_admin *a, const uint8_t *token)
{
	for (uint32_t i = 0; i < a->guest_max; i++) {
		struct mst_guest *g = &a->guest[i];
		if (g->expected && memcmp(g->token, token, MST_TOKEN_LEN) == 0)
			return g;
	}
	return NULL;
}

static bool lanes_match(const struct mst_admin *a, const struct mst_lanes *lanes)
{
	struct mst_lanes own = mst_admin_lanes(&a->layout);

	return lanes->up_bytes == own.up_bytes && lanes->down_bytes == own.down_bytes &&
	       lanes->up_credits == own.up_credits && lanes->down_credits == own.down_credits;
}

/* Its worker is told why, before the end of its session says less. */
static void no_link(struct mst_admin *a, struct mst_identity who, int error, uint64_t now_ns)
{
	struct mst_conn *c = mst_admin_conn_of(a, who);
	char sentence[MST_SENTENCE_LEN];

	snprintf(sentence, sizeof(sentence), "rank %" PRIu32 ": its link could not be set up: %s",
		 who.rank, mst_sentence_cause(error));
	mst_warn("%s", sentence);
	if (c != NULL) {
		c->left = true;
		mst_admin_error(a, c, error, sentence, now_ns);
	}
	mst_admin_lose(a, who);
}

static void let_in(struct mst_admin *a, struct mst_guest *g, const struct mst_knock *knock,
		   uint64_t now_ns)
{
	struct mst_request request = { .kind = MST_REQ_LINKED, .session = &g->session };

	g->expected = false; /* a token is used once, whatever comes of it */
	int rc = a->cfg.transport->door->answer(a->door, knock, &g->session.link);
	if (rc != 0) {
		no_link(a, g->session.who, rc, now_ns);
		return;
	}
	g->handed_over = true;
	while (!mst_server_request(a->server, &request))
		mst_sleep_ns(MST_MS);
}

void mst_admin_doors(struct mst_admin *a, uint64_t now_ns)
{
	struct mst_knock knock;

	int rc;

	while ((rc = a->cfg.transport->door->knock(a->door, &knock)) == 0) {
		struct mst_guest *g = guest_expected(a, knock.token);
		if (g != NULL && lanes_match(a, &knock.lanes)) {
			let_in(a, g, &knock, now_ns);
		} else {
			mst_warn("somebody knocked with %s; sent away",
				 g == NULL ? "no valid token"
					   : "other figures than its welcome has");
			(void)a->cfg.transport->door->answer(a->door, &knock, NULL);
		}
	}
	if (rc == -ENODEV && !a->door_broken) {
		mst_error("nobody can join any more: %s", mst_why());
		a->door_broken = true;
	}
}
