/* SPDX-License-Identifier: MIT */
/*
 * Messages of the control connection (TCP to the leader). A frame is a header of 12 bytes and a
 * body:
 *
 *   u32 magic "mstr" | u16 protocol | u16 kind | u32 body length, all little-endian
 *
 * A body is a list of fields, each with a tag and a length (fields.h), so that a release can add
 * fields that another does not know: message_fields.c has them all. Decoding checks everything and
 * reads nothing beyond the body. A decoded message has its strings inside and points nowhere,
 * except to STATE's data in the frame. Its strings are clean: common/base/text.h says what is
 * replaced.
 */
#ifndef MST_WIRE_MESSAGE_H
#define MST_WIRE_MESSAGE_H

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/reason.h"
#include "common/wire/figures.h"
#include "common/wire/lane.h"
#include "common/wire/origins.h"
#include "common/wire/part.h"
#include "common/wire/path.h"
#include "common/wire/rule.h"
#include "common/wire/table.h"
#include "muster/muster.h"

/* Releases with the same number understand each other. An optional field does not change it. */
#define MST_PROTOCOL 19u
/* The first whose bodies are lists of fields. From it on, STATUS is understood by all. */
#define MST_PROTOCOL_FIELDS 15u
#define MST_FRAME_HEADER 12u
#define MST_FRAME_BODY_MAX (1u << 20)
/* The longest frame that each of these has room for; test_wire.c holds the messages against it. */
#define MST_FRAME_STRANGER (4u << 10)   /* a server, of who has not been asked for more */
#define MST_FRAME_TO_WORKER (32u << 10) /* a worker */
#define MST_FRAME_PLAIN (80u << 10)     /* all others, without the data of a piece */
#define MST_STATE_CHUNK (256u << 10)
#define MST_TAKE_CHUNK (16u << 10) /* what a TAKE has at most */
#define MST_SECRET_LEN 16u         /* a single-use token */
#define MST_NAME_LEN 64u           /* with NUL */
#define MST_LISTENER_LEN 1024u     /* as long as a listener's address may be */
#define MST_POLICY_LEN 64u
#define MST_CAUSE_LEN 128u  /* why a policy has chosen a rule */
#define MST_NETWORK_LEN 16u /* the scheme of a network, such as "tcp" */
#define MST_OPTIMIZER_LEN 16u
#define MST_APPOINT_PARAMETERS 8u
#define MST_STATUS_RANKS 128u /* rows in one STATUS message, at most */
/* That are sent: with them a message has at most 64 KiB, which releases before this one take. */
#define MST_STATUS_RANKS_SENT 100u
#define MST_STATUS_POLICIES 8u /* the last that were in force */
#define MST_STATUS_METRICS 16u /* the first that workers named */

/* The error by which a server says that the worker may come back, in an ERROR and in a session
 * word: its session is over, or that of all, and the job may go on at another server. */
#define MST_AGAIN (-ERESTART)

