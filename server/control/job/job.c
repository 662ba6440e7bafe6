/* SPDX-License-Identifier: MIT */
#include "server/control/job/job.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/checkpoint/manifest/manifest.h"
#include "common/host/descriptors.h"
#include "common/host/limits.h"
#include "common/host/memory.h"
#include "common/host/tasks.h"
#include "common/kernels/select.h"
#include "common/kernels/sum.h"
#include "common/kernels/tune.h"
#include "server/control/connections/descriptors.h"
#include "server/control/job/budget.h"
#include "server/control/job/momentum.h"
#include "server/control/job/sentences.h"
#include "server/control/job/state_directory.h"

/* ---- its state ---- */

#define NEVER (-1)

static const int after[][MST_JOB_EVENTS] = {
	/*                       STARTS           ENDS              FAILS */
	[MST_JOB_GATHERING] = { MST_JOB_RUNNING, MST_JOB_FINISHED, MST_JOB_FAILED },
	[MST_JOB_RUNNING] = { NEVER, MST_JOB_FINISHED, MST_JOB_FAILED },
	[MST_JOB_FINISHED] = { NEVER, NEVER, NEVER },
	[MST_JOB_FAILED] = { NEVER, NEVER, NEVER },
};

bool mst_job_enter(enum mst_job_state *state, enum mst_job_event event)
{
	int next = after[*state][event];

	if (next == NEVER)
		return false;
	*state = (enum mst_job_state)next;
	return true;
}

bool mst_job_end(struct mst_job *j, enum mst_job_event how, const char *why, uint64_t now_ns)
{
	bool gathers = j->state == MST_JOB_GATHERING;

	if (!mst_job_enter(&j->state, how))
		return false;
	j->tries_on = gathers && j->generation.absent.number > 0 && !j->for_good;
	mst_reason_set(&j->why, "%s", why);
	j->ended_ns = now_ns;
	return true;
}

void mst_job_fail(struct mst_job *j, int error, const char *why, uint64_t now_ns)
{
	if (!mst_job_end(j, MST_JOB_FAILS, why, now_ns))
		return;
	j->error = error;
	mst_job_tell_failure(j);
}

void mst_job_tell_failure(const struct mst_job *j)
{
	if (mst_job_goes_on_elsewhere(j) && j->renews)
		mst_info("job \"%s\": this generation is over: %s", j->o->job, j->why.text);
	else if (mst_job_goes_on_elsewhere(j))
		mst_error("job \"%s\" cannot go on with this server as it is: %s; workers wait "
			  "%.3g s for other servers, or for this one, started again "
			  "(--server-patience)",
			  j->o->job, j->why.text,
			  (double)j->o->server_patience_ns / (double)MST_SECOND);
	else
		mst_error("job \"%s\" has failed: %s", j->o->job, j->why.text);
}

int mst_job_finish_word(const struct mst_job *j, enum mst_finish_why why)
{
	return mst_finish_word(why, mst_server_options_goes_on(j->o));
}

int mst_job_evict_word(const struct mst_job *j, enum mst_evict_why why)
{
	return mst_evict_word(why, mst_server_options_goes_on(j->o));
}

int mst_job_stop_word(const struct mst_job *j)
{
	return mst_job_finish_word(j, j->for_good ? MST_FINISH_CLOSED : MST_FINISH_STOPPED);
}

int mst_job_over_word(const struct mst_job *j)
{
	return mst_job_goes_on_elsewhere(j) || j->tries_on ? MST_AGAIN : -ESHUTDOWN;
}

void mst_job_fill_end(const struct mst_job *j, struct mst_message *out)
{
	memset(out, 0, sizeof(*out));
	if (j->state == MST_JOB_FAILED) {
		out->kind = MST_MSG_ERROR;
		out->error.code = j->error;
		snprintf(out->error.reason, sizeof(out->error.reason), "%s", j->why.text);
	} else {
		out->kind = MST_MSG_FINISHED;
		snprintf(out->why, sizeof(out->why), "%s", j->why.text);
	}
}

