/* SPDX-License-Identifier: MIT */
/* The server's options: one table for flags, the libconfig file, --help and the man page. */
#ifndef MST_SERVER_OPTIONS_OPTIONS_H
#define MST_SERVER_OPTIONS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/config/option.h"
#include "common/optim/optim.h"
#include "common/optim/schedule.h"
#include "common/transport/fabric.h"
#include "common/transport/tls/credentials.h"
#include "common/wire/part.h"
#include "server/core/ledger/ledger.h"
#include "server/core/policy/policy.h"
#include "server/options/access.h"

#define MST_CHUNK_UNIT 4096u
/* What --optimizer auto means, of gradients and of differences of parameters. A momentum that is
 * left out is that of its row, or 0 under policies that count old gradients. */
#define MST_OPTIMIZER_GRADIENTS "sgd:lr=0.1"
#define MST_OPTIMIZER_DELTAS "add"

/* The value, less one, is an enum muster_type. */
enum mst_type_choice { MST_TYPE_AUTO, MST_TYPE_F32, MST_TYPE_BF16, MST_TYPE_F16 };

/* What --lr-scale says. */
struct mst_lr_scaling {
	enum { MST_LR_SCALE_AUTO, MST_LR_SCALE_LINEAR, MST_LR_SCALE_NONE, MST_LR_SCALE_SAMPLES } by;
	double batch; /* MST_LR_SCALE_SAMPLES: of a whole contribution */
};

/* The value, less one, is an enum mst_late. */
enum mst_late_choice { MST_LATE_AUTO, MST_LATE_DROP_CHOICE, MST_LATE_REJECT_CHOICE };

/* The peers that may end the job while it runs: its workers, too, or an operator alone. */
enum mst_finish_right { MST_FINISH_BY_WORKER, MST_FINISH_BY_OPERATOR };

/* The options as given; each row of mst_server_table fills one field. */
struct mst_server_options {
	const char *config; /* -c FILE */
	const char *listen; /* HOST:PORT of the control port */
	/* HOST:PORT of the leader, for a follower; NULL: this server is the leader */
	const char *join;
	struct mst_tls_files tls; /* none: plain streams */
	const char *partition;    /* "even", or a weight for each server, "2,1,1" */
	uint32_t servers;
	const char *job;
	const char *policy;
	const char *optimizer;
	const char *lr_schedule;
	/* The rate is at most this over the square of the distance between the parameters that a
	 * gradient was computed on and those that it moves; 0: no bound. */
	double lr_distance;
	double average; /* decay of the moving average of the parameters; 0: none */
	const char *log_level;
	const char *record; /* FILE; NULL or empty: no recording */
	uint32_t workers;
	uint32_t owner;    /* enum muster_owner: "servers|workers" */
	uint32_t weigh;    /* enum mst_weigh: "one|samples" */
	double norm_limit; /* 0: none */
	bool checksum;
	uint32_t guard;       /* enum mst_guard: "off|worker|full" */
	const char *lr_scale; /* "auto", "linear", "none", "samples:32" */
	uint32_t late;        /* enum mst_late_choice: "auto|drop|reject" */
	bool compensate;
	uint32_t late_start;   /* enum mst_late_start: "auto|now|commit" */
	const char *transport; /* "auto", "tcp", "shm,tcp" */
	struct mst_fabric_options fabric;
	uint32_t on_loss; /* enum mst_loss: "shrink|fail" */
	uint32_t slots;   /* 0: auto */
	uint64_t memory;  /* bytes; 0: auto */
	bool force;
	bool insecure;              /* listen beyond loopback without certificates */
	uint32_t finish;            /* enum mst_finish_right: "worker|operator" */
	uint64_t elems;             /* of the vector; 0: the first hello says it */
	uint32_t type, result_type; /* enum mst_type_choice: "auto|f32|bf16|f16" */
	uint64_t commits;           /* 0: no end */
	double samples;             /* 0: no end */
	uint64_t lease_ns, server_lease_ns, patience_ns;
	/* How long workers wait for another server in place of one that is lost; 0: they do not. */
	uint64_t server_patience_ns;
	uint64_t join_timeout_ns; /* 0: never */
	uint64_t stop_timeout_ns; /* 0: auto */
	uint64_t return_timeout_ns;
	uint32_t min_workers; /* 0: auto */
	uint64_t chunk;       /* bytes */
	uint32_t group, history, catch_up, buffers;
	uint64_t state_max; /* bytes */
	uint32_t shards;    /* 0: auto */
	const char *cpus;   /* "auto", or a list such as 0-3,8 */
	uint32_t spin_pauses, spin_yields;
	const char *state;            /* DIR; NULL or empty: nothing is saved */
	const char *checkpoint_every; /* versions or a duration */
	uint64_t checkpoint_rate;     /* bytes a second; 0: as fast as the disk */
	const char *resume;           /* DIR; NULL: the job begins anew */
	bool or_begin;
	const char *user; /* whom the process becomes, after what needs root; NULL or empty: none */
	bool no_core;     /* the process leaves no core dump */
	uint64_t budget;  /* bytes of a gradient to compute a budget for; 0: not asked for */
	bool print_config, help, version;
};

