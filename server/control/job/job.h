/* SPDX-License-Identifier: MIT */
/*
 * A job at one server: its figures, its state and its data side. The first valid hello fixes the
 * figures at the leader, the appointment does at a follower; then the data side is made. A job
 * knows no connections and no sessions. A process may have several jobs.
 *
 * Control thread only.
 */
#ifndef MST_SERVER_CONTROL_JOB_JOB_H
#define MST_SERVER_CONTROL_JOB_JOB_H

#include "common/wire/tensor_table.h"
#include "server/control/connections/frontend.h"
#include "server/control/generations/generation.h"
#include "server/control/generations/in_force.h"
#include "server/control/generations/sets.h"
#include "server/control/generations/workforce.h"
#include "server/control/job/metrics.h"
#include "server/control/job/policies.h"
#include "server/control/job/requests.h"
#include "server/control/job/resume.h"
#include "server/control/job/tables.h"
#include "server/options/options.h"
#include "server/plan/plan.h"

enum mst_job_event {
	MST_JOB_STARTS, /* all workers have started */
	MST_JOB_ENDS,   /* without a failure */
	MST_JOB_FAILS,
	MST_JOB_EVENTS
};

/* Changes @state to the state that follows @event.
 * Return: false: @event cannot happen in @state, which stays. */
bool mst_job_enter(enum mst_job_state *state, enum mst_job_event event);

struct mst_job {
	const struct mst_server_options *o; /* at a follower changed by what its leader has said */
	struct mst_networks networks;       /* that workers may come over */
	struct mst_channels channels;
	struct mst_ports ports;          /* --data-port, from the start on */
	struct mst_frontend *front;      /* the data side ends its waits */
	uint32_t cores;                  /* for the data side's threads; 0: one */
	uint32_t processors;             /* of this process; 0: not known */
	struct mst_recording *recording; /* where gradients' ends go; NULL: nowhere */

	enum mst_job_state state;
	struct mst_reason why; /* why the job ended */
	int error;             /* FAILED: the error that workers are told, */
	/* but those of an earlier generation, whose next one has not begun, try on elsewhere. */
	bool tries_on;
	uint64_t ended_ns;
	bool stopped;  /* the user has stopped the server: sessions that end now are no loss */
	bool for_good; /* stopped, and no other server takes its place */
	struct mst_goal goal;          /* the version that it ends with, at the leader */
	struct mst_reason asked;       /* why a worker asked for the end; "": none has */
	struct mst_identity asked_by;  /* the worker that asked */
	struct mst_reason worker_loss; /* how the last worker was lost */
	struct mst_reason server_loss; /* how the last server was lost */

	struct mst_terms terms;
	char saves[MST_RUN_LEN]; /* the name of this start in checkpoints; "": nothing is saved */
	struct mst_job_generation generation; /* at the leader */
	struct mst_job_workforce workforce;   /* at the leader: how many workers there are */
	/* It goes on at this server, which begins anew: with another number of workers, or, as a
	 * follower, because its leader does. */
	bool renews;
	struct mst_job_sets sets; /* of versions, that a worker has brought */
	struct mst_resume resume; /* the checkpoint that the job goes on from */
	struct mst_job_policies policies;
	struct mst_job_in_force in_force; /* at the leader */
	struct mst_plan plan;             /* length 0: no valid hello has come yet */
	/* The tensor table that the first hello has told of; NULL: it told of none. It is not whole
	 * before a worker has sent it. */
	struct mst_tensor_table *tensors;
	struct mst_tables tables;   /* that workers gave with their hellos */
	struct mst_metrics metrics; /* that workers have reported; the leader's */
	/* The bytes of the last state that was larger than --state-max, 0: none was; and whose. */
	uint64_t state_too_large;
	uint32_t state_of;
	/* How often a worker had something else than most after a version. */
	uint64_t differences;
	bool all_left;           /* it has ended because all workers have left */
	struct mst_reason apart; /* workers have ended with different states: says which; or "" */
	uint64_t session_bytes;  /* bytes that a worker's session needs at this server */
	bool *present; /* by rank: the worker has started, and its session has not ended */

	struct mst_server *server; /* the data side; NULL: there is none, or it is being made */
	/* the data side, even if it could only be made in part, is counted in `data_sides` */
	bool has_data_side;
	/* where workers ask for links, and the link maker answers */
	struct mst_link_listener *listener;
	struct mst_link_filter filter; /* for that; set before there is a listener */
	struct mst_requests requests;  /* to the data side */
	/* What mst_job_make() has made, until it is taken. */
	struct {
		struct mst_server *server;
		struct mst_link_listener *listener;
		int error;
		struct mst_reason cause;
	} made;
};

