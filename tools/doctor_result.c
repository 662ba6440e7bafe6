/* SPDX-License-Identifier: MIT */
/* What a write test says of the way it went. Pure. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tools/doctor_try.h"
#include "tools/figure.h"

static void judge_failure(const struct mst_doctor_try *t, struct mst_findings *out)
{
	struct mst_finding *new = mst_finding_add(out, MST_FINDING_FAIL, t->check,
						  "a write of %s failed",
						  mst_bytes_text(MST_WRITE_BYTES).text);

	mst_finding_subject(new, "%s", t->subject);
	mst_finding_cause(new, "%s", t->report.why);
	if (strcmp(t->check, "shm") == 0)
		mst_finding_mend(new, "in a container: --shm-size and its memory limit; else the "
				      "limits of ulimit -a");
	else if (t->error == -EBADMSG)
		mst_finding_mend(new, "no gradient may pass here: other cable, port, driver or "
				      "firmware");
	else if (strcmp(t->check, "peer") == 0)
		mst_finding_mend(new, "is muster doctor --listen still there, does ping reach it, "
				      "and does a firewall drop UDP port 4791?");
	else if (t->error == -ENOMEM)
		mst_finding_mend(new, "what memlock above says");
	else
		mst_finding_mend(new, "dmesg | tail; ibv_devinfo -d %.*s",
				 (int)strcspn(t->subject, "/"), t->subject);
}

static void judge_mtus(const struct mst_doctor_try *t, struct mst_findings *out)
{
	const struct mst_write_card *own = &t->own, *peer = &t->report.peer;

	if (own->mtu == 0 || peer->mtu == 0 || own->mtu == peer->mtu)
		return;
	struct mst_finding *new = mst_finding_add(out, MST_FINDING_WARNING, "peer mtu",
						  "%u bytes at %s here, %u at %s of %s", own->mtu,
						  own->port, peer->mtu, peer->port, peer->host);
	mst_finding_subject(new, "%s", t->subject);
	mst_finding_cause(new, "the network interfaces under them have different MTUs; the smaller "
			       "counts, where it is heeded at all");
	mst_finding_mend(new, "the same on both hosts: ip link set IFACE mtu 4200");
}

void mst_doctor_judge_try(const struct mst_doctor_try *t, struct mst_findings *out)
{
	const struct mst_write_report *r = &t->report;
	char who[2 * MST_WRITE_NAME_LEN + 16] = "";

	if (t->error != 0) {
		judge_failure(t, out);
		return;
	}
	if (strcmp(t->check, "peer") == 0)
		(void)snprintf(who, sizeof(who), " to %s%s%s", r->peer.host,
			       r->peer.port[0] != '\0' ? " " : "", r->peer.port);
	struct mst_finding *new = mst_finding_add(
		out, MST_FINDING_OK, t->check, "wrote %s%s: every byte right, %s one way, %s/s",
		mst_bytes_text(MST_WRITE_BYTES).text, who, mst_figure_duration(r->latency_ns).text,
		mst_bytes_text((uint64_t)r->bytes_per_s).text);
	mst_finding_subject(new, "%s", t->subject);
	judge_mtus(t, out);
}