extern const struct mst_option mst_server_table[];

/* Does this server record how gradients end? */
static inline bool mst_server_options_record(const struct mst_server_options *o)
{
	return o->record != NULL && o->record[0] != '\0';
}

/* Does this server save versions? */
static inline bool mst_server_options_saves(const struct mst_server_options *o)
{
	return o->state != NULL && o->state[0] != '\0';
}

/* Does this server have certificates, so that its connections are by TLS? */
static inline bool mst_server_options_tls(const struct mst_server_options *o)
{
	return o->tls.cert != NULL && o->tls.cert[0] != '\0';
}

/* Tells which peers may join, by the address that this server listens on or joins. A host's name is
 * resolved, which takes as long as the resolver does.
 * @why: a sentence.
 * Return: 0; -EINVAL: anybody could, and the user has not said that it is meant. */
int mst_server_options_access(const struct mst_server_options *o, enum mst_access *out,
			      struct mst_reason *why);

/* May links of this server's job be encrypted? They are over networks that can. */
bool mst_server_options_encrypts(const struct mst_server_options *o);
/* Can a network of --transport encrypt what it sends? */
bool mst_server_options_may_encrypt(const struct mst_server_options *o);
/* Is all of the job on this host, as far as addresses say? */
bool mst_server_options_is_near(const struct mst_server_options *o);
/* Is its control port, or that of its leader, at loopback? */
bool mst_server_options_is_local(const struct mst_server_options *o);

/* Does this process become another user? */
static inline bool mst_server_options_becomes(const struct mst_server_options *o)
{
	return o->user != NULL && o->user[0] != '\0';
}

/* If nothing else is said: one minute where servers would go on from the checkpoint, else ten. */
#define MST_CHECKPOINT_EVERY "auto"

/* Reads --state and --checkpoint-every.
 * @why: a sentence.
 * Return: 0 or -EINVAL. */
int mst_server_options_checkpoints(const struct mst_server_options *o, struct mst_saves *out,
				   struct mst_reason *why);

/* Reads --optimizer, whose auto, and whose momentum if it is left out, follow --policy.
 * @why: a sentence.
 * Return: 0 or -EINVAL. */
int mst_server_options_optimizer(const struct mst_server_options *o, struct mst_optimizer *out,
				 struct mst_reason *why);
/* Reads it, and checks that it suits owner and policy. */
int mst_server_options_optimizer_check(const struct mst_server_options *o,
				       struct mst_optimizer *out, struct mst_reason *why);
/* What --optimizer says where a job goes on from a checkpoint that was written with the optimiser
 * @kept: what is left out is as there, if the policy and the rest of what is typed allow it.
 * Return: @text. */
char *mst_server_options_optimizer_kept(const struct mst_server_options *o, const char *kept,
					char text[MST_OPTIM_TEXT_LEN]);
/* Has a job that begins anew no momentum because its policy counts old gradients? */
bool mst_server_options_momentum_is_left_out(const struct mst_server_options *o);

/* Reads --lr-scale.
 * @why: a sentence.
 * Return: 0 or -EINVAL. */
int mst_server_options_lr_scale(const struct mst_server_options *o, struct mst_lr_scaling *out,
				struct mst_reason *why);

/* Reads --lr-schedule.
 * @why: a sentence.
 * Return: 0 or -EINVAL. */
int mst_server_options_schedule(const struct mst_server_options *o, struct mst_schedule *out,
				struct mst_reason *why);

