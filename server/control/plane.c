/* SPDX-License-Identifier: MIT */
#include "server/control/plane.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/host/tasks.h"
#include "server/control/follower_plane.h"
#include "server/control/job/sentences.h"
#include "server/control/leader_plane.h"

/* Connections for each rank: of its present session, and of the next that waits for its end. */
#define CONNS_PER_RANK 2u

/* The control thread sleeps at most this long, and at most this part of a lease, so that what is
 * due several times in a lease is not late. */
#define NAP_MAX_NS (100 * MST_MS)
#define NAPS_PER_LEASE 16u
/* How long to sleep while requests wait for room, or messages for them: the data side does not say
 * when it has room again. Epoll is not asked about connections whose messages wait. */
#define REQUESTS_NAP_NS MST_MS

struct mst_plane {
	struct mst_base base;
	const struct mst_plane_role *role; /* of what lies in `as` */
	union {
		struct mst_leader_plane leader;
		struct mst_follower_plane follower;
	} as;
};

/* ---- beginning and end ---- */

/* A follower makes its tables when it is appointed. */
static int take_role(struct mst_plane *p, const struct mst_plane_cfg *cfg, struct mst_reason *why)
{
	if (mst_job_follows(&p->base.job)) {
		p->role = &mst_follower_role;
		mst_follower_plane_init(&p->as.follower, &p->base, cfg->stream, cfg->credentials);
		return 0;
	}
	p->role = &mst_leader_role;
	return mst_leader_plane_init(&p->as.leader, &p->base, cfg->access, why);
}

/* A follower has only the connection with its leader, and does not know yet how many workers there
 * are. */
static int open_frontend(struct mst_plane *p, const struct mst_plane_cfg *cfg,
			 struct mst_reason *why)
{
	const struct mst_server_options *o = cfg->options;
	bool follows = mst_job_follows(&p->base.job);
	struct mst_frontend_cfg front = {
		.stream = cfg->stream,
		.credentials = cfg->credentials,
		.listen = follows ? NULL : o->listen,
		.workers = follows ? 0 : o->workers,
		.members = follows ? 1 : CONNS_PER_RANK * o->workers + o->servers - 1,
		.ops = &p->role->front,
		.ctx = &p->as,
	};

	return mst_frontend_open(&p->base.front, &front, why);
}

static int open_plane(struct mst_plane *p, const struct mst_plane_cfg *cfg, struct mst_reason *why)
{
	struct mst_job_cfg job = { .options = cfg->options,
				   .networks = cfg->networks,
				   .channels = cfg->channels,
				   .front = &p->base.front,
				   .cores = cfg->cores,
				   .processors = cfg->processors,
				   .recording = cfg->recording,
				   .renewal = cfg->renewal };
	struct mst_reason cause;

	mst_base_init(&p->base, cfg->archive);
	int rc = mst_job_init(&p->base.job, &job, why);
	if (rc == 0)
		rc = take_role(p, cfg, why);
	if (rc == 0)
		rc = open_frontend(p, cfg, why);
	/* last, so that the sentence of a port that --listen has too is of --data-port */
	if (rc == 0)
		rc = mst_job_hold_port(&p->base.job, why);
	if (rc != 0)
		return rc;
	rc = mst_linking_init(&p->base.linking, cfg->makes_links_aside);
	if (rc != 0)
		mst_reason_set(why, "cannot start the threads that make links: %s",
			       mst_host_tasks_failed(rc, &cause));
	return rc;
}

int mst_plane_new(const struct mst_plane_cfg *cfg, struct mst_plane **out, struct mst_reason *why)
{
	struct mst_plane *p = calloc(1, sizeof(*p));

	if (p == NULL) {
		mst_reason_set(why, "no memory for the control plane");
		return -ENOMEM;
	}
	int rc = open_plane(p, cfg, why);
	if (rc != 0) {
		mst_plane_free(p);
		return rc;
	}
	*out = p;
	return 0;
}

void mst_plane_free(struct mst_plane *p)
{
	if (p == NULL)
		return;
	mst_base_fini(&p->base);
	if (p->role != NULL)
		p->role->fini(&p->as);
	free(p);
}

const struct mst_networks *mst_plane_networks(const struct mst_plane *p)
{
	return &p->base.job.networks;
}

const char *mst_plane_address(const struct mst_plane *p)
{
	return p->base.front.address;
}

struct mst_server *mst_plane_server(struct mst_plane *p)
{
	return p->base.job.server;
}

bool mst_plane_renews(const struct mst_plane *p, uint32_t *workers, struct mst_renewal *out,
		      struct mst_reason *why)
{
	const struct mst_job *j = &p->base.job;

	if (!j->renews)
		return false;
	*out = mst_workforce_keep(&j->workforce);
	*workers = mst_job_follows(j) ? 0 : mst_workforce_now(&j->workforce).workers;
	mst_sentence_renews(why, *workers, j->o);
	return true;
}

bool mst_plane_is_vacant(const struct mst_plane *p)
{
	return p->role->is_vacant(&p->as);
}

void mst_plane_vacate(struct mst_plane *p)
{
	p->role->vacate(&p->as);
}

/* ---- steps ---- */

void mst_plane_step(struct mst_plane *p, uint64_t now_ns)
{
	p->role->step(&p->as, now_ns);
}

void mst_plane_wake(struct mst_plane *p)
{
	mst_frontend_wake(&p->base.front);
}

void mst_plane_wait(struct mst_plane *p, uint64_t timeout_ns)
{
	mst_frontend_wait(&p->base.front, timeout_ns);
}

static uint64_t shorter(uint64_t a_ns, uint64_t b_ns)
{
	return a_ns < b_ns ? a_ns : b_ns;
}

uint64_t mst_plane_nap(const struct mst_plane *p)
{
	uint64_t share = p->base.job.o->lease_ns / NAPS_PER_LEASE;

	if (mst_requests_wait(&p->base.job.requests) || p->base.front.holds)
		return REQUESTS_NAP_NS;
	return shorter(shorter(share, NAP_MAX_NS), p->role->nap(&p->as));
}

/* ---- the end of the job ---- */

void mst_plane_stop(struct mst_plane *p, const char *why, bool for_good, uint64_t now_ns)
{
	p->base.job.for_good = for_good;
	p->role->stop(&p->as, why, now_ns);
}

bool mst_plane_is_saving(const struct mst_plane *p)
{
	return p->role->is_saving(&p->as);
}

bool mst_plane_give_up_saving(const struct mst_plane *p)
{
	mst_checkpointing_give_up(&p->base.checkpointing);
	return !mst_checkpointing_is_busy(&p->base.checkpointing);
}

bool mst_plane_is_missing(const struct mst_plane *p, struct mst_reason *out)
{
	const struct mst_job *j = &p->base.job;

	if (mst_checkpointing_is_missing(&p->base.checkpointing, out))
		return true;
	if (j->apart.text[0] == '\0' || j->state != MST_JOB_FINISHED)
		return false;
	*out = j->apart;
	return true;
}

int mst_plane_over(const struct mst_plane *p)
{
	if (!mst_job_is_over(&p->base.job) || !p->role->is_over(&p->as))
		return 0;
	return p->base.job.state == MST_JOB_FINISHED ? 1 : -1;
}

bool mst_plane_goes_on_elsewhere(const struct mst_plane *p)
{
	return mst_job_goes_on_elsewhere(&p->base.job);
}

bool mst_plane_was_refused(const struct mst_plane *p)
{
	return p->role->was_refused(&p->as);
}
