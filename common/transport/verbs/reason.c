/* SPDX-License-Identifier: MIT */
/* Sentences for errors of verbs, which say what a person can do. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/reason.h"
#include "common/transport/verbs/verbs.h"

/* Why the InfiniBand connection manager says that it has rejected a connection. */
#define REJECT_NO_SERVICE 8
#define REJECT_BY_CONSUMER 28

/* Why a send of the outbound pair failed. */
static const char *sends_cause(enum ibv_wc_status status)
{
	switch (status) {
	case IBV_WC_RETRY_EXC_ERR:
		return "it is dead, frozen or unreachable, or the path loses what is sent: check "
		       "the link, and the MTU on both ends (muster doctor)";
	case IBV_WC_RNR_RETRY_EXC_ERR:
		return "it has posted no receive for what it was told: another version of muster, "
		       "or broken";
	case IBV_WC_REM_ACCESS_ERR:
	case IBV_WC_REM_INV_REQ_ERR:
	case IBV_WC_REM_OP_ERR:
	case IBV_WC_REM_INV_RD_REQ_ERR:
		return "it refused a write to the memory it had named: it is ending, or broken";
	case IBV_WC_LOC_LEN_ERR:
	case IBV_WC_LOC_QP_OP_ERR:
	case IBV_WC_LOC_PROT_ERR:
		return "the device of this host refused a request of muster's: please report this";
	case IBV_WC_FATAL_ERR:
	case IBV_WC_GENERAL_ERR:
	case IBV_WC_RESP_TIMEOUT_ERR:
		return "the device of this host is in trouble: see the kernel's log";
	default:
		return "the connection broke";
	}
}

static int of_sends(struct mst_verbs_rail *r, const struct ibv_wc *wc, struct mst_reason *why)
{
	struct mst_verbs_tries tries = mst_verbs_tries(r->link->home->fabric.link_timeout_ns);
	double try_s = 4.096e-6 * (double)(UINT64_C(1) << tries.timer);

	if (wc->status == IBV_WC_RETRY_EXC_ERR)
		mst_reason_set(why,
			       "no acknowledgement from %s over %s at %s in %d tries of %.3g s: %s",
			       r->peer, mst_verbs_rail_device(r), r->own, tries.retries + 1, try_s,
			       sends_cause(wc->status));
	else
		mst_reason_set(why, "sending to %s over %s failed (%s): %s", r->peer,
			       mst_verbs_rail_device(r), ibv_wc_status_str(wc->status),
			       sends_cause(wc->status));
	/* A refused write is what a dying process looks like, too. */
	return wc->status == IBV_WC_RNR_RETRY_EXC_ERR ? -EPROTO : -EPIPE;
}

/* The inbound pair fails by what the peer does: a write beyond its memory, with a key that is not
 * its, of a kind that is not allowed; a message where none is expected. Many devices only flush its
 * receives then, as they do when the device itself goes, which was asked for first. */
static int of_receives(struct mst_verbs_rail *r, const struct ibv_wc *wc, struct mst_reason *why)
{
	mst_reason_set(why,
		       "%s did over %s what its queue pair may not (%s): a write outside of its "
		       "own memory, or no write at all; it is broken, or hostile",
		       r->peer, mst_verbs_rail_device(r), ibv_wc_status_str(wc->status));
	return -EPROTO;
}

void mst_verbs_reason_removed(struct mst_verbs_rail *r)
{
	mst_reason_set(&r->link->link.why, "RDMA device %s, at %s, was removed while it was in use",
		       mst_verbs_rail_device(r), r->own);
}

/* Whatever a device that goes breaks on its way would else be blamed on the peer. */
static bool of_device(struct mst_verbs_rail *r)
{
	int rc = mst_verbs_rail_check_device(r);

	if (rc == -ENODEV)
		mst_verbs_reason_removed(r);
	else if (rc != 0)
		mst_reason_set(&r->link->link.why,
			       "RDMA device %s has lost its address %s while it was in use",
			       mst_verbs_rail_device(r), r->own);
	return rc != 0;
}

int mst_verbs_reason_completion(struct mst_verbs_rail *r, const struct ibv_wc *wc)
{
	struct mst_reason *why = &r->link->link.why, unused;

	if (why->text[0] != '\0')
		why = &unused;
	else if (of_device(r))
		return -EPIPE;
	return wc->wr_id != 0 ? of_sends(r, wc, why) : of_receives(r, wc, why);
}

void mst_verbs_reason_gone(struct mst_verbs_rail *r, const struct rdma_cm_event *event)
{
	struct mst_reason *why = &r->link->link.why;

	if (why->text[0] != '\0' || of_device(r))
		return;
	switch (event->event) {
	case RDMA_CM_EVENT_DISCONNECTED:
		mst_reason_set(why,
			       "%s has ended the connection: its process is over, or its device "
			       "gone",
			       r->peer);
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		mst_verbs_reason_removed(r);
		break;
	default:
		mst_reason_set(why, "the connection to %s broke (%s, status %d)", r->peer,
			       rdma_event_str(event->event), event->status);
	}
}