/* ---- beginning and end ---- */

/* Where servers own, the run of the checkpoint goes on, and the numbers of its generations do. */
static void go_on(struct mst_job *j)
{
	struct mst_resume *r = &j->resume;

	if (!mst_resume_overrides(r, j->o))
		mst_resume_policy(r, j->o, &j->terms.policy);
	if (j->generation.counts)
		j->in_force.kept = mst_resume_in_force(r);
	if (j->o->owner == MUSTER_WORKERS_OWN)
		return;
	mst_generation_resume(&j->generation, &r->manifest, r->dir);
	r->kept.generation = r->manifest.generation;
	r->kept.made = mst_generation_maker(&r->manifest);
}

/* A checkpoint has the name of the start that wrote it, so that parts of two starts are never taken
 * for parts of one checkpoint. */
static int prepare_checkpoints(struct mst_job *j, struct mst_reason *why)
{
	int rc = mst_generation_init(&j->generation, j->o, why);

	if (rc == 0 && mst_server_options_saves(j->o))
		snprintf(j->saves, sizeof(j->saves), "%s", j->generation.drawn);
	if (rc == 0 && mst_server_options_resume(j->o) != NULL)
		rc = mst_resume_find(&j->resume, j->o, &j->terms, why);
	if (rc == 0 && mst_resume_is_set(&j->resume))
		go_on(j);
	if (rc == 0 && mst_server_options_saves(j->o))
		rc = mst_state_directory_check(j->o, mst_job_first_version(j), why);
	return rc;
}

static void enter_first_policy(struct mst_job *j)
{
	struct mst_job_policy first;

	mst_job_policy_init(&first, j->o->policy, &j->terms.policy);
	first.begun = first.since = mst_job_first_version(j) + 1;
	j->policies = (struct mst_job_policies){ 0 };
	mst_job_policies_enter(&j->policies, &first);
	j->in_force.now = (struct mst_in_force){ 0 };
	j->in_force.is_open = j->in_force.kept.number > 0;
	j->in_force.waits = false;
}

int mst_job_init(struct mst_job *j, const struct mst_job_cfg *cfg, struct mst_reason *why)
{
	*j = (struct mst_job){
		.o = cfg->options,
		.networks = *cfg->networks,
		.channels = cfg->channels,
		.front = cfg->front,
		.cores = cfg->cores,
		.processors = cfg->processors,
		.recording = cfg->recording,
	};
	mst_workforce_init(&j->workforce, &cfg->renewal, j->o->workers);
	int rc = mst_terms_read(j->o, &j->terms, why);
	if (rc == 0 && !mst_job_follows(j))
		rc = prepare_checkpoints(j, why);
	if (rc != 0 || mst_job_follows(j))
		return rc;
	enter_first_policy(j);
	j->goal = (struct mst_goal){ j->o->commits, MST_RANK_NONE };
	return 0;
}

int mst_job_tables(struct mst_job *j, uint32_t sessions)
{
	struct mst_requests_cfg cfg = { .workers = j->o->workers,
					.sessions = sessions,
					.servers = j->o->servers };

	j->present = calloc(j->o->workers, sizeof(*j->present));
	int rc = j->present != NULL ? 0 : -ENOMEM;
	if (rc == 0 && j->generation.counts)
		rc = mst_in_force_claims_init(&j->in_force.claims, j->o->workers);
	return rc == 0 ? mst_requests_init(&j->requests, &cfg) : rc;
}

void mst_job_fini(struct mst_job *j)
{
	mst_ports_close(&j->ports);
	mst_resume_fini(&j->resume);
	mst_in_force_claims_fini(&j->in_force.claims);
	mst_job_sets_fini(&j->sets);
	mst_requests_fini(&j->requests);
	free(j->present);
}

/* ---- figures ---- */