/* Does the schedule reach all steps that are made under this rule?
 * @why: a clause.
 * Return: 0 or -EINVAL. */
int mst_server_options_schedule_suits(const struct mst_schedule *schedule,
				      const struct mst_rule *rule, struct mst_reason *why);

/* Has each version of the policy one gradient, or only gradients on the version before it, and no
 * other discount for staleness? Else --lr-distance says nothing of it.
 * @why: a clause.
 * Return: 0 or -EINVAL. */
int mst_server_options_distance_suits(double distance, const struct mst_policy *policy,
				      uint32_t workers, struct mst_reason *why);

/* Is the rate above 0 until the job ends, which is after so many samples (0: at no number of them)?
 * @why: a sentence.
 * Return: 0 or -EINVAL. */
int mst_server_options_schedule_lasts(const struct mst_server_options *o,
				      const struct mst_schedule *schedule, double samples,
				      struct mst_reason *why);

/* The policy that these options describe: --policy, --optimizer, --weigh, --lr-scale, --late,
 * --compensate, --late-start, --patience, --on-loss, --min-workers. What means nothing under the
 * policy is left out; mst_server_options_check() refuses it.
 * Return: 0 or -EINVAL. */
int mst_server_options_rule(const struct mst_server_options *o, struct mst_policy *out,
			    struct mst_reason *why);

/* The same with this optimiser, whatever --optimizer says.
 * @why: a sentence that does not name the option --policy.
 * Return: 0 or -EINVAL. */
int mst_server_options_policy(const struct mst_server_options *o,
			      const struct mst_optimizer *optimizer, struct mst_policy *out,
			      struct mst_reason *why);

/* The weight of each of o->servers, for mst_part_border().
 * Return: 0 or -EINVAL. */
int mst_server_options_partition(const struct mst_server_options *o,
				 uint32_t weights[MST_SERVERS_MAX], struct mst_reason *why);

/* When a wait for workers or servers that began at @since_ns ends by --join-timeout; MST_NEVER:
 * never. */
uint64_t mst_server_options_join_until(const struct mst_server_options *o, uint64_t since_ns);

struct mst_networks;
/* The networks that --transport means. A host's name is resolved, as by
 * mst_server_options_access().
 * @why: a sentence.
 * Return: 0 or -EINVAL. */
int mst_server_options_networks(const struct mst_server_options *o, struct mst_networks *out,
				struct mst_reason *why);

/* How long a server may be silent before it is given up. */
uint64_t mst_server_options_server_lease(const struct mst_server_options *o);
/* Does the job go on at other servers if one is lost? At a follower its leader says it. */
static inline bool mst_server_options_goes_on(const struct mst_server_options *o)
{
	return o->server_patience_ns != 0;
}
/* Does it go on there from the newest checkpoint of --state? Workers do not bring what servers
 * own. */
static inline bool mst_server_options_succeeds(const struct mst_server_options *o)
{
	return mst_server_options_goes_on(o) && mst_server_options_saves(o) &&
	       o->owner == MUSTER_SERVERS_OWN;
}
/* The directory with the checkpoint that the job goes on from; NULL: it begins anew. */
static inline const char *mst_server_options_resume(const struct mst_server_options *o)
{
	return o->resume == NULL && mst_server_options_succeeds(o) ? o->state : o->resume;
}
/* May it begin anew if there is no checkpoint at all? */
static inline bool mst_server_options_or_begin(const struct mst_server_options *o)
{
	return o->or_begin || (o->resume == NULL && mst_server_options_succeeds(o));
}
/* With fewer live workers a leader does not go on. */
uint32_t mst_server_options_min_workers(const struct mst_server_options *o);
/* How long a server that is stopped waits; @usual_ns: where the user has not said it. */
uint64_t mst_server_options_stop_timeout(const struct mst_server_options *o, uint64_t usual_ns);

/* Does all that depends on the number of workers suit it?
 * @why: a sentence.
 * Return: 0 or -EINVAL. */
int mst_server_options_workers_check(const struct mst_server_options *o, struct mst_reason *why);
/* Checks what one row of the table cannot: options that are missing; policy, optimiser and
 * addresses as texts; whether policy and optimiser suit the owner, the workers and the slots.
 * @why: a sentence.
 * Return: 0 or -EINVAL. */
int mst_server_options_check(const struct mst_server_options *o, struct mst_reason *why);

#endif