enum mst_message_kind {
	MST_MSG_HELLO = 1, /* worker: let me join */
	MST_MSG_WELCOME,   /* leader: admitted; where to ask for links */
	MST_MSG_ERROR,     /* leader: refused or ended; then the connection closes */
	MST_MSG_START, /* worker: ready; offers a start state or not; asks for its first version */
	MST_MSG_SEND_STATE, /* leader: send the tensor table, and after it the start state */
	MST_MSG_STATE,      /* worker: a piece of the start state */
	MST_MSG_HEARTBEAT,  /* worker */
	MST_MSG_LEAVE,      /* worker: leaves; the seq of its last header */
	MST_MSG_FINISH,     /* worker: end the job, now or at a version; why */
	MST_MSG_FINISHED,   /* leader: the job has ended without a failure; why */
	/* anybody asks for the status; watch: and once more when the job ends */
	MST_MSG_ASK_STATUS,
	MST_MSG_STATUS,       /* leader: the job */
	MST_MSG_STATUS_RANKS, /* leader: rows of STATUS, in as many messages as needed, after it */
	/* Between the leader and a follower. HEARTBEAT goes both ways; the leader also sends ERROR
	 * and FINISHED, as to workers, and STATE: a piece of the follower's part. */
	MST_MSG_SERVE,      /* follower: wants to serve */
	MST_MSG_APPOINT,    /* leader: the job, and the follower's part of it */
	MST_MSG_READY,      /* follower: its listener is open */
	MST_MSG_EXPECT,     /* leader: this worker will ask for a link; follower: it may */
	MST_MSG_FORGET,     /* leader: the session has ended before its worker asked for a link */
	MST_MSG_STATE_DONE, /* follower: the start state has arrived */
	/* follower: the link of this token is lost; leader: ask for a link with this token */
	MST_MSG_RELINK,
	/* Shows that data threads run: the leader sends it to workers, for all servers; a follower
	 * to the leader, for itself. */
	MST_MSG_BEAT,
	/* worker: a piece of its tensor table, before its start state; leader: the same, to every
	 * follower */
	MST_MSG_TENSORS,
	/* An operator asks the leader for a change of the running job, and is told in a sentence
	 * that it is done (DONE), or why it cannot be (ERROR). */
	MST_MSG_POLICY, /* another policy */
	MST_MSG_REST,   /* a worker is to rest, or to return */
	MST_MSG_DONE,   /* leader: to a worker, too, that has given the version to end with */
	MST_MSG_REPORT, /* worker: a value that it has found out about a version */
	/* An operator asks the leader for more of these, and is answered in the same way. */
	MST_MSG_EVICT,   /* the session of a worker is to end */
	MST_MSG_END_JOB, /* the job is to end well; why */
	/* A worker that lacks versions which are gone gets another worker's state. */
	MST_MSG_BEHIND,       /* leader: you lack some; the newest version */
	MST_MSG_STATE_WANTED, /* leader: give your state; the number of the asking */
	MST_MSG_GIVE,         /* worker: a piece of its state; of 0 bytes in all: it has none */
	MST_MSG_TAKE,         /* leader: a piece of the state of another worker */
	MST_MSG_TOOK,         /* worker: it has all of the state with this number */
	/* leader: send your tensor table. Before the WELCOME: to be kept. In its place: it is not
	 * the job's, and the refusal is to name the tensor that differs. */
	MST_MSG_SEND_TABLE,
	/* The average of the weights, of one version. */
	MST_MSG_ASK_AVERAGE, /* worker: send it; the number of the asking */
	MST_MSG_AVERAGE,     /* leader to worker, and follower to leader: a piece of it */
	MST_MSG_FETCH, /* leader to follower: send these bytes of it, or do not read it any more */
	/* Workers that own the parameters agree on the state that they begin with. */
	MST_MSG_CLAIM, /* worker: what its state is made of */
	MST_MSG_AGREE, /* leader: what this worker is to do about it */
	/* While they train, the leader compares what they have after the same version. */
	MST_MSG_COMPARE, /* worker: what it has */
	MST_MSG_DIFFERS, /* leader: others have something else */
	MST_MSG_BEGINS,  /* leader: a generation has begun; in which versions a worker is */
	/* worker, before a start state that is a version: the record of that version, and of those
	 * before it that it has; in pieces, oldest first */
	MST_MSG_SET,
	MST_MSG_IN_FORCE, /* leader: the policy has been changed; to what */
	/* An operator asks the leader for another number of workers, as for the changes above. The
	 * leader tells workers and followers of it, before it ends the generation. */
	MST_MSG_WORKERS,
};

/* Where numbers are checked to be finite: musterd --guard. */
enum mst_guard {
	MST_GUARD_OFF,
	MST_GUARD_WORKER, /* servers at each version; workers at what they copy */
	MST_GUARD_FULL,   /* also workers at what was computed in place */
};

/* The name of a run of a job: 16 hexadecimal digits and a NUL. Checkpoints of one version by
 * different runs differ by it. */
#define MST_RUN_LEN 17u

/* A generation of a run: what the servers do from one start to the loss of one of them. */
struct mst_generation {
	char run[MST_RUN_LEN]; /* "": of none */
	uint64_t number;       /* from 1; 0: it has not begun */
	/* Drawn at the start. Each version has been made by one generation: two that began apart
	 * from each other may have made versions of the same number. */
	uint64_t id;
	uint64_t began; /* the version that it began with, */
	uint64_t made;  /* and the id of the generation that has made that version; 0: none has */
	uint64_t made_before; /* the same of the version before that */
};

