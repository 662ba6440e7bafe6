/* SPDX-License-Identifier: MIT */
/* What the files of ledger_watch.h share. */
#ifndef MST_TESTS_UNIT_SERVER_CORE_LEDGER_WATCH_STATE_H
#define MST_TESTS_UNIT_SERVER_CORE_LEDGER_WATCH_STATE_H

#include "tests/unit/server/core/ledger/ledger_watch.h"

/* The verdict of contribution `seq` of a session: what was decided, and how often. */
struct verdict {
	uint32_t counts, verdicts, recorded;
	enum muster_verdict verdict;
	uint64_t counted_in, tag;
	bool reported; /* by any shard, with this tag */
	bool passes;   /* it gets no verdict */
	bool full;     /* it completes a batch */
};

struct copying {
	uint64_t number, shards;
	uint32_t buffer;
};

struct visitor {
	struct mst_identity who;
	bool ended, leaving;
	bool start_called;
	uint64_t linked;  /* set of shards */
	bool far;         /* what it gets is sent: that takes as long as its link likes */
	bool sends_state; /* was told to, and has not */
	uint64_t epoch[MST_SLOTS_MAX];
	uint64_t asked, answered;
	uint64_t told;      /* the last header the leader has reported */
	uint64_t ask_after; /* it asked after this header */
	/* The ask that came with the header in this slot; number 0: there was none. */
	struct mst_lane_ask asks_with[MST_SLOTS_MAX];
	bool in_place, had_in_place;
	uint32_t reads, had;
	uint64_t has_version;
	bool grows; /* what it computes on that version grows until it is asked for */
	struct copying *copy;
	size_t copy_count;
	struct verdict *verdict;
	size_t verdict_count;
	bool pushed;
	bool lied;      /* it broke the protocol: its last header may not have been taken */
	uint64_t heard; /* it has acknowledged the verdicts up to here */
};

/* What was seen of a rank after the last event. */
struct standing {
	bool rests;
	bool held;       /* its ask waits for the next version, */
	size_t versions; /* and there were so many when that began */
};

struct watch {
	struct mst_ledger_cfg cfg;
	const struct mst_ledger *ledger;
	struct visitor **visitor;
	size_t visitor_count;
	uint32_t *buffer_of; /* by version */
	size_t version_count;
	size_t uncommitted; /* counted since the last commit */
	bool full_counted;  /* one of them completes a batch */
	uint64_t now_ns, opened_ns;
	struct mst_rule rule; /* of the open step */
	struct standing *standing;
	bool started, finished;
	bool settling, spoilt;
	uint64_t settled; /* by these shards, as a set */
	bool saving;
	uint32_t saved_buffer; /* saving: must not be written */
	bool lent;             /* the average; by these shards it has been returned, as a set: */
	uint64_t returned;
	char complaint[256];
};

/* Only the first complaint is kept. */
__attribute__((format(printf, 2, 3))) void watch_complain(struct watch *w, const char *format, ...);
/* Has the visitor started, and has its session not ended? */
bool watch_takes_part(const struct watch *w, const struct visitor *v);

/* ledger_watch_hint.c: a hint was decided. */
void watch_hint(struct watch *w, const struct visitor *v, const struct mst_decision *d);

#endif