static struct mst_plan_cfg plan_cfg(const struct mst_job *j)
{
	return (struct mst_plan_cfg){ .options = j->o,
				      .terms = &j->terms,
				      .networks = &j->networks,
				      .channels = j->channels,
				      .ports = &j->ports,
				      .cores = j->cores,
				      .processors = j->processors,
				      .record_ranks = j->workforce.record_ranks };
}

void mst_job_part(const struct mst_job *j, uint32_t server, uint64_t *first, uint64_t *count)
{
	struct mst_plan_cfg cfg = plan_cfg(j);

	mst_plan_part(&cfg, &j->plan, server, first, count);
}

void mst_job_appoint(const struct mst_job *j, uint32_t server, struct mst_appoint *out)
{
	struct mst_plan_cfg cfg = plan_cfg(j);

	mst_plan_appoint(&cfg, &j->plan, server, out);
	snprintf(out->saves, sizeof(out->saves), "%s", j->saves);
	out->resumes = mst_resume_is_set(&j->resume);
	out->resumed_version = mst_job_first_version(j);
	snprintf(out->resumed_save, sizeof(out->resumed_save), "%s",
		 mst_resume_is_set(&j->resume) ? j->resume.manifest.id.save : "");
}

static void tell_budget(const struct mst_job *j, const struct mst_budget *b, const char *room)
{
	char text[3][32], networks[MST_NETWORKS_TEXT_LEN];

	mst_info("memory: %s for %" PRIu32 " workers, %s for sums and versions, of %s",
		 mst_memory_text(b->workers * b->worker_bytes, text[0], 32), b->workers,
		 mst_memory_text(b->own_bytes, text[1], 32), room);
	mst_info("file descriptors: %" PRIu64 ", %" PRIu32 " for each worker, of %" PRIu64,
		 mst_descriptors_all(&b->files), b->files.worker, mst_host_descriptors_max());
	if (b->all.queue_pairs == 0)
		return;
	mst_info("%s: %" PRIu32 " queue pairs and %s registered for each worker, %" PRIu32
		 " and %s in all; a worker registers %s for this server",
		 mst_networks_text(&j->networks, networks), b->worker.queue_pairs,
		 mst_memory_text(b->worker.bytes, text[0], 32), b->all.queue_pairs,
		 mst_memory_text(b->all.bytes, text[1], 32),
		 mst_memory_text(b->far.bytes, text[2], 32));
}

/* A part of what the server needs, which the user may do without. "": nothing. */
static const char *distance_text(const struct mst_aggregator_cfg *a, char text[96])
{
	char each[32];

	(void)snprintf(text, 96, ", of which --lr-distance takes %" PRIu32 " versions of %s",
		       a->workers + 1,
		       mst_memory_text(mst_version_stride(a->elems, a->result_type), each, 32));
	return a->distances ? text : "";
}

/* Compares what the job needs with the memory there is, and plans less where it can. The leader has
 * compared its descriptors when it started. */
static int fit_budget(struct mst_job *j, struct mst_reason *why)
{
	struct mst_budget_room room;
	struct mst_budget b;
	char text[2][32], distance[96];

	mst_budget_room(j->o->memory, &room);
	mst_budget_of(&j->plan.server, &b);
	if (mst_budget_bytes(&b) > room.bytes && mst_plan_shrink(&j->plan))
		mst_budget_of(&j->plan.server, &b);
	j->session_bytes = b.worker_bytes;
	tell_budget(j, &b, room.text);
	if (mst_budget_bytes(&b) <= room.bytes)
		return mst_job_follows(j) ? mst_descriptors_check(&b.files, why) : 0;
	mst_reason_set(
		why,
		"no memory for job \"%s\": %" PRIu32 " workers with %" PRIu32
		" slots need %s each and the server %s%s, in all more than %s; raise that limit, "
		"or lower --slots, --buffers or --history",
		j->o->job, b.workers, j->plan.layout.slots,
		mst_memory_text(b.worker_bytes, text[0], 32),
		mst_memory_text(b.own_bytes, text[1], 32),
		distance_text(&j->plan.server.aggregator, distance), room.text);
	return -ENOMEM;
}