/* The policy of a run, if it has been changed since its start. It outlives the servers: workers
 * bring it to those that come next, and the manifests of checkpoints have it. */
struct mst_in_force {
	uint64_t number; /* of the change, counted over all generations; 0: there was none, and */
	uint32_t forced; /* neither this: 1: it was asked for with --force; */
	char policy[MST_POLICY_LEN]; /* nor this, as it was typed */
};

/* How many workers a job has (PROTOCOL 11). It is known to whoever takes part, and comes back with
 * the workers: so a server that is started again by an old command line goes on with it. */
struct mst_workforce {
	uint32_t workers; /* in force; 0: nothing is known */
	uint32_t given;   /* --workers of the leader that has last begun with it, or changed it */
	uint64_t change;  /* grows with each other number; 0: the first one */
};

/* What a worker that comes back has. */
struct mst_returning {
	char run[MST_RUN_LEN];        /* of the generations that it was in; "": it was in none */
	uint64_t number;              /* of the one of its last outcome; 0: it has had none yet */
	uint32_t workers;             /* that this generation had */
	uint32_t record_ranks;        /* that its records might name: not fewer than the workers */
	uint64_t version;             /* of its last outcome, */
	uint64_t made;                /* which was made by the generation of this id; 0: by none; */
	uint64_t made_before;         /* the same of the version before that; 0 also: not known */
	double samples;               /* in all versions up to that */
	uint32_t incarnation;         /* of its last session */
	struct mst_in_force in_force; /* the newest that it has been told of */
	/* The last start that it has said START to: which number it was to have, and its id. The
	 * worker need not have had an outcome of that generation. Without any outcome the
	 * generation has begun, and the worker was told so. */
	uint64_t seen, seen_id;
	/* 1: the version was taken over with the state of another worker, and there was no outcome
	 * after that. So the others may be at a much later one. */
	uint32_t taken;
};

struct mst_hello {
	char job[MST_NAME_LEN];
	int32_t rank; /* -1: any */
	uint64_t elems;
	uint32_t type, result_type, owner; /* enums of muster.h */
	uint32_t pid;
	uint32_t comes_back; /* 1: it gives and takes states of workers */
	struct mst_table table;
	struct mst_origins origins; /* that it dials its links from */
	struct mst_returning returning;
	struct mst_workforce workforce; /* that it was told last */
};

/* A server of the job, and its part of the vector. */
struct mst_welcome_server {
	char address[MST_LISTENER_LEN]; /* the listener to dial */
	uint8_t token[MST_SECRET_LEN];
	uint64_t first, count; /* elements */
};

struct mst_welcome {
	char job[MST_NAME_LEN];
	char policy[MST_POLICY_LEN];
	uint32_t rank, incarnation, workers, slots;
	uint64_t elems;
	uint32_t type, result_type, owner;
	uint32_t buffers; /* version buffers in each server's published memory */
	uint64_t lease_ns, server_lease_ns, patience_ns;
	uint32_t guard;                   /* enum mst_guard */
	uint32_t norms;                   /* 1: contributions tell their norms */
	uint32_t checks;                  /* 1: contributions have checksums */
	uint32_t may_finish;              /* 1: a worker may end the job; 0: only an operator may */
	uint64_t first_version;           /* that the job began with, or goes on from */
	double first_samples;             /* in it, and all versions before */
	uint64_t state_max;               /* bytes of a state that a worker may give */
	uint32_t averages;                /* 1: servers keep a moving average of the parameters */
	struct mst_generation generation; /* began: 0 before its start */
	/* Servers own, and it has begun: of what the worker claims, versions after this one are
	 * void. */
	uint64_t stands;
	uint64_t server_patience_ns;  /* 0: a worker that is lost does not come back */
	uint32_t history;             /* workers own: versions that are kept */
	struct mst_in_force in_force; /* of a generation that has begun */
	uint32_t workers_given;       /* with `workers` the number in force, as struct */
	uint64_t workers_change;      /* mst_workforce has it */
	uint32_t record_ranks; /* ranks that records may name, if they are more than workers */
	uint64_t start_number; /* that it has, or is to have when it begins */
	uint32_t server_count;
	struct mst_welcome_server server[MST_SERVERS_MAX]; /* in the order of their parts */
	struct mst_path path;
	uint32_t verdict_count;
	struct muster_push_verdict verdict[MUSTER_TICKETS_MAX];
};

