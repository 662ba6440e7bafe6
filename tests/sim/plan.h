/* SPDX-License-Identifier: MIT */
/* What a world will be like, and what will go wrong in it: all from a seed, all printable, so that
 * a failure can be shortened by leaving faults out. To add a kind of fault: a name here and in
 * plan_print.c, and what it does in faults.c. */
#ifndef MST_TESTS_SIM_PLAN_H
#define MST_TESTS_SIM_PLAN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/wire/rule.h"
#include "muster/muster.h"

#define SIM_FAULTS_MAX 16u
#define SIM_WORKERS_MAX 40u
#define SIM_SERVERS_MAX 3u
#define SIM_COMMITS_MAX 255u
#define SIM_LOSSES_MAX 4u
#define SIM_ALL (-1)
#define SIM_HOSTS 8u /* that a rank may change between */
/* At which a job with a share of samples ends; it makes fewer. */
#define SIM_SAMPLES 1e7
/* Parameters of the optimiser LAMB. */
#define SIM_LAMB_BETA1 0.75
#define SIM_LAMB_BETA2 0.875
#define SIM_LAMB_EPSILON 0.125
#define SIM_LAMB_DECAY 0.25
/* Parameters of the optimiser LARS. */
#define SIM_LARS_DECAY 0.25
#define SIM_LARS_TRUST 0.5
#define SIM_LARS_EPSILON 0.125

/* A fault's target is a rank, or a server: SIM_SERVER leads. Servers are numbered as processes; in
 * the job followers are by the order in which they join. */
#define SIM_SERVER (-1)
static inline int sim_target_of_server(uint32_t server)
{
	return SIM_SERVER - (int)server;
}
static inline bool sim_target_is_server(int target)
{
	return target < 0;
}
static inline uint32_t sim_server_of_target(int target)
{
	return (uint32_t)(SIM_SERVER - target);
}

/* What the links of a world go over. */
enum sim_network {
	SIM_NEAR,  /* sim_near: all processes are on one host */
	SIM_FAR,   /* sim_far: each process has a host of its own */
	SIM_MIXED, /* both: who is on the same host as all servers is near, and others are far */
};

enum sim_fault_kind {
	SIM_FAULT_KILL,      /* the process dies, its kernel tells */
	SIM_FAULT_POWER_OFF, /* it dies, and nobody tells */
	SIM_FAULT_FREEZE,    /* it does not run for a while; its memory stays writable */
	SIM_FAULT_STALL,     /* the data path to it stands still for a while */
	SIM_FAULT_CUT,       /* its control connections are dead, and neither end is told */
	SIM_FAULT_RESET,     /* they are closed, both ends are told */
	SIM_FAULT_DELAY,     /* nothing goes over them for a while */
	SIM_FAULT_REJOIN, /* another process of the same rank comes, whatever became of the first */
	SIM_FAULT_DAWDLE, /* it is alive, and computes for long */
	SIM_FAULT_LEAVE,  /* it leaves when it next can */
	SIM_FAULT_FINISH, /* it asks for the end of the job */
	SIM_FAULT_SCRIBBLE, /* from now on it writes to its slots whenever it likes */
	SIM_FAULT_RUBBISH,  /* it puts headers and immediates that make no sense */
	SIM_FAULT_STOP,     /* the server is told to end; not of workers */
	SIM_FAULT_BREAK,    /* its data links are lost at both ends; both processes live */
	SIM_FAULT_DEAF,     /* its control side stands still for a while; not of workers */
	SIM_FAULT_HANG,     /* its data thread does; not of workers */
	SIM_FAULT_LOG,      /* who reads its log does, and it has much to say; not of workers */
	SIM_FAULT_SUSPEND,  /* every process stands still, as their host does; of the leader */
	SIM_FAULT_APART, /* the leader is cut off from most ranks, and another begins beside it */
	/* What an operator asks for, and no fault. */
	SIM_FAULT_POLICY, /* another policy is to come into force; of the leader */
	SIM_FAULT_REST,   /* it is to rest */
	SIM_FAULT_RETURN, /* it is not to rest any more */
	SIM_FAULT_KINDS
};

/* Beside enum mst_imm_kind: the commit of a version is executed. */
#define SIM_MOMENT_COMMIT 8u
#define SIM_MOMENTS 9u

