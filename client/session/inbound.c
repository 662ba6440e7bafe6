/* SPDX-License-Identifier: MIT */
#include "client/session/inbound.h"

#include <errno.h>
#include <string.h>

#include "client/session/control.h"

static void copy_from(const struct mst_part *p, size_t offset, void *into, size_t bytes)
{
	memcpy(into, (const char *)p->link->inbound + offset, bytes);
}

static int take_session(struct mst_inbound *in, const struct mst_part *p, uint32_t which)
{
	struct mst_lane_session word;

	if (which >= MST_SESSION_WORDS)
		return -EPROTO;
	copy_from(p, p->layout.down_session[which], &word, sizeof(word));
	if (word.state == MST_SESSION_FINISHED)
		/* The leader's word alone counts. */
		return p->number == 0 ? mst_worker_ended(in->worker, word.version) : 0;
	if (word.state != MST_SESSION_ENDED)
		return -EPROTO;
	in->ended_by = p;
	if (word.error == MST_AGAIN && in->returns)
		mst_worker_go_adrift(in->worker);
	else
		mst_worker_fail(in->worker, mst_control_ending(word.error));
	return 0;
}

/* @low: the low bits of the grant's epoch, as far as @mask says that they are known. */
static int take_grant(struct mst_inbound *in, const struct mst_part *p, uint32_t slot, uint32_t low,
		      uint32_t mask)
{
	struct mst_lane_grant grant;

	if (slot >= p->layout.slots)
		return -EPROTO;
	copy_from(p, p->layout.down_grant[slot], &grant, sizeof(grant));
	if ((grant.epoch & mask) != low)
		return -EPROTO;
	return mst_worker_granted(in->worker, p->number, slot, grant.epoch);
}

static int take_verdict(struct mst_inbound *in, const struct mst_part *p, uint32_t slot)
{
	struct mst_lane_verdict verdict;

	if (slot >= p->layout.slots)
		return -EPROTO;
	copy_from(p, p->layout.down_verdict[slot], &verdict, sizeof(verdict));
	return mst_worker_judged(in->worker, p->number, slot, &verdict);
}

/* An answer, and before it the verdicts and grants that have come with it. */
static int take_answer(struct mst_inbound *in, const struct mst_part *p, uint32_t imm)
{
	uint32_t verdicts = mst_imm_verdicts(imm), grants = mst_imm_grants(imm);
	struct mst_lane_answer answer;
	int rc = 0;

	for (uint32_t slot = 0; slot < MST_SLOTS_MAX && rc == 0; slot++) {
		if (verdicts >> slot & 1u)
			rc = take_verdict(in, p, slot);
		if (rc == 0 && grants >> slot & 1u)
			rc = take_grant(in, p, slot, 0, 0);
	}
	if (rc != 0)
		return rc;
	copy_from(p, p->layout.down_answer, &answer, sizeof(answer));
	return mst_worker_answered(in->worker, p->number, &answer,
				   (const char *)p->link->inbound + p->layout.down_record);
}

static int take_arrival(struct mst_inbound *in, const struct mst_part *p, uint32_t imm)
{
	switch (mst_imm_kind(imm)) {
	case MST_IMM_SESSION:
		return take_session(in, p, mst_imm_slot(imm));
	case MST_IMM_GRANT:
		return take_grant(in, p, mst_imm_slot(imm), mst_imm_epoch(imm), MST_IMM_EPOCH_MASK);
	case MST_IMM_VERDICT:
		return take_verdict(in, p, mst_imm_slot(imm));
	case MST_IMM_ANSWER:
		return take_answer(in, p, imm);
	default:
		return -EPROTO;
	}
}

static void take_event(struct mst_inbound *in, const struct mst_net_event *ev)
{
	struct mst_part *p = ev->link->user;

	switch (ev->kind) {
	case MST_ARRIVED:
		in->links->moved |= 1u << p->number;
		if (take_arrival(in, p, ev->imm) == 0)
			break;
		in->odd = in->odd != NULL ? in->odd : p;
		mst_worker_fail(in->worker, -EPROTO);
		break;
	case MST_SENT:
		if (ev->cookie & MST_SENT_LENT)
			mst_worker_returned(in->worker, ev->cookie & MST_SENT_SLOT);
		mst_worker_sent(in->worker, ev->cookie & MST_SENT_SLOT);
		break;
	case MST_LOST:
		in->links->lost = p->lost = true;
		mst_worker_cut(in->worker);
		break;
	}
}

void mst_inbound_take(struct mst_inbound *in, const struct mst_net_event *ev, int count)
{
	for (int i = 0; i < count; i++)
		take_event(in, &ev[i]);
}