struct mst_serve {
	char job[MST_NAME_LEN];
	char schemes[MST_NAME_LEN]; /* of its networks, "shm,tcp" */
	uint32_t pid;
	struct mst_origins origins; /* that it dials its server link from */
};

/* The id of a checkpoint: 32 hexadecimal digits and a NUL. */
#define MST_SAVE_LEN 33u

struct mst_appoint {
	char job[MST_NAME_LEN];
	uint32_t index, servers; /* of the follower; 0 is the leader */
	uint64_t elems;          /* of the whole vector */
	uint64_t first, count;   /* of its part */
	uint32_t type, result_type, owner;
	uint32_t workers, slots;
	uint32_t record_ranks; /* ranks that records may name, if they are more than workers */
	uint32_t buffers;      /* in all */
	uint32_t entries;      /* contributions in a set, at most */
	uint32_t group, partials;
	uint32_t repeats; /* a rank may contribute again in a step: it needs partial sums */
	/* A row of the optimisers (common/optim), and all of its figures. Workers own: "". */
	char optimizer[MST_OPTIMIZER_LEN];
	uint32_t parameter_count;
	double parameter[MST_APPOINT_PARAMETERS];
	uint32_t averages;      /* a moving average of the parameters is kept */
	uint32_t distances;     /* each commit is compared with the version that COMMIT names */
	struct mst_table table; /* of the job's first hello */
	uint32_t guard;         /* enum mst_guard */
	uint32_t measures;      /* 1: the squares of every contribution are reported */
	uint32_t checks;        /* 1: contributions have checksums */
	uint64_t lease_ns, server_lease_ns, patience_ns;
	uint64_t server_patience_ns;
	char saves[MST_RUN_LEN];         /* versions are saved: the run's name; "": none are */
	uint32_t resumes;                /* the job goes on from a checkpoint: */
	uint64_t resumed_version;        /* of this version, */
	char resumed_save[MST_SAVE_LEN]; /* and with this save id */
	struct mst_path path;            /* of its links with workers and with the leader */
	char address[MST_LISTENER_LEN];  /* the leader's listener, for the server link */
	uint8_t token[MST_SECRET_LEN];
};

struct mst_expect {
	uint32_t rank, incarnation;
	uint8_t token[MST_SECRET_LEN]; /* of the worker's link, */
	struct mst_origins origins;    /* and from where it may be used; from a follower: none */
};

/* How many rounds a server's data thread has made of its loop; it makes none while it stands
 * still. */
struct mst_beat_server {
	uint64_t passes;
};

struct mst_beat {
	uint32_t count; /* servers; from a follower: 1, itself */
	struct mst_beat_server server[MST_SERVERS_MAX];
};

struct mst_error_message {
	int32_t code; /* negative errno */
	char reason[MST_REASON_LEN];
};

/* A piece of the record of a version: who is in it, by rank. */
#define MST_SET_SHARES 64u /* in a piece, at most */
struct mst_set_piece {
	uint64_t version;
	uint64_t made; /* by the generation of this id; 0: by none */
	double weight, lr_scale;
	uint32_t window;       /* of the rule that it was made under */
	uint32_t workers;      /* of the job when it was made; 0: not known */
	uint32_t first, total; /* which of the shares these are, of so many */
	uint32_t count;
	struct mst_lane_share share[MST_SET_SHARES];
};

/* How many contributions of a worker are in versions that it does not have. */
#define MST_COUNTED_MAX 64u
struct mst_counted_row {
	uint64_t version;
	uint64_t made; /* by the generation of this id */
	uint32_t count;
	uint32_t window; /* of the rule that it was made under */
};
struct mst_counted_list {
	uint32_t count;
	struct mst_counted_row row[MST_COUNTED_MAX]; /* oldest first */
};

/* A generation has begun. */
struct mst_begins {
	struct mst_generation generation;
	/* The worker comes back, and what it has leads to the version that the generation began
	 * with: in these versions after its own it is. */
	struct mst_counted_list counted;
	uint64_t stands;              /* as in the welcome */
	char policy[MST_POLICY_LEN];  /* that it begins under, */
	struct mst_in_force in_force; /* and, if that is the last change's, its number */
};