static inline bool sim_fault_is_change(enum sim_fault_kind kind)
{
	return kind >= SIM_FAULT_POLICY && kind <= SIM_FAULT_RETURN;
}
/* Is anybody to suffer from it? Else it excuses nothing. */
static inline bool sim_fault_is_felt(enum sim_fault_kind kind)
{
	return kind != SIM_FAULT_LOG && !sim_fault_is_change(kind);
}

/* When a fault happens: at a time, or with the nth record of a kind to or from its target: when
 * a put of it begins, or a verdict, grant or commit is executed. */
struct sim_trigger {
	uint32_t moment; /* enum mst_imm_kind, or SIM_MOMENT_...; 0: at a time */
	int server;      /* between its target and this one, or executed there; SIM_ALL: any */
	uint32_t nth;
	uint64_t after_ns; /* from the world's beginning, or from that put */
};

struct sim_fault {
	enum sim_fault_kind kind;
	int target; /* rank, or of a server */
	int with; /* of STALL, BREAK, SCRIBBLE, RUBBISH: towards this server; SIM_ALL: everybody */
	struct sim_trigger when;
	uint64_t span_ns;
	char policy[32]; /* of POLICY */
	bool left_out;   /* not to happen: a failure is being shortened */
};

/* How a worker lives. */
struct sim_manners {
	uint64_t arrives_ns;                     /* from the world's beginning */
	uint64_t compute_min_ns, compute_max_ns; /* for a gradient */
	uint32_t pieces;                         /* in which it is written */
	double range_chance;                     /* that a piece is handed over at once */
	double abandon_chance, keep_chance, pull_chance, sum_chance;
	double wait_chance;    /* that it waits right after a push that keeps */
	double average_chance; /* that it asks for the average after a wait */
	bool registers;        /* it computes in registered memory of its own, and lends it */
	bool into;             /* results go to memory of its own */
	bool trains;           /* it has muster_train() go round */
	/* MIXED: bit by bit, is the first process of this rank on a host of its own, the second,
	 * and so on? After the last bit it begins anew. */
	uint32_t apart;
};

/* How versions are saved, and to what disk. */
struct sim_saves {
	bool wanted;
	char every[16];   /* --checkpoint-every */
	uint64_t commits; /* the same, if it is a number; 0: it is none */
	uint64_t most_ns, slow_ns;
	double slow_chance, fail_chance;
	int hangs;           /* the server whose disk does not answer ... */
	uint64_t hangs_from; /* ... from this piece of work on; -1: none */
	/* When all have gone home, another job goes on from the newest checkpoint: with so many
	 * servers; 0: none does. */
	uint32_t then_servers, then_weight[SIM_SERVERS_MAX];
	uint64_t then_commits; /* more */
	bool resumes;          /* this is that job */
};

/* Where it is wanted, other servers take the place of those that are lost, in the same job. */
struct sim_generations {
	bool wanted;
	bool ranks;                       /* processes of ranks are lost, too */
	uint64_t patience_ns;             /* --server-patience */
	uint64_t return_ns;               /* --return-timeout; 0: the default */
	bool apart;                       /* a leader is cut off from ranks: all but these */
	uint64_t keeps;                   /* set of ranks */
	uint64_t beside_ns;               /* from the cut until another begins beside it */
	uint64_t next_ns[SIM_LOSSES_MAX]; /* from the loss until the next ones begin; by loss */
};