/* Are there more sessions than members that take part? Then some have ended, and their memory will
 * be free soon. */
static bool is_clearing(const struct mst_job *j, uint32_t sessions)
{
	uint32_t present = 0;

	for (uint32_t rank = 0; rank < j->o->workers; rank++)
		present += j->present[rank];
	return sessions > present;
}

int mst_job_check_room(const struct mst_job *j, uint32_t sessions, struct mst_reason *why)
{
	struct mst_host_memory host;
	char text[2][32], source[256];

	if (j->o->memory != 0 || j->state != MST_JOB_RUNNING || is_clearing(j, sessions))
		return 0;
	mst_host_memory("", &host);
	if (j->session_bytes <= host.free_bytes)
		return 0;
	mst_reason_set(
		why,
		"no memory for another worker of job \"%s\" now: it needs %s, more than all %s %s; "
		"raise that limit and join again, the job goes on meanwhile",
		j->o->job, mst_memory_text(j->session_bytes, text[0], 32),
		mst_memory_text(host.free_bytes, text[1], 32),
		mst_host_memory_source(&host, source, sizeof(source)));
	return -ENOMEM;
}

/* ---- the data side ---- */

/* Why a call of the transport failed, which has written @why. If that says nothing, the reason is
 * most likely a thread that could not be started. */
static const char *cause(int error, struct mst_reason *why)
{
	if (why->text[0] != '\0')
		return why->text;
	return error == -EAGAIN ? mst_host_tasks_failed(error, why)
				: mst_limit_failed(error, 0, why);
}

static int try_network(const struct mst_transport *t, const struct mst_net_cfg *cfg,
		       struct mst_reason *why)
{
	struct mst_link_listener *listener = NULL;
	struct mst_net *net = NULL;
	int rc = t->net_open(cfg, &net, why);

	if (rc == 0)
		rc = t->listener->open(net, &listener, why);
	if (rc != 0)
		mst_reason_set(why, "%s", cause(rc, why));
	t->listener->close(listener);
	t->net_close(net);
	return rc;
}

/* A network whose port was asked for by number is wanted. */
static bool may_leave_out(const struct mst_networks *n, const struct mst_transport *t,
			  const struct mst_net_cfg *cfg)
{
	return n->optional && (cfg->fabric->data_port == 0 || t->listener->hold == NULL);
}

/* Leaves out what is optional and cannot be. */
static int try_networks(struct mst_networks *n, const struct mst_net_cfg *cfg,
			struct mst_reason *why)
{
	const struct mst_networks all = *n;
	int rc = 0;

	n->count = 0;
	for (uint32_t i = 0; i < all.count; i++) {
		int error = try_network(all.item[i], cfg, why);
		if (error == 0)
			n->item[n->count++] = all.item[i];
		else if (may_leave_out(&all, all.item[i], cfg))
			mst_info("workers cannot come over %s: %s", all.item[i]->scheme, why->text);
		else
			return mst_reason_fail(why, error, "cannot serve over %s: %s",
					       all.item[i]->scheme, cause(error, why));
		rc = error != 0 ? error : rc;
	}
	return n->count > 0 ? 0 : rc;
}

