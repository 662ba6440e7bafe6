/* SPDX-License-Identifier: MIT */
/* Sentences for users: what happened, to whom, with which numbers, and what to do. */
#ifndef MST_SERVER_CONTROL_JOB_SENTENCES_H
#define MST_SERVER_CONTROL_JOB_SENTENCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/reason.h"
#include "common/wire/message.h"
#include "server/core/ledger/ledger.h"
#include "server/options/options.h"

const char *mst_type_name(enum muster_type type);
const char *mst_owner_name(enum muster_owner owner);

/* Why the ledger refused a hello. */
void mst_sentence_refused(struct mst_reason *out, int error, const struct mst_hello *hello,
			  const struct mst_server_options *o);
/* The job goes on with @workers; which ranks are over, or have to come. */
void mst_sentence_renews(struct mst_reason *out, uint32_t workers,
			 const struct mst_server_options *o);
/* Why a rank may not join now, and when it may: after @wait_ns. */
void mst_sentence_too_often(struct mst_reason *out, const struct mst_hello *hello, uint64_t wait_ns,
			    const struct mst_server_options *o);
/* Why a session was ended. */
struct mst_eviction {
	uint32_t rank;
	enum mst_evict_why why;
	const char *link; /* what the transport said of the lost link; "": nothing */
	bool alone;       /* no other worker is in the job */
	/* A worker that has left: the numbers of its last contribution, as it has said, and of the
	 * last that came; else 0. */
	uint64_t announced, came;
};
void mst_sentence_evicted(struct mst_reason *out, const struct mst_eviction *loss,
			  const struct mst_server_options *o);
/* What a start that has failed lacks, where it is not each rank (--server-patience): added to its
 * sentence. @absent: as below; @outside: ranks of the generation before that are none of this one,
 * and have not come. */
void mst_sentence_gathered(struct mst_reason *out, const struct mst_gathered *g, const char *absent,
			   const char *outside, const struct mst_server_options *o);
/* Why the job ended. @absent: the ranks that are missing, as "1, 4" ("": none). */
void mst_sentence_finished(struct mst_reason *out, enum mst_finish_why why, const char *absent,
			   const struct mst_server_options *o);
/* The goal that a job with so many versions and samples has not reached: "10 of 1000 commits".
 * @commits, @of_samples: the goal; 0: there is none of that kind.
 * Return: false: it has reached its goal, or was given none. */
bool mst_sentence_short(struct mst_reason *out, uint64_t version, double samples, uint64_t commits,
			double of_samples);
/* Why the job has failed because of an element that is not finite. @ranks: the contributors to that
 * version; "": unknown. @servers: if there is one, the last good version is named too; of several,
 * another may still report an earlier version. */
void mst_sentence_spoilt(struct mst_reason *out, const struct mst_spoilt *spoilt, const char *ranks,
			 uint32_t servers);
/* What the rule will do: "commits after 4 of 5, 1 may be late". */
void mst_sentence_policy(struct mst_reason *out, const struct mst_rule *rule, uint32_t workers);

#endif