/* A start state that a worker may offer. */
/* What a worker offers that says START. */
enum mst_offer {
	MST_OFFER_NOTHING,
	MST_OFFER_STATE, /* a start state, or a whole copy of the version that it claims */
	/* It claims the first version of the run, with which no state came: each worker had its
	 * own. */
	MST_OFFER_STATELESS,
};

struct mst_start_offer {
	uint32_t offers;  /* enum mst_offer */
	uint64_t version; /* that it is of, in the job that it comes from */
	/* Why its links do not go over the networks that come before theirs; "": there are none. */
	char passed[MST_REASON_LEN];
};

/* A part of a worker's state, which the leader compares with those of other workers. */
struct mst_claim_part {
	char name[MST_NAME_LEN];
	char value[MST_NAME_LEN]; /* for people, where it is short; else "" */
	uint64_t digest;
	uint32_t kind; /* enum muster_part_kind */
};

struct mst_state_claim {
	uint64_t version; /* that the state is of, in the job that it comes from */
	uint32_t count;
	struct mst_claim_part part[MUSTER_PARTS_MAX];
};

/* What a worker does about its state. To give it, it sends it as a GIVE with the number
 * MST_AGREED_GIFT; to take it, it gets it as a TAKE with that number. */
enum mst_agree_what { MST_AGREE_DONE, MST_AGREE_GIVE, MST_AGREE_TAKE };
#define MST_AGREED_GIFT 0u /* the ledger asks for others, from 1 on */

struct mst_agree {
	uint32_t what;            /* enum mst_agree_what */
	uint32_t from;            /* the rank whose state all begin with, */
	uint64_t version;         /* which is of this version, as its claim says */
	uint32_t kernels;         /* 1: some workers compute with other kernels than others */
	char why[MST_REASON_LEN]; /* what differs here from that rank's, with both values; or "" */
};

/* What a worker has after a version. Other workers say the same of theirs. It has parts or digests
 * of tensors, not both: so the frame is as short as a leader reads it from a worker. */
struct mst_comparison {
	uint64_t version;
	uint32_t takes;   /* 1: if it differs, it wants the state of another worker */
	uint32_t last;    /* 1: it is the last version of the job, of which there may be several */
	uint32_t first;   /* the first tensor that has a digest, */
	uint32_t each;    /* and of so many tensors, from 1, one digest is */
	uint32_t section; /* of each of these, as the program numbers sections; 0: of all of it */
	uint32_t part_count;
	struct mst_claim_part part[MUSTER_PARTS_MAX];
	uint32_t count;
	uint64_t digest[MUSTER_COMPARE_MAX];
};

struct mst_differs {
	uint64_t version;
	uint32_t from;    /* a rank of those that have something else */
	uint32_t kernels; /* 1: one of the two came late, and computes with other kernels */
	char why[MST_REASON_LEN];
};

/* What a worker is to send, 0 or 1 each. It ends with a STATE in any case: without a state with an
 * empty one, of 0 bytes in all. */
struct mst_wanted {
	uint32_t tensors; /* the tensor table */
	uint32_t state;   /* the start state */
	uint32_t sets;    /* the sets of its last versions, before the state */
};

struct mst_state_piece {
	uint64_t offset, total; /* bytes */
	uint32_t length;
	const void *data; /* in the frame's buffer */
};

/* A piece of the state that a worker gives to others, or of the average. */
struct mst_handed {
	struct mst_state_piece piece; /* the first member, as its fields are read */
	uint64_t number;              /* of the asking */
	uint64_t version;             /* that the state is of */
	/* GIVE of a state of 0 bytes in all: the bytes of the one that is larger than the leader
	 * takes; 0: the worker has none */
	uint64_t too_large;
};

/* Bytes of a server's part of the average. */
struct mst_fetch {
	uint64_t number; /* of this reading; the pieces have it */
	uint64_t offset;
	uint64_t length; /* 0: nothing of it is read any more */
};

struct mst_policy_change {
	char policy[MST_POLICY_LEN];
	uint32_t force; /* as --force at the start */
};

struct mst_rest {
	uint32_t rank;
	uint32_t rests; /* 0: it is to return */
};

