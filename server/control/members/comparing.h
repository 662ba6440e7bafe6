/* SPDX-License-Identifier: MIT */
/*
 * Compares the model of a worker that wants to join with the model of the others. What its hello
 * tells is compared with what the options and the first hello have fixed: the length, the types,
 * the scales, and digests of the tensor table. A sentence says in what they differ. If both models
 * have tables, the worker is asked for its own, so that the sentence can name the first tensor that
 * differs. The table is compared piece by piece as it comes, and nothing of it is kept.
 *
 * Control thread only. No call blocks, sends or allocates.
 */
#ifndef MST_SERVER_CONTROL_MEMBERS_COMPARING_H
#define MST_SERVER_CONTROL_MEMBERS_COMPARING_H

#include "common/base/reason.h"
#include "server/control/members/followers.h"

/* Compares the hello of the worker with the connection @c. @why: on failure a sentence for the
 * worker.
 * Return: 0: it has the model of the others, or is the first; -EINVAL. */
int mst_comparing_hello(const struct mst_job *j, const struct mst_conn *c,
			const struct mst_hello *hello, struct mst_reason *why);

enum mst_comparing {
	MST_COMPARING_REFUSE, /* no tensor can be named: the worker is refused by its hello */
	/* The table of the job is on its way. The hello is to be handled again in a later step, for
	 * MST_FRONTEND_GRACE_NS at most once workers are let in, and while the job gathers. */
	MST_COMPARING_WAIT,
	MST_COMPARING_ASK, /* the worker is to be asked for its table: SEND_TABLE */
};
/* The hello of @c tells of another model than that of the job @l->job. What is to be done?
 * MST_COMPARING_ASK sets c->compares; what comes then is for mst_comparing_piece(). */
enum mst_comparing mst_comparing_begin(const struct mst_followers *f, struct mst_conn *c,
				       const struct mst_hello *hello, uint64_t now_ns);

/* Compares a piece of the table that a worker was asked for. @why: on failure a sentence.
 * Return: 0: so far they are the tensors of the job, and more are to come; -EINVAL: a tensor
 * differs, and @why is for the worker; -EBUSY likewise: the model that it was compared with is the
 * job's no more, and the worker may say its hello again; -EPROTO: @why says how the worker broke
 * the protocol, as mst_frontend_accuse() wants it: with a gap, or with the table of the job. */
int mst_comparing_piece(const struct mst_job *j, struct mst_conn *c,
			const struct mst_tensor_piece *piece, struct mst_reason *why);

#endif
