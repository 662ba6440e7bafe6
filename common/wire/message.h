/* SPDX-License-Identifier: MIT */
/*
 * Messages of the control connection (TCP to the lead). A frame is a header of 12 bytes and a body:
 *
 *   u32 magic "mstr" | u16 protocol | u16 kind | u32 body length, all little-endian
 *
 * Bodies are fixed-width little-endian fields in the order of their struct; strings are u16 length
 * and bytes, without NUL. Decoding checks everything and reads nothing beyond the body; a decoded
 * message owns its strings in place and points into nobody's buffer but STATE's data.
 */
#ifndef MST_WIRE_MESSAGE_H
#define MST_WIRE_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "common/wire/lane.h"
#include "common/wire/part.h"
#include "common/wire/rule.h"
#include "muster/muster.h"

#define MST_PROTOCOL 1u
#define MST_FRAME_HEADER 12u
#define MST_FRAME_BODY_MAX (1u << 20)
#define MST_STATE_CHUNK (256u << 10)
#define MST_SECRET_LEN 16u /* a single-use token */
#define MST_NAME_LEN 64u   /* with NUL */
#define MST_DOOR_LEN 512u  /* as long as a transport's address may be */
#define MST_POLICY_LEN 64u
#define MST_SENTENCE_LEN 512u
#define MST_STATUS_RANKS 256u /* rows in one STATUS message */

enum mst_message_kind {
	MST_MSG_HELLO = 1, /* worker: let me join */
	MST_MSG_WELCOME,   /* lead: you are in; where to link */
	MST_MSG_ERROR,     /* lead: refused or ended; closes after it */
	MST_MSG_START, /* worker: ready; offers a start state or not; asks for its first version */
	MST_MSG_SEND_STATE,   /* lead: send yours */
	MST_MSG_STATE,        /* worker: a piece of it */
	MST_MSG_HEARTBEAT,    /* worker */
	MST_MSG_LEAVE,        /* worker: my last header had this seq */
	MST_MSG_FINISH,       /* worker: end the job; why */
	MST_MSG_FINISHED,     /* lead: the job has ended well; why */
	MST_MSG_ASK_STATUS,   /* anybody: status, please; watch: and once more when the job ends */
	MST_MSG_STATUS,       /* lead: the job */
	MST_MSG_STATUS_RANKS, /* lead: rows of STATUS, in as many messages as needed, after it */
	/* Between the lead and a member, a server of the same job; HEARTBEAT both ways, ERROR and
	 * FINISHED of the lead, as workers hear them; STATE of the lead: a piece of the member's
	 * range. */
	MST_MSG_SERVE,      /* member: let me serve */
	MST_MSG_APPOINT,    /* lead: the job, and which part of it is yours */
	MST_MSG_READY,      /* member: my door is open */
	MST_MSG_EXPECT,     /* lead: this worker will knock; member: it may */
	MST_MSG_FORGET,     /* lead: its session is over before it knocked */
	MST_MSG_STATE_DONE, /* member: the start state is there */
	MST_MSG_RELINK,     /* member: the link of this token is lost; lead: dial with this */
};

struct mst_hello {
	char job[MST_NAME_LEN];
	int32_t rank; /* -1: any */
	uint64_t elems;
	uint32_t type, result_type, owner; /* enums of muster.h */
	uint32_t pid;
};

/* A server of the job, and its part of the vector. */
struct mst_welcome_server {
	char address[MST_DOOR_LEN]; /* the door to dial */
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
	uint64_t lease_ns, patience_ns;
	uint32_t server_count;
	struct mst_welcome_server server[MST_SERVERS_MAX]; /* in the order of their parts */
	/* How both ends of a link over a fabric set their queue pairs: as verbs has them. */
	uint32_t ack_timeout, retries, traffic_class, service_level;
	int32_t pkey; /* -1: the path's own */
	uint32_t fate_count;
	struct muster_fate fate[MST_SLOTS_MAX];
};

struct mst_serve {
	char job[MST_NAME_LEN];
	char scheme[MST_NAME_LEN]; /* of its transport */
	uint32_t pid;
};

struct mst_appoint {
	char job[MST_NAME_LEN];
	uint32_t index, servers; /* of the member; 0 is the lead */
	uint64_t elems;          /* of the whole vector */
	uint64_t first, count;   /* of its part */
	uint32_t type, result_type, owner;
	uint32_t workers, slots;
	uint32_t buffers; /* in all */
	uint32_t entries; /* contributions in a set, at most */
	uint32_t group, folds;
	uint32_t repeats;   /* a rank may contribute again in a step: the folds are needed */
	uint32_t optimizer; /* enum mst_optimizer_kind */
	double lr, momentum;
	uint64_t lease_ns, patience_ns;
	/* As in a welcome: its links with workers and with the lead. */
	uint32_t ack_timeout, retries, traffic_class, service_level;
	int32_t pkey;
	char address[MST_DOOR_LEN]; /* the lead's door, for the link between the two */
	uint8_t token[MST_SECRET_LEN];
};