struct mst_job_cfg {
	const struct mst_server_options *options; /* checked; must outlive the job */
	const struct mst_networks *networks;      /* copied */
	struct mst_channels channels;             /* of its links, if there are certificates */
	struct mst_frontend *front;
	uint32_t cores, processors;
	struct mst_recording *recording; /* if the options say so, else NULL; outlives the job */
	struct mst_renewal renewal;      /* zeroed, or of the job in whose place this one comes */
};

/* Reads the options that are texts.
 * @why: on failure a sentence.
 * Return: 0 or -EINVAL. */
int mst_job_init(struct mst_job *j, const struct mst_job_cfg *cfg, struct mst_reason *why);
/* Frees the tables. The data side must be closed. Accepts zeroed memory. */
void mst_job_fini(struct mst_job *j);
/* Makes the tables by worker, when the number of workers is known. @sessions: the most there may be
 * at a time.
 * Return: 0 or -ENOMEM. */
int mst_job_tables(struct mst_job *j, uint32_t sessions);

static inline bool mst_job_is_over(const struct mst_job *j)
{
	return j->state == MST_JOB_FINISHED || j->state == MST_JOB_FAILED;
}

/* Is this server a follower? It is if the user has said where its leader is. */
static inline bool mst_job_follows(const struct mst_job *j)
{
	return j->o->join != NULL;
}

static inline uint32_t mst_job_servers(const struct mst_job *j)
{
	return j->o->servers;
}

/* Ends the job; @why is copied.
 * Return: false: it had ended before, and nothing is changed. */
bool mst_job_end(struct mst_job *j, enum mst_job_event how, const char *why, uint64_t now_ns);
/* Lets the job fail, if it has not ended before, and logs that. @error: what workers are told. */
void mst_job_fail(struct mst_job *j, int error, const char *why, uint64_t now_ns);
/* Logs that it has failed. */
void mst_job_tell_failure(const struct mst_job *j);
/* What workers are told if the job ends so, or a session; negative errno. */
int mst_job_finish_word(const struct mst_job *j, enum mst_finish_why why);
int mst_job_evict_word(const struct mst_job *j, enum mst_evict_why why);
/* The same if this server is stopped. */
int mst_job_stop_word(const struct mst_job *j);
/* Have workers come back with versions of which this server has nothing? Servers own. */
static inline bool mst_job_lacks_checkpoint(const struct mst_job *j)
{
	return j->generation.absent.number > 0 && j->o->owner == MUSTER_SERVERS_OWN &&
	       !mst_resume_is_set(&j->resume);
}
/* What workers are told when the job has failed. */
static inline int mst_job_failure_word(const struct mst_job *j)
{
	return j->tries_on ? MST_AGAIN : j->error;
}
/* What whoever comes now is told, when the job is over. */
int mst_job_over_word(const struct mst_job *j);
/* Is it over here because of another server, or of a standstill of this one, and goes on? Then this
 * server is to be started again. */
static inline bool mst_job_goes_on_elsewhere(const struct mst_job *j)
{
	return j->state == MST_JOB_FAILED && j->error == MST_AGAIN;
}
/* Fills in the message that tells workers or followers how the job ended. */
void mst_job_fill_end(const struct mst_job *j, struct mst_message *out);

/* The policy in force, or at first the one that the job starts with. */
static inline const struct mst_job_policy *mst_job_policy(const struct mst_job *j)
{
	return mst_job_policies_now(&j->policies);
}

/* ---- figures ---- */

/* The version that the job begins with, and the samples in it. Workers that come back may bring a
 * later one than the checkpoint has. */
static inline uint64_t mst_job_first_version(const struct mst_job *j)
{
	if (j->generation.newest.number > 0)
		return j->generation.now.began;
	return mst_resume_is_set(&j->resume) ? j->resume.kept.version : 0;
}
static inline double mst_job_first_samples(const struct mst_job *j)
{
	if (j->generation.newest.number > 0 && j->o->owner == MUSTER_WORKERS_OWN)
		return j->generation.newest.samples;
	return mst_resume_is_set(&j->resume) ? j->resume.kept.samples : 0;
}