/* No worker has said yet how long gradients are, so the shortest are assumed. */
int mst_job_try_listener(struct mst_job *j, struct mst_reason *why)
{
	struct mst_plan_cfg plan = plan_cfg(j);
	struct mst_lane_figures shortest = { .elems = 1,
					     .type_bytes = 2,
					     .result_type_bytes = 2,
					     .slots = mst_plan_slots(&plan),
					     .workers = j->o->workers };
	struct mst_lane_layout layout;
	mst_lane_layout(&shortest, &layout);
	struct mst_net_cfg cfg = { .fabric = &j->terms.fabric,
				   .networks = &j->networks,
				   .channels = j->channels,
				   .links_max = j->o->workers + j->o->servers - 1,
				   .lanes = mst_plan_lanes(&layout) };
	struct mst_descriptors_cfg files = { .transport = mst_networks_transport(&j->networks),
					     .net = &cfg,
					     .workers = j->o->workers,
					     .peers = j->o->servers - 1,
					     .tls = mst_server_options_tls(j->o) };
	struct mst_descriptors need;

	mst_descriptors_of(&files, &need);
	int rc = mst_descriptors_check(&need, why);
	if (rc == 0)
		rc = try_networks(&j->networks, &cfg, why);
	return rc == -EADDRINUSE ? -EIO : rc; /* -EADDRINUSE is for the control port alone */
}

int mst_job_hold_port(struct mst_job *j, struct mst_reason *why)
{
	char networks[MST_NETWORKS_TEXT_LEN];
	int rc = mst_networks_hold(&j->networks, &j->terms.fabric, &j->ports, why);

	if (rc != 0)
		mst_reason_set(why, "%s", cause(rc, why));
	else if (j->terms.fabric.data_port != 0 && j->ports.count == 0)
		mst_warn("--data-port %u has no effect: it is for TCP, and this server is over %s",
			 j->terms.fabric.data_port, mst_networks_text(&j->networks, networks));
	return rc == -EADDRINUSE ? -EIO : rc; /* as above */
}

static void notify(void *ctx)
{
	mst_frontend_wake(ctx);
}

/* The number of data sides in this process. All of them share one choice of kernels. It is made
 * while no thread of any job uses kernels, and holds for the jobs that come later. */
static _Atomic uint32_t data_sides;

/* A sum rarely has more sources than a group has workers. */
static void kernels_choose(const struct mst_aggregator_cfg *cfg)
{
	uint32_t sources = cfg->workers < cfg->group ? cfg->workers : cfg->group;
	uint64_t bytes = cfg->workers * mst_type_bytes(cfg->type) +
			 mst_type_bytes(cfg->result_type);
	uint64_t took_ns = mst_kernels_tune(cfg->type, cfg->result_type, sources,
					    cfg->elems * bytes);
	char text[MST_KERNELS_TEXT];

	mst_kernels_text(text);
	if (took_ns > 0)
		mst_info("kernels %s, measured in %.1f ms", text, (double)took_ns * 1e-6);
	else
		mst_info("kernels %s", text);
}

static void take_over(struct mst_job *j)
{
	j->server = j->made.server;
	j->listener = j->made.listener;
	if (j->listener != NULL)
		j->listener->filter = j->filter;
	j->made.server = NULL;
	j->made.listener = NULL;
}

/* The job may end before it takes what has been made. */
void mst_job_hang_up(struct mst_job *j)
{
	if (j->server == NULL)
		take_over(j);
	mst_requests_close(&j->requests);
	if (j->server != NULL)
		mst_server_hang_up(j->server, mst_job_goes_on_elsewhere(j) ? MST_AGAIN : -ENOTCONN);
}

void mst_job_close(struct mst_job *j)
{
	if (j->listener != NULL)
		mst_job_transport(j)->listener->close(j->listener);
	mst_server_free(j->server);
	mst_tensor_table_free(j->tensors);
	j->tensors = NULL;
	j->listener = NULL;
	j->server = NULL;
	if (j->has_data_side)
		(void)atomic_fetch_sub(&data_sides, 1);
	j->has_data_side = false;
}

static int make_tensors(struct mst_job *j, struct mst_reason *why)
{
	const struct mst_table *table = &j->plan.vector.table;
	int rc = mst_tensor_table_new(table, j->plan.vector.elems, &j->tensors);

	if (rc != 0)
		mst_reason_set(why, "no memory for the table of %" PRIu32 " tensors of job \"%s\"",
			       table->tensors, j->o->job);
	return rc;
}