struct mst_expect {
	uint32_t rank, incarnation;
	uint8_t token[MST_SECRET_LEN]; /* of the worker's link */
};

struct mst_error_message {
	int32_t code; /* negative errno */
	char sentence[MST_SENTENCE_LEN];
};

struct mst_state_piece {
	uint64_t offset, total; /* bytes */
	uint32_t length;
	const void *data; /* in the frame's buffer */
};

/* A server of the job, in the order of their parts. */
struct mst_status_server {
	uint32_t state;          /* enum mst_server_state */
	uint64_t first, count;   /* elements; 0: not known yet */
	char door[MST_DOOR_LEN]; /* "": none yet */
};
enum mst_server_state { MST_SERVER_AWAITED, MST_SERVER_JOINED, MST_SERVER_READY, MST_SERVER_GONE };

struct mst_status {
	char job[MST_NAME_LEN];
	char policy[MST_POLICY_LEN];
	uint32_t state; /* enum mst_job_state */
	uint32_t workers, live;
	uint32_t shards;  /* threads that share the sums; 0: not known yet */
	uint64_t version; /* commits */
	double samples;
	double loss;         /* of the newest version; NaN: not told */
	uint64_t elapsed_ns; /* since the start, till the end */
	uint64_t step_mean_ns, step_p50_ns, step_p99_ns,
		step_max_ns; /* commit to commit, the first left out */
	/* How much longer the steps had been, had each waited for its late gradients. */
	uint64_t saved_ns;
	char why[MST_SENTENCE_LEN]; /* FINISHED, FAILED: the reason */
	uint32_t server_count;
	struct mst_status_server server[MST_SERVERS_MAX]; /* the first leads */
	uint32_t rank_count;                              /* rows that follow */
};
enum mst_job_state { MST_JOB_GATHERING, MST_JOB_RUNNING, MST_JOB_FINISHED, MST_JOB_FAILED };

enum mst_rank_state {
	MST_RANK_ABSENT,
	MST_RANK_JOINED,
	MST_RANK_LIVE,
	MST_RANK_LEFT,
	MST_RANK_LOST
};

struct mst_status_rank {
	uint32_t rank, incarnation, state; /* enum mst_rank_state */
	uint32_t awaited;                  /* the open step waits for it: 1 */
	uint64_t counted, late, stale, cancelled, refused;
	uint64_t ready_mean_ns; /* from the version's commit to its gradient's arrival */
	uint64_t ready_max_ns;
	uint64_t behind_mean_ns; /* how long after its step's commit a late gradient came */
	uint64_t waiting_ns;     /* awaited: how long the open step has been waiting for it */
};

struct mst_message {
	enum mst_message_kind kind;
	union {
		struct mst_hello hello;
		struct mst_welcome welcome;
		struct mst_error_message error;
		uint32_t offers; /* START */
		struct mst_state_piece state;
		uint64_t seq;               /* LEAVE */
		char why[MST_SENTENCE_LEN]; /* FINISH, FINISHED */
		uint32_t watch;             /* ASK_STATUS */
		struct mst_serve serve;
		struct mst_appoint appoint;
		char door[MST_DOOR_LEN];       /* READY */
		struct mst_expect expect;      /* EXPECT, FORGET: without a token */
		uint8_t token[MST_SECRET_LEN]; /* RELINK */
		struct mst_status status;
		struct {
			uint32_t count;
			struct mst_status_rank row[MST_STATUS_RANKS];
		} ranks;
	};
};

/* Bytes of a whole frame at the start of @buffer: > 0, perhaps more than @have; 0 not told yet;
 * -EPROTO no frame of ours, or of another protocol version (@protocol, where not NULL, is the
 * peer's, 0 if the magic is wrong); -EMSGSIZE too long. */
int64_t mst_frame_length(const void *buffer, size_t have, uint32_t *protocol);

/* Decodes one whole frame. -EPROTO: unknown kind, wrong length, a string or enum out of range. */
int mst_message_decode(const void *frame, size_t length, struct mst_message *out);

/* Encodes into @buffer. Returns the frame's length, or -ENOSPC. */
int64_t mst_message_encode(const struct mst_message *msg, void *buffer, size_t room);

#endif