/* So many ranks may be named by the records of versions that workers bring. */
static inline uint32_t mst_job_record_ranks(const struct mst_job *j)
{
	return j->workforce.record_ranks > j->o->workers ? j->workforce.record_ranks
							 : j->o->workers;
}
/* At the leader: the part of the vector that a server has. */
void mst_job_part(const struct mst_job *j, uint32_t server, uint64_t *first, uint64_t *count);
/* At the leader: fills in what a follower is told of the job, except address and token. */
void mst_job_appoint(const struct mst_job *j, uint32_t server, struct mst_appoint *out);
/* Is there memory for one more worker of a running job? Its memory was counted when the job began.
 * But the control group's limit may have been lowered since, or other processes in it have grown; a
 * server that takes more than there is is killed. @sessions: how many there are.
 * @why: a sentence.
 * Return: 0 or -ENOMEM. */
int mst_job_check_room(const struct mst_job *j, uint32_t sessions, struct mst_reason *why);

/* ---- the data side ---- */

/* What its net and its listener are of: one network, or mst_joint. */
static inline const struct mst_transport *mst_job_transport(const struct mst_job *j)
{
	return mst_networks_transport(&j->networks);
}

/* Can this host serve all workers of the job over its networks? This is checked at the start, not
 * when the first or the last of them has come. A network that is optional and cannot be is left out
 * from then on.
 * @why: a sentence.
 * Return: 0 or -errno. */
int mst_job_try_listener(struct mst_job *j, struct mst_reason *why);
/* Takes --data-port for this server, from now until mst_job_fini(): else the first hello, or the
 * appointment, would find that another process has it.
 * @why: a sentence.
 * Return: 0 or -errno. */
int mst_job_hold_port(struct mst_job *j, struct mst_reason *why);
/* Fix the figures of the job: the leader at the first valid hello, a follower at its appointment,
 * which must outlive the job.
 * @why: a sentence.
 * Return: 0: the data side is to be made; or -errno: the job is as before. */
int mst_job_lead(struct mst_job *j, const struct mst_hello *hello, struct mst_reason *why);
int mst_job_follow(struct mst_job *j, const struct mst_appoint *appoint, struct mst_reason *why);
/* Makes the data side of the job @job, with all its memory, which may take many seconds. Any thread
 * may do so: it uses nothing that changes before mst_job_take(). */
void mst_job_make(void *job);
/* The data side has been made, or could not be made.
 * @why: a sentence.
 * Return: 0 or -errno: the job is as it was before its figures were fixed. */
int mst_job_take(struct mst_job *j, struct mst_reason *why);
/* Are the figures fixed, and the data side is not there yet? */
static inline bool mst_job_is_being_made(const struct mst_job *j)
{
	return j->plan.vector.elems != 0 && j->server == NULL;
}
/* To be called when no thread makes or steps the data side any more: mst_job_hang_up() ends every
 * session; then the owner of the sessions frees their links; then mst_job_close() frees the data
 * side. Without a data side both do nothing. */
void mst_job_hang_up(struct mst_job *j);
void mst_job_close(struct mst_job *j);
/* A piece of the tensor table: checks it and keeps it. The data side is given the whole table.
 * Return: NULL, or what is wrong with it. */
const char *mst_job_take_tensors(struct mst_job *j, const struct mst_tensor_piece *piece);
/* The name of the job's optimiser, if it takes norms of tensors, else NULL. */
const char *mst_job_norms(const struct mst_job *j);
/* May the start state come, or does something depend on a table that is not there? */
bool mst_job_has_tensors(const struct mst_job *j);
/* Has the first hello told of a table that has not come yet? */
static inline bool mst_job_lacks_table(const struct mst_job *j)
{
	return j->tensors != NULL && !mst_tensor_table_is_whole(j->tensors);
}
/* Do the servers have the start state already, from a checkpoint? */
bool mst_job_has_state(const struct mst_job *j);
/* The bytes of a start state of so many elements that is sent; 0: none is. */
uint64_t mst_job_state_bytes(const struct mst_job *j, uint64_t elems);
/* What a worker of @rank that comes with this claim is told of the generation, which has begun. */
void mst_job_begins(const struct mst_job *j, uint32_t rank, const struct mst_claimed *claimed,
		    struct mst_begins *out);
/* Forgets the figures, so that the next hello fixes them. To be called after mst_job_close(),
 * before the job has started. */
void mst_job_forget(struct mst_job *j);
/* A number that grows with each round of the data thread's loop. An idle data thread is woken, so
 * that it makes a round before the next heartbeat. */
uint64_t mst_job_passes(struct mst_job *j);

#endif
