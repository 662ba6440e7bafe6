/* SPDX-License-Identifier: MIT */
/*
 * All figures of a job at one server, before anything is allocated: at the leader they follow from
 * the options and the first worker's hello, at a follower from its appointment. The same plan is
 * used to start a server, to appoint followers, and to tell what a job would need. Pure.
 */
#ifndef MST_SERVER_PLAN_PLAN_H
#define MST_SERVER_PLAN_PLAN_H

#include "common/base/reason.h"
#include "common/wire/message.h"
#include "server/data/server.h"
#include "server/options/options.h"

/* The meaning of the options that are texts. */
struct mst_terms {
	struct mst_policy policy; /* zero at a follower, which has none */
	struct mst_optimizer optimizer;
	struct mst_schedule schedule;
	struct mst_saves saves;
	struct mst_fabric fabric; /* its strings belong to the options */
	uint32_t weights[MST_SERVERS_MAX];
};

/* Reads them.
 * @why: a sentence.
 * Return: 0 or -EINVAL. */
int mst_terms_read(const struct mst_server_options *o, struct mst_terms *out,
		   struct mst_reason *why);

/* What a plan is made from. All of it must outlive the plan. */
struct mst_plan_cfg {
	const struct mst_server_options *options; /* as given to this server */
	const struct mst_terms *terms;
	const struct mst_networks *networks; /* that workers may come over */
	struct mst_channels channels;        /* of its links, if there are certificates */
	const struct mst_ports *ports;       /* that it holds */
	uint32_t cores;                      /* for the data side's threads */
	uint32_t processors; /* that this process may use: for how it waits; 0: not known */
	/* The most ranks that records of earlier generations may name, with the last of which this
	 * one begins; 0: there are none. */
	uint32_t record_ranks;
};

/* What a job does not know before its first worker comes. */
struct mst_vector {
	uint64_t elems; /* 0: not known yet */
	enum muster_type type, result_type;
	struct mst_table table; /* of its tensors */
};

struct mst_plan {
	struct mst_vector vector;
	uint64_t first, count; /* this server's part */
	struct mst_lane_layout layout;
	bool repeats; /* a rank may contribute again in a step */
	/* All that mst_server_new() needs, except whom to notify, and at the leader how long to
	 * wait for workers, and where to record. */
	struct mst_server_cfg server;
};

/* Sessions for each rank: the present one, and ended ones whose slots are still to be read. */
#define MST_PLAN_SESSIONS_PER_RANK 4u

/* The slots that a worker gets. Shared memory that is not used costs nothing, and the policy may
 * change to one that needs two; so over such a transport a worker gets two. Elsewhere all slots are
 * pinned. */
uint32_t mst_plan_slots(const struct mst_plan_cfg *cfg);

/* Plans the leader of a job.
 * @why: a sentence if the vector cannot be shared.
 * Return: 0 or -EINVAL. */
int mst_plan_leader(const struct mst_plan_cfg *cfg, const struct mst_vector *vector,
		    struct mst_plan *out, struct mst_reason *why);
/* The part of the vector that a server has, by the leader's plan. */
void mst_plan_part(const struct mst_plan_cfg *cfg, const struct mst_plan *leader, uint32_t server,
		   uint64_t *first, uint64_t *count);
/* What the leader tells that follower. The caller fills in listener and token. */
void mst_plan_appoint(const struct mst_plan_cfg *cfg, const struct mst_plan *leader,
		      uint32_t server, struct mst_appoint *out);
/* Plans a follower by its appointment, which must outlive the plan. mst_optimizer_take() must have
 * taken its optimiser. */
void mst_plan_follower(const struct mst_plan_cfg *cfg, const struct mst_appoint *appoint,
		       struct mst_plan *out);

/* The lanes that workers' links ask for, by the plan's layout. */
struct mst_lanes mst_plan_lanes(const struct mst_lane_layout *layout);

/* The largest quorum of contributions from any ranks that a step of the planned job can reach. More
 * than the slots of all workers can only be reached if partial sums have been planned for it. */
uint32_t mst_plan_quorum_max(const struct mst_plan *leader);

/* Plans less memory if possible: sums of whole groups can wait for the commit, so the memory for
 * partial sums is left out.
 * Return: has that changed anything? */
bool mst_plan_shrink(struct mst_plan *plan);

#endif
