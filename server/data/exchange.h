/* SPDX-License-Identifier: MIT */
/*
 * What the control thread and the data thread say to each other: requests one way, notices the
 * other, over two rings. Nothing else is shared but what a message hands over.
 */
#ifndef MST_SERVER_DATA_EXCHANGE_H
#define MST_SERVER_DATA_EXCHANGE_H

#include <stdint.h>

#include "common/wire/message.h"
#include "server/core/ledger/ledger.h"
#include "server/data/saving.h"
#include "server/data/session.h"

/* The job as it stands, for `muster status`: filled by the data thread while it is lent to it. */
struct mst_snapshot {
	struct mst_status status;
	struct mst_status_rank *rank; /* status.workers of them */
};

enum mst_request_kind {
	MST_REQ_EVENT,    /* event: for the ledger */
	MST_REQ_LINKED,   /* session: its link is up; the data thread's until MST_NOTE_OVER */
	MST_REQ_SNAPSHOT, /* snapshot: lent until MST_NOTE_SNAPSHOT */
	/* At the leader. */
	MST_REQ_GATHER,      /* until_ns: a job that has not started by then fails */
	MST_REQ_PEER_LINKED, /* peer: a new link to follower peer.server, in place of any */
	MST_REQ_PEER_GONE,   /* peer: follower peer.server is lost for good */
	/* At a follower. */
	MST_REQ_DIAL, /* token: make a new link with the leader */
};

struct mst_request {
	enum mst_request_kind kind;
	union {
		struct mst_ledger_event event;
		struct mst_session *session;
		struct mst_snapshot *snapshot;
		uint64_t until_ns;
		struct {
			uint32_t server;
			uint64_t number; /* of the offer that made it */
			struct mst_link *link;
		} peer;
		uint8_t token[MST_TOKEN_LEN];
	};
};

enum mst_rest_outcome {
	MST_REST_DONE,
	MST_REST_ALREADY, /* it does so already */
	MST_REST_LAST,    /* nobody else takes part in the steps */
	MST_REST_BEHIND,  /* it lacks versions, and waits for the state of another worker */
	MST_REST_ABSENT,  /* it takes no part in the job, or that session is over */
};

enum mst_notice_kind {
	MST_NOTE_ADMITTED,   /* cookie, who, verdicts */
	MST_NOTE_REFUSED,    /* cookie, error */
	MST_NOTE_SEND_STATE, /* who is to send its start state */
	MST_NOTE_STARTED,    /* generation */
	MST_NOTE_SAVES,      /* the leader: a version is to be saved: kept, which is lent until this
			   server's MST_EV_SAVED is sent */
	MST_NOTE_SAVE,       /* saving: this server's part of that version, lent in the same way */
	/* lent: the average of a version, of this server's part; until this server's
	 * MST_EV_RETURNED is sent */
	MST_NOTE_LENT,
	MST_NOTE_SAVED,    /* the leader: saved: all servers have reported */
	MST_NOTE_EVICTED,  /* evict: who, why; just after its MST_NOTE_OVER, or before it */
	MST_NOTE_OVER,     /* session: to be freed */
	MST_NOTE_SNAPSHOT, /* it is filled */
	MST_NOTE_FINISHED, /* why, version */
	/* policy: the ledger has taken an MST_EV_POLICY, whose controller is not lent any more;
	 * that version is the first under it */
	MST_NOTE_TAKEN,
	/* policy: it is in force; or its quorum alone already is, for the step of that version */
	MST_NOTE_POLICY,
	/* policy: it cannot choose its rule, as the figures that it needs are missing */
	MST_NOTE_STUCK,
	/* dropped: with the first version of a policy, gradients that were on their way */
	MST_NOTE_DROPPED,
	/* refused: so many gradients in a row, and none was counted; said again at twice as many */
	MST_NOTE_ALL_REFUSED,
	MST_NOTE_EVICT_REFUSED, /* who: an MST_EV_EVICT would have made the job fail */
	MST_NOTE_REST_TAKEN,    /* rest: what has become of an MST_EV_REST */
	MST_NOTE_RESTS,         /* who rests, or has returned */
	MST_NOTE_STRAGGLER,     /* straggler: who is one now, or is none any more */
	MST_NOTE_BEHIND,        /* state: who lacks versions that are gone */
	MST_NOTE_WANT,          /* state: who is to give its state */
	MST_NOTE_HAND,          /* state: who gets what was given */
	MST_NOTE_HANDED,        /* nobody needs that any more */
	MST_NOTE_GOAL,          /* goal: of the job, after who has given a version to end with */
	/* peer: the link with that server is lost, at a follower that with the leader; it is to be
	 * made anew. */
	MST_NOTE_PEER_LOST,
	MST_NOTE_PEER_GONE,   /* peer: that server is lost for good; error: -EPROTO by its fault */
	MST_NOTE_PEER_LINKED, /* a follower: its link with the leader is up */
};

struct mst_notice {
	enum mst_notice_kind kind;
	struct mst_identity who;
	union {
		struct {
			uint64_t cookie;
			int error;
			/* ADMITTED: lent until its welcome has been sent, for nothing changes them
			 * before it has started, and before its welcome no message of it is heard;
			 * or until its MST_NOTE_EVICTED. */
			const struct mst_verdicts *verdicts;
			uint64_t number; /* ADMITTED: that the generation has, or is to have */
		} join;
		struct {
			enum mst_evict_why why;
			uint32_t server; /* the follower that reported why; 0: no follower did */
			/* As in the decision; at the leader alone. */
			uint64_t announced, came;
		} evict;
		struct mst_generation_view generation;
		const struct mst_kept *kept;
		struct mst_saving saving;
		struct {
			uint64_t version;
			bool failed;
			bool again; /* SAVES follows, and may come a little later */
		} saved;
		struct {
			uint64_t version;
			const float *average; /* NULL: the version is not finite */
		} lent;
		struct mst_session *session;
		struct {
			enum mst_finish_why why;
			uint64_t version;
			double samples;           /* in all versions; a follower does not know */
			struct mst_spoilt spoilt; /* SPOILT */
			/* SPOILT: in that version, "0, 1, 4"; "": unknown. JOIN_TIMEOUT, NOT_BEGUN:
			 * ranks of the generation before that are none of this one, and lack. */
			char ranks[96];
			struct mst_gathered gathered; /* JOIN_TIMEOUT, NOT_BEGUN */
		} finish;
		struct {
			uint64_t version;
			bool whole;
			/* POLICY: the policy in force has chosen another rule */
			bool adapts;
			struct mst_rule rule; /* POLICY: in force */
			/* POLICY, STUCK: of a policy that changes its rule; else "" */
			char now[MST_POLICY_LEN];
			char why[MST_CAUSE_LEN];
		} policy;
		struct {
			uint64_t version, count;
		} dropped, refused; /* refused: the version that is not made */
		struct {
			struct mst_straggler of;
			uint64_t fast_ns; /* how long gradients of the fast ranks take */
		} straggler;
		struct {
			bool rests;
			enum mst_rest_outcome outcome; /* REST_TAKEN */
		} rest;
		struct {
			uint64_t number, version; /* as the ledger has decided */
		} state;
		struct {
			struct mst_goal of_job;
			uint64_t asked;
			uint64_t newest; /* version, when the ledger heard of it */
		} goal;
		struct {
			uint32_t server;
			int error;
			uint64_t number; /* LOST: of the offer, or at a follower the dial */
		} peer;
	};
};

#endif