/* The name is not empty, the value is finite. */
struct mst_metric {
	char name[MST_NAME_LEN];
	double value;
	uint64_t version; /* that it was found out about */
};

/* What happened under a policy. */
struct mst_status_policy {
	char policy[MST_POLICY_LEN];
	MST_POLICY_FIGURES(MST_FIGURE_MEMBER)
};

/* What workers have reported under a name. */
struct mst_status_metric {
	struct mst_metric newest; /* of the newest version; of several, the last that came */
	uint32_t rank;            /* that reported it */
	uint64_t reports;         /* in all */
};

/* The network that a data link goes over. */
struct mst_status_link {
	char network[MST_NETWORK_LEN]; /* "": there has been no link yet */
	uint32_t encrypted;            /* 1: what the link carries is */
};

/* A server of the job, in the order of their parts. */
struct mst_status_server {
	uint32_t state;                  /* enum mst_server_state */
	char listener[MST_LISTENER_LEN]; /* "": none yet */
	MST_SERVER_FIGURES(MST_FIGURE_MEMBER)
	struct mst_status_link link; /* with the leader */
};
enum mst_server_state { MST_SERVER_AWAITED, MST_SERVER_JOINED, MST_SERVER_READY, MST_SERVER_GONE };

struct mst_status {
	char job[MST_NAME_LEN];
	char policy[MST_POLICY_LEN]; /* in force */
	/* If the policy changes its rule: the fixed policy that it is now, and why; else "". */
	char policy_now[MST_POLICY_LEN];
	char policy_why[MST_CAUSE_LEN];
	char next_policy[MST_POLICY_LEN]; /* comes into force; "": none */
	uint64_t next_since;              /* the first version that will be made under it */
	uint32_t policy_count;
	struct mst_status_policy under[MST_STATUS_POLICIES]; /* the last is in force */
	uint32_t state;                                      /* enum mst_job_state */
	uint32_t access;                                     /* who may join: enum mst_access */
	uint64_t state_too_large; /* of the last that was larger; 0: none was */
	uint32_t state_of;        /* the rank that could not give it */
	char why[MST_REASON_LEN]; /* FINISHED, FAILED: the reason */
	uint32_t server_count;
	struct mst_status_server server[MST_SERVERS_MAX]; /* the first leads */
	uint32_t metric_count;
	struct mst_status_metric
		metric[MST_STATUS_METRICS]; /* in the order of their first reports */
	uint32_t rank_count;                /* rows that follow */
	char run[MST_RUN_LEN];              /* which its generation is of; "": none is counted */
	MST_JOB_FIGURES(MST_FIGURE_MEMBER)
};

/* Initialisers of a status that knows nothing yet. */
#define MST_STATUS_NOTHING                                                                         \
	.loss = (double)NAN, .norm_median = (double)NAN, .saved_ns = MST_NOT_KNOWN,                \
	.goal = MST_NOT_KNOWN, .differences = MST_NOT_KNOWN, .fast_ready_ns = MST_NOT_KNOWN,       \
	.generation = MST_NOT_KNOWN, .kept_version = MST_NOT_KNOWN, .loss_costs = MST_NOT_KNOWN
#define MST_STATUS_RANK_NOTHING                                                                    \
	.norm = (double)NAN, .norm_max = (double)NAN, .heard_ns = MST_NOT_KNOWN,                   \
	.handed_in_ns = MST_NOT_KNOWN, .gone_at = MST_NOT_KNOWN, .straggler_ratio = (double)NAN,   \
	.straggler_ns = MST_NOT_KNOWN, .straggler_total_ns = MST_NOT_KNOWN,                        \
	.waited_ns = MST_NOT_KNOWN

/* The peers that may join a job, and ask for changes of it. */
enum mst_access {
	MST_ACCESS_LOCAL,        /* every user of the leader's host: it listens on loopback */
	MST_ACCESS_CERTIFICATES, /* every peer with a certificate, by its role */
	MST_ACCESS_INSECURE,     /* every peer that reaches the port */
};
enum mst_job_state { MST_JOB_GATHERING, MST_JOB_RUNNING, MST_JOB_FINISHED, MST_JOB_FAILED };