struct sim_plan {
	uint64_t seed;
	enum sim_network network;
	uint32_t workers;
	char policy[32], optimizer[96];
	bool adaptive;        /* the policy chooses the quorum of its rule, */
	bool backs_up;        /* by gain and time (dbw), and else by losses (adasync) */
	double switches_at;   /* from so many samples on bsp is async (syncswitch); 0: never */
	struct mst_rule rule; /* what they come to */
	double lr, momentum;
	double clip; /* the norm that a longer mean is scaled down to; 0: none is */
	bool lars;   /* the rate of each tensor follows its norms, */
	bool lamb;   /* or those of the step of Adam */
	bool add;
	double distance;   /* --lr-distance; 0: the rate has no such bound */
	double average;    /* what is left of the average of the weights; 0: there is none */
	bool deltas;       /* contributions are differences of parameters */
	uint32_t tensors;  /* with scales, in the table of each worker; 0: there is none */
	double norm_limit; /* 0: none */
	bool checks;       /* contributions have checksums */
	bool marks;        /* versions are marked before they are written */
	bool guarded;      /* what is not finite is not published */
	double nan_chance; /* that a gradient has a NaN; above 0 where it is guarded alone */
	enum muster_owner owner;
	enum muster_type type, result_type;
	uint64_t elems;
	uint32_t servers, weight[SIM_SERVERS_MAX];
	uint64_t server_comes_ns[SIM_SERVERS_MAX];
	bool server_apart[SIM_SERVERS_MAX]; /* MIXED: that server is not on the leader's host */
	uint32_t shards;                    /* of each server */
	uint32_t group, buffers, history, slots; /* slots 0: auto */
	uint64_t commits;
	uint64_t lease_ns, patience_ns, join_ns;
	bool slow_network, slow_server;
	double preemption;
	struct sim_saves saves;
	struct sim_generations generations;
	struct sim_manners manners[SIM_WORKERS_MAX];
	struct sim_fault fault[SIM_FAULTS_MAX];
	uint32_t fault_count;
};

/* As long as one server may be silent, to another as to workers: what --server-lease is. */
static inline uint64_t sim_plan_server_lease_ns(const struct sim_plan *p)
{
	return 3 * p->lease_ns;
}

/* Worlds in which other servers take the place of lost ones lose ranks from now on, where they have
 * three workers or more. */
void sim_plan_lose_ranks(void);
/* @network: "near", "far", "mixed", or NULL: any. Return: there is such a network. */
bool sim_plan_make(uint64_t seed, const char *network, struct sim_plan *out);
const char *sim_network_name(enum sim_network network);
/* The host that a server is on; and the one that a process of this rank is on, before which so many
 * of the rank were there. No two ranks have the same host, but for the leader's. */
uint32_t sim_plan_host_of_server(const struct sim_plan *p, uint32_t server);
uint32_t sim_plan_host_of_worker(const struct sim_plan *p, uint32_t rank, uint32_t before);
/* What follows from the seed of how versions are saved. */
void sim_plan_draw_saves(struct sim_plan *p);
/* The job that goes on, in which nothing goes wrong. */
void sim_plan_go_on(const struct sim_plan *p, struct sim_plan *out);
/* Its tensor of that number. */
struct muster_tensor sim_plan_tensor(const struct sim_plan *p, uint32_t number);
void sim_plan_print(const struct sim_plan *p, FILE *out);
const char *sim_fault_name(enum sim_fault_kind kind);
/* As --late-start has it. */
const char *sim_late_start_name(enum mst_late_start late_start);

/* Does any fault hit this target, or anybody at all? Only those that can be felt count. */
/* Makes the policy one that chooses its quorum, in some worlds where it can. */
void sim_plan_adapt(struct sim_plan *p);
/* The bound of the rate, where the policy has one gradient in each version; and the average of the
 * weights. */
void sim_plan_draw_distance(struct sim_plan *p);
void sim_plan_draw_average(struct sim_plan *p);
/* May the job change to a policy of this rule? */
bool sim_plan_allows(const struct sim_plan *p, const struct mst_rule *rule);
/* Draws what the servers look at in contributions. */
void sim_plan_look(struct sim_plan *p);
bool sim_plan_hits(const struct sim_plan *p, int target);
bool sim_plan_is_calm(const struct sim_plan *p);
/* Does the rate of a tensor follow norms? */
static inline bool sim_plan_trusts(const struct sim_plan *p)
{
	return p->lars || p->lamb;
}
/* Does each version wait for norms, or for the distance that its gradient comes from? */
static inline bool sim_plan_reduces(const struct sim_plan *p)
{
	return p->clip != 0 || sim_plan_trusts(p) || p->backs_up || p->distance > 0;
}
/* Does an operator ask for anything? */
bool sim_plan_changes(const struct sim_plan *p);
/* Does such a fault hit anybody of that kind? @fault: "cut@follower", "hang@leader",
 * "kill@rank". "saves": are versions saved? "generations": do other servers take the place of those
 * that are lost? */
bool sim_plan_has(const struct sim_plan *p, const char *fault);
/* The server whose log is blocked; -1: none. */
int sim_plan_blocks_log_of(const struct sim_plan *p);
/* Is no server hit, or, where there are several, only so that nobody may lose anything by it? */
bool sim_plan_servers_hold(const struct sim_plan *p);

#endif