/* @rc: of the plan. If the job does not fit, its length is not fixed. */
static int prepare(struct mst_job *j, int rc, struct mst_reason *why)
{
	struct mst_server_cfg *cfg = &j->plan.server;

	if (rc == 0)
		rc = fit_budget(j, why);
	if (rc == 0)
		rc = make_tensors(j, why);
	if (rc != 0) {
		j->plan.vector.elems = 0;
		return rc;
	}
	j->has_data_side = true;
	if (atomic_fetch_add(&data_sides, 1) == 0)
		kernels_choose(&cfg->aggregator);
	mst_info("a thread that waits pauses %" PRIu32 " times before it yields: the job has "
		 "%" PRIu32 " workers, and this server may use %" PRIu32 " processors",
		 cfg->net.spin_pauses, cfg->aggregator.workers, j->processors);
	cfg->notify = notify;
	cfg->notify_ctx = j->front;
	cfg->recording = j->recording;
	return 0;
}

/* The memory that the checkpoint is read into is the data side's. */
static int load_checkpoint(struct mst_job *j)
{
	const struct mst_aggregator_cfg *a = &j->plan.server.aggregator;
	struct mst_resume_range range = { .first = j->plan.first,
					  .count = j->plan.count,
					  .result_type = j->plan.vector.result_type,
					  .optimizer = &a->optimizer };

	if (!mst_resume_is_set(&j->resume))
		return 0;
	mst_server_resume(j->made.server, &range.into);
	return mst_resume_load(&j->resume, &range, &j->made.cause);
}

void mst_job_make(void *job)
{
	struct mst_job *j = job;
	struct mst_reason *why = &j->made.cause;

	int rc = mst_server_new(&j->plan.server, &j->made.server, why);
	if (rc == 0)
		rc = mst_job_transport(j)->listener->open(mst_server_net(j->made.server),
							  &j->made.listener, why);
	if (rc != 0)
		mst_reason_set(why, "%s", cause(rc, why));
	else
		rc = load_checkpoint(j);
	j->made.error = rc;
}

static int watch_listener(const struct mst_job *j, struct mst_reason *why)
{
	int rc = mst_frontend_watch(j->front, mst_job_transport(j)->listener->fd(j->listener));

	if (rc != 0)
		mst_reason_set(why, "%s", strerror(-rc));
	return rc;
}

int mst_job_take(struct mst_job *j, struct mst_reason *why)
{
	char networks[MST_NETWORKS_TEXT_LEN];
	int rc = j->made.error;

	take_over(j);
	mst_requests_open(&j->requests, j->server);
	if (rc == 0)
		rc = watch_listener(j, &j->made.cause);
	if (rc == 0)
		return 0;
	mst_reason_set(why, "cannot set up job \"%s\" over %s: %s", j->o->job,
		       mst_networks_text(&j->networks, networks), j->made.cause.text);
	mst_job_hang_up(j);
	mst_job_close(j);
	mst_job_forget(j);
	return rc;
}

const char *mst_job_take_tensors(struct mst_job *j, const struct mst_tensor_piece *piece)
{
	if (!mst_job_lacks_table(j))
		return "a table of tensors that nobody asked for";
	const char *wrong = mst_tensor_table_take(j->tensors, piece);
	if (wrong == NULL && mst_tensor_table_is_whole(j->tensors)) {
		mst_info("job \"%s\": the table of %" PRIu32 " tensors has come", j->o->job,
			 mst_tensor_table_count(j->tensors));
		mst_server_tensors(j->server, j->tensors);
	}
	return wrong;
}

const char *mst_job_norms(const struct mst_job *j)
{
	const struct mst_optimizer *o = &j->plan.server.aggregator.optimizer;

	return mst_optimizer_trusts(o) ? o->row->name : NULL;
}

bool mst_job_has_tensors(const struct mst_job *j)
{
	const struct mst_table *table = &j->plan.vector.table;
	bool needed = table->runs > 0 || (table->tensors > 0 && mst_job_norms(j) != NULL);

	return !needed || mst_tensor_table_is_whole(j->tensors);
}