enum mst_rank_state {
	MST_RANK_ABSENT,
	MST_RANK_JOINED,
	MST_RANK_LIVE,
	MST_RANK_LEFT,
	MST_RANK_LOST,
	MST_RANK_EVICTED /* by an operator */
};

/* What is wrong with the speed of a rank: server/core/stragglers says how that is found. */
enum mst_straggler_kind {
	MST_STRAGGLER_NONE,
	MST_STRAGGLER_LATE,   /* more of its gradients miss their step than of the others' */
	MST_STRAGGLER_SLOW,   /* its gradients take longer than those of the fast ranks */
	MST_STRAGGLER_STALLED /* its present gradient takes much longer than the fast ranks' do */
};

struct mst_status_rank {
	uint32_t state;              /* enum mst_rank_state */
	uint32_t straggler;          /* enum mst_straggler_kind: what it is, or was last */
	struct mst_status_link link; /* the newest, with the leader */
	MST_RANK_FIGURES(MST_FIGURE_MEMBER)
};

struct mst_message {
	enum mst_message_kind kind;
	union {
		struct mst_hello hello;
		struct mst_welcome welcome;
		struct mst_error_message error;
		struct mst_start_offer start;
		struct mst_begins begins;
		struct mst_in_force in_force;
		struct mst_set_piece set;
		struct mst_wanted wanted; /* SEND_STATE */
		struct mst_state_piece state;
		struct mst_tensor_piece piece;
		uint64_t seq; /* LEAVE */
		struct {
			char why[MST_REASON_LEN]; /* FINISH, FINISHED, DONE, END_JOB */
			/* FINISH: the version that the job is to end with; 0: it is to end now.
			 * DONE, to a worker: the one that it ends with. */
			uint64_t goal;
		};
		uint32_t evicted;         /* EVICT: the rank */
		uint64_t number;          /* BEHIND: a version; STATE_WANTED, TOOK, ASK_AVERAGE */
		struct mst_handed handed; /* GIVE, TAKE, AVERAGE */
		struct mst_fetch fetch;
		struct mst_state_claim claim;
		struct mst_agree agree;
		struct mst_comparison comparison;
		struct mst_differs differs;
		uint32_t watch; /* ASK_STATUS */
		struct mst_policy_change change;
		struct mst_rest rest;
		struct mst_workforce workforce; /* WORKERS; of an operator: the number alone */
		struct mst_metric metric;       /* REPORT */
		struct mst_serve serve;
		struct mst_appoint appoint;
		char listener[MST_LISTENER_LEN]; /* READY */
		struct mst_expect expect;        /* EXPECT, FORGET: without a token */
		uint8_t token[MST_SECRET_LEN];   /* RELINK */
		struct mst_beat beat;
		struct mst_status status;
		struct {
			uint32_t count;
			struct mst_status_rank row[MST_STATUS_RANKS];
		} ranks;
	};
};

/* The length of the frame at the start of @buffer.
 * Return: > 0, perhaps more than @have; 0: not known yet; -EPROTO: no frame of muster, or of
 * another protocol version (@protocol, if not NULL, is set to the peer's version, 0 if the magic is
 * wrong); -EMSGSIZE: too long. What is asked and said of the status, and ERROR, have a length
 * whatever the version is, from MST_PROTOCOL_FIELDS on. */
int64_t mst_frame_length(const void *buffer, size_t have, uint32_t *protocol);

/* A field that a message was refused for: its sender says that it must be understood, and this
 * release does not know it. */
struct mst_unknown {
	uint16_t kind, tag; /* tag 0: there is none */
};

/* Decodes one whole frame. @unknown may be NULL.
 * Return: 0; -EPROTO: unknown kind, wrong length, a field that is missing, twice or out of range,
 * or that must be understood and is not known (then, and only then, @unknown has a tag). */
int mst_message_decode(const void *frame, size_t length, struct mst_message *out,
		       struct mst_unknown *unknown);

/* "sent a message HELLO with field 20, which ...": what its sender did, and what to do about it.
 * @unknown has a tag. */
struct mst_unknown_words {
	char text[192];
};
struct mst_unknown_words mst_unknown_say(const struct mst_unknown *unknown);

/* Encodes into @buffer.
 * Return: the frame's length, or -ENOSPC. */
int64_t mst_message_encode(const struct mst_message *msg, void *buffer, size_t room);

#endif