/* ---- dialling ---- */

static int rejected_by_muster(const struct mst_verbs_rail *r, struct mst_reason *why)
{
	const struct mst_verbs_answer *a = &r->answer;

	if (a->version != MST_VERBS_VERSION)
		return mst_reason_fail(
			why, -EPROTONOSUPPORT,
			"%s speaks version %u of muster's verbs transport, this end %u; use "
			"the same version of muster on both sides",
			r->peer, a->version, MST_VERBS_VERSION);
	if (a->error == -EACCES)
		return mst_reason_fail(
			why, -EACCES,
			"%s sent this end away, which called from %s: the token of the welcome is "
			"used up, or for other figures, or not for this address (the server's log "
			"says which; MUSTER_DATA_ADDRESS names this host's to the server, "
			"--data-address those of a server)",
			r->peer, r->own);
	if (a->error < 0 && a->error > -4096)
		return mst_reason_fail(why, a->error,
				       "%s cannot take this link: %s (its log says more)", r->peer,
				       strerror(-a->error));
	return mst_reason_fail(why, -EPROTO, "%s refused without a reason", r->peer);
}

static int rejected(const struct mst_verbs_rail *r, int reason, struct mst_reason *why)
{
	if (reason == REJECT_BY_CONSUMER && r->answer_bytes == sizeof(r->answer) &&
	    r->answer.magic == MST_VERBS_MAGIC)
		return rejected_by_muster(r, why);
	if (reason == REJECT_NO_SERVICE)
		return mst_reason_fail(
			why, -ECONNREFUSED,
			"nobody listens there any more: %s has no listener at that port", r->peer);
	return mst_reason_fail(why, -ECONNREFUSED, "%s refused the connection (reason %d)", r->peer,
			       reason);
}

/* A network that is not the peer's, and a firewall, look alike from here. */
#define FIX                                                                                        \
	"the path is dead, a firewall drops %s, or these are addresses of two networks (those of " \
	"the data network are named by --data-address at the server, MUSTER_DATA_ADDRESS at a "    \
	"worker)"

int mst_verbs_reason_silent(const struct mst_verbs_rail *r, int error, uint64_t waited_ns,
			    struct mst_reason *why)
{
	double s = (double)waited_ns / 1e9;

	switch (r->cm) {
	case MST_VERBS_CM_NONE:
		return mst_reason_fail(why, error,
				       "%s does not answer when %s asks for it (for %.3g s): " FIX,
				       r->peer, r->own[0] != '\0' ? r->own : "this host", s, "ARP");
	case MST_VERBS_CM_ADDRESS:
		return mst_reason_fail(
			why, error,
			"nobody tells the way from %s over %s to %s (for %.3g s): is there "
			"a subnet manager?",
			r->own, mst_verbs_rail_device(r), r->peer, s);
	case MST_VERBS_CM_ROUTE:
		return mst_reason_fail(
			why, error,
			"%s does not answer connection requests from %s over %s (for %.3g "
			"s): it is busy, " FIX,
			r->peer, r->own, mst_verbs_rail_device(r), s, "UDP port 4791");
	default:
		return mst_reason_fail(
			why, error,
			"%s let %s in over %s, but has acknowledged nothing for %.3g s: "
			"check the MTU of both ends and of the path (muster doctor)",
			r->peer, r->own, mst_verbs_rail_device(r), s);
	}
}

static int of_attempt(const struct mst_verbs_rail *r, const struct rdma_cm_event *event,
		      struct mst_reason *why)
{
	int error = event->status < 0 ? event->status : -EHOSTUNREACH;

	switch (event->event) {
	case RDMA_CM_EVENT_REJECTED:
		return rejected(r, event->status, why);
	case RDMA_CM_EVENT_ADDR_ERROR:
		return mst_reason_fail(
			why, error,
			"no RDMA device of this host reaches %s%s%s (%s): check the "
			"address, and that both hosts are on one data network; muster "
			"doctor shows this host's devices and addresses",
			r->peer, r->own[0] != '\0' ? " from " : "", r->own, strerror(-error));
	case RDMA_CM_EVENT_ROUTE_ERROR:
		return mst_reason_fail(why, error, "there is no RDMA route to %s (%s)", r->peer,
				       strerror(-error));
	case RDMA_CM_EVENT_UNREACHABLE:
		return mst_reason_fail(
			why, -EHOSTUNREACH,
			"%s does not answer connection requests from %s over %s: " FIX, r->peer,
			r->own, mst_verbs_rail_device(r), "UDP port 4791");
	default:
		return mst_reason_fail(why, -EPIPE, "the connection to %s failed (%s, status %d)",
				       r->peer, rdma_event_str(event->event), event->status);
	}
}

void mst_verbs_reason_dial(struct mst_verbs_rail *r, const struct rdma_cm_event *event)
{
	struct mst_verbs_link *l = r->link;

	/* A link that was accepted, or that has been lost, is told of otherwise. */
	if (l->connector && l->queue.state == MST_QUEUE_IDLE && l->link.why.text[0] == '\0')
		l->error = of_attempt(r, event, &l->link.why);
}