bool mst_job_has_state(const struct mst_job *j)
{
	return mst_resume_is_set(&j->resume) && j->o->owner == MUSTER_SERVERS_OWN;
}

uint64_t mst_job_state_bytes(const struct mst_job *j, uint64_t elems)
{
	return mst_job_has_state(j) ? 0 : elems * mst_type_bytes(j->plan.vector.result_type);
}

int mst_job_lead(struct mst_job *j, const struct mst_hello *hello, struct mst_reason *why)
{
	struct mst_vector vector = { hello->elems, (enum muster_type)hello->type,
				     (enum muster_type)hello->result_type, hello->table };
	struct mst_plan_cfg cfg = plan_cfg(j);
	int rc = mst_resume_check(&j->resume, hello, why);

	if (rc == 0)
		rc = mst_plan_leader(&cfg, &vector, &j->plan, why);
	if (mst_resume_is_set(&j->resume))
		j->plan.server.ledger.kept = &j->resume.kept;

	j->plan.server.ledger.generation_id = j->generation.now.id;
	/* how long workers may take is told when the data side is there */
	j->plan.server.ledger.join_until_ns = MST_NEVER;
	rc = prepare(j, rc, why);
	if (rc != 0)
		return rc;
	mst_info("job \"%s\": %" PRIu64 " elements of %s, results of %s, %s own", j->o->job,
		 j->plan.vector.elems, mst_type_name(j->plan.vector.type),
		 mst_type_name(j->plan.vector.result_type),
		 mst_owner_name((enum muster_owner)j->o->owner));
	mst_momentum_tell(j->o, &j->terms, mst_resume_is_set(&j->resume));
	if (mst_job_norms(j) != NULL && hello->table.tensors == 0)
		mst_warn("job \"%s\": workers give no table of tensors, so the norms that the "
			 "optimiser %s takes are those of the whole vector; set options.tensors",
			 j->o->job, mst_job_norms(j));
	return 0;
}

int mst_job_follow(struct mst_job *j, const struct mst_appoint *appoint, struct mst_reason *why)
{
	struct mst_plan_cfg cfg = plan_cfg(j);
	int rc = appoint->resumes ? mst_resume_follow(&j->resume, j->o, appoint, why) : 0;

	if (rc != 0)
		return rc;
	snprintf(j->saves, sizeof(j->saves), "%s", appoint->saves);
	mst_plan_follower(&cfg, appoint, &j->plan);
	return prepare(j, 0, why);
}

void mst_job_begins(const struct mst_job *j, uint32_t rank, const struct mst_claimed *claimed,
		    struct mst_begins *out)
{
	out->generation = j->generation.now;
	out->stands = mst_generation_stands(&j->generation, claimed);
	out->in_force = j->in_force.now;
	snprintf(out->policy, sizeof(out->policy), "%s", mst_job_policy(j)->name);
	mst_job_sets_counted(&j->sets, rank, claimed, &out->counted);
}

void mst_job_forget(struct mst_job *j)
{
	j->plan.vector.elems = 0;
	j->tables = (struct mst_tables){ 0 };
	j->metrics = (struct mst_metrics){ 0 };
	mst_job_sets_forget(&j->sets);
	j->state_too_large = j->state_of = 0;
	mst_reason_clear(&j->asked);
	mst_reason_clear(&j->worker_loss);
	memset(j->present, 0, j->o->workers * sizeof(*j->present));
	if (!mst_job_follows(j) && j->in_force.claims.workers > 0) {
		for (uint32_t rank = 0; rank < j->o->workers; rank++)
			mst_in_force_unclaim(&j->in_force.claims, rank);
		enter_first_policy(j);
	}
}

uint64_t mst_job_passes(struct mst_job *j)
{
	if (j->server == NULL)
		return 0;
	uint64_t passes = mst_server_passes(j->server);
	mst_server_wake(j->server);
	return passes;
}
