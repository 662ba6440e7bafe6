/* SPDX-License-Identifier: MIT */
/* What the test of a way says, and what follows from its figures. Pure. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/doctor/try.h"
#include "tools/figure.h"

#define STEP_BYTES ((uint64_t)100 << 20) /* of a gradient, where no job is told */
#define SEVERAL 1.3                      /* so many times as fast is worth a word */
#define LOCAL_STEPS 8

static struct mst_figure duration(double seconds)
{
	return mst_figure_duration((uint64_t)(seconds * 1e9));
}

/* "112 MiB/s (0.94 Gbit/s)" */
struct rate_text {
	char text[64];
};

static struct rate_text rate(double bytes_per_s)
{
	struct rate_text t;
	double bits = bytes_per_s * 8;

	(void)snprintf(t.text, sizeof(t.text), "%s/s (%.3g %sbit/s)",
		       mst_bytes_text((uint64_t)bytes_per_s).text, bits / (bits < 1e9 ? 1e6 : 1e9),
		       bits < 1e9 ? "M" : "G");
	return t;
}

static struct mst_finding *say(const struct mst_way_report *r, struct mst_findings *out,
			       enum mst_finding_level level, const char *check, const char *found)
{
	struct mst_finding *new = mst_finding_add(out, level, check, "%s", found);

	mst_finding_subject(new, "%.79s", r->address);
	return new;
}

/* ---- ports ---- */

static void fix_control(const struct mst_way_report *r, struct mst_finding *new)
{
	char host[MST_WAY_HOST_LEN];

	mst_way_host(r->address, host);
	switch (r->control.error) {
	case -ECONNREFUSED:
		mst_finding_fix(new,
				"start muster doctor --listen on %s; if it is there, --peer "
				"takes the address that it prints",
				host);
		break;
	case -ETIMEDOUT:
	case -EHOSTUNREACH:
		mst_finding_fix(new,
				"let TCP port %s in there (its firewall, the security group of "
				"a cloud); ip route get %s; ping %s",
				strrchr(r->address, ':') + 1, host, host);
		break;
	case -ENOENT:
		mst_finding_fix(new, "getent hosts %s; or type the address itself", host);
		break;
	default:
		mst_finding_fix(new, "--peer takes the address that muster doctor --listen prints; "
				     "with certificates give --tls-ca, --tls-cert and --tls-key at "
				     "both ends, a server's where it listens");
	}
}

static void judge_control(const struct mst_way_report *r, struct mst_findings *out)
{
	char text[320], path[48] = "";

	if (r->control.error != 0) {
		struct mst_finding *new = say(r, out, MST_FINDING_FAIL, "control",
					      "no muster doctor was reached");
		mst_finding_cause(new, "%s", r->control.why.text);
		fix_control(r, new);
		return;
	}
	if (r->mtu > 0)
		(void)snprintf(path, sizeof(path), "; packets of up to %u bytes", r->mtu);
	(void)snprintf(text, sizeof(text), "the control port of %s is open: connected in %s, %s%s",
		       r->host, mst_figure_duration(r->connect_ns).text,
		       r->encrypted ? "encrypted, both ends proven" : "not encrypted", path);
	(void)say(r, out, MST_FINDING_OK, "control", text);
}

static const char *port_of(const char *address)
{
	const char *colon = strrchr(address, ':');

	return colon != NULL ? colon + 1 : "?";
}

static void fix_data(const struct mst_way_report *r, struct mst_finding *new)
{
	char host[MST_WAY_HOST_LEN];

	mst_way_host(r->address, host);
	if (r->moved.error == -EBADMSG)
		mst_finding_fix(new, "no gradient may pass here: other cable, port, driver or "
				     "firmware");
	else if (!r->linked)
		mst_finding_fix(new,
				"let TCP port %s in there, too (its firewall, the security "
				"group of a cloud); servers have a fixed one with --data-port\n"
				"if no address that was called leads there: --data-address at that "
				"end, with one that does",
				port_of(r->data));
	else if (r->moved.error == -ETIMEDOUT)
		mst_finding_fix(new,
				"small packets pass and large ones do not: ping -M do -s 1472 %s; "
				"as root on both hosts: ip link set IFACE mtu 1400\n"
				"a way slower than 2 Mbit/s: --timeout 60s",
				host);
	else
		mst_finding_fix(new, "is muster doctor --listen still there?");
}

static void judge_data(const struct mst_way_report *r, struct mst_findings *out)
{
	char text[320];

	if (r->moved.error != 0) {
		(void)snprintf(text, sizeof(text), "a write of %s failed, at port %s",
			       mst_bytes_text(MST_WRITE_BYTES).text, port_of(r->data));
		struct mst_finding *new = say(r, out, MST_FINDING_FAIL, "data", text);
		mst_finding_cause(new, "%s", r->moved.why.text);
		fix_data(r, new);
		return;
	}
	(void)snprintf(text, sizeof(text),
		       "wrote %s to port %s: every byte right; a small put takes %s there and back",
		       mst_bytes_text(MST_WRITE_BYTES).text, port_of(r->data),
		       mst_figure_duration(r->round_trip_ns).text);
	(void)say(r, out, MST_FINDING_OK, "data", text);
}

/* ---- bytes a second ---- */

static uint64_t least(uint64_t a, uint64_t b)
{
	return a == 0 || (b != 0 && b < a) ? b : a;
}

/* Is one connection held back by how much may be on its way? The kernel offers about half of what
 * it may receive into. */
static void judge_window(const struct mst_way_report *r, const struct mst_doctor_facts *f,
			 struct mst_findings *out)
{
	double round_s = (double)r->round_trip_ns / 1e9, one = r->up[0],
	       four = r->up[MST_WAY_COUNTS - 1];
	uint64_t window = least(f->send_max, r->receive_max / 2);
	uint64_t wanted = 1u << 22;
	char text[200];

	if (four < SEVERAL * one)
		return;
	(void)snprintf(text, sizeof(text), "4 connections are %.3g times as fast as one",
		       four / one);
	if (window == 0 || one * round_s < (double)window / 2) {
		(void)snprintf(text + strlen(text), sizeof(text) - strlen(text),
			       ": several workers on a host, or several servers (--servers), "
			       "have one each");
		(void)say(r, out, MST_FINDING_OK, "window", text);
		return;
	}
	struct mst_finding *new = say(r, out, MST_FINDING_WARNING, "window", text);
	while ((double)wanted < 4 * four * round_s && wanted < 1u << 31)
		wanted *= 2;
	mst_finding_cause(new,
			  "in a round trip of %s one connection moves %s at most: here "
			  "net.ipv4.tcp_wmem allows %s, there tcp_rmem %s",
			  mst_figure_duration(r->round_trip_ns).text,
			  mst_bytes_text((uint64_t)(one * round_s)).text,
			  mst_bytes_text(f->send_max).text, mst_bytes_text(r->receive_max).text);
	mst_finding_fix(new,
			"as root on both hosts: sysctl -w 'net.ipv4.tcp_wmem=4096 16384 %" PRIu64
			"' 'net.ipv4.tcp_rmem=4096 131072 %" PRIu64 "'",
			wanted, wanted);
}

static void judge_rates(const struct mst_way_report *r, const struct mst_doctor_facts *f,
			struct mst_findings *out)
{
	char text[320];

	if (!r->rates.tried)
		return;
	if (r->rates.error != 0) {
		struct mst_finding *new = say(r, out, MST_FINDING_FAIL, "rate",
					      "bytes a second were not measured");
		mst_finding_cause(new, "%s", mst_reason_or_errno(&r->rates.why, r->rates.error));
		mst_finding_fix(new, "is muster doctor --listen still there? Else --timeout 60s");
		return;
	}
	(void)snprintf(text, sizeof(text),
		       "to %.40s %s with 1 connection, %s/s with 2, %s/s with 4; from there %s",
		       r->host, rate(r->up[0]).text, mst_bytes_text((uint64_t)r->up[1]).text,
		       mst_bytes_text((uint64_t)r->up[2]).text, rate(r->down).text);
	(void)say(r, out, MST_FINDING_OK, "rate", text);
	judge_window(r, f, out);
}

/* A job has all at one port. The test has another one for this, which need not be open. */
static void tls_failed(const struct mst_way_report *r, struct mst_findings *out)
{
	int error = r->tls.error;
	bool shut = error == -ETIMEDOUT || error == -ECONNREFUSED || error == -EHOSTUNREACH;
	struct mst_finding *new = say(r, out, shut ? MST_FINDING_WARNING : MST_FINDING_FAIL, "tls",
				      "encrypted bytes a second were not measured");

	mst_finding_cause(new, "%s", mst_reason_or_errno(&r->tls.why, error));
	if (shut)
		mst_finding_fix(new, "let TCP port %s in there while this is tested",
				port_of(r->secure));
	else
		mst_finding_fix(new, "is muster doctor --listen still there, with the certificate "
				     "of a server?");
}

static void judge_tls(const struct mst_way_report *r, struct mst_findings *out)
{
	char text[320];

	if (!r->tls.tried)
		return;
	if (r->tls.error != 0) {
		tls_failed(r, out);
		return;
	}
	(void)snprintf(text, sizeof(text),
		       "with TLS 1.3, as gradients travel in a job with certificates: to there %s "
		       "with 1 connection, %.2g of plain, %s/s with 2, %s/s with 4; from there %s",
		       rate(r->encrypted_up[0]).text, r->encrypted_up[0] / r->up[0],
		       mst_bytes_text((uint64_t)r->encrypted_up[1]).text,
		       mst_bytes_text((uint64_t)r->encrypted_up[2]).text,
		       rate(r->encrypted_down).text);
	(void)say(r, out, MST_FINDING_OK, "tls", text);
}

/* ---- the way back ---- */

static void judge_back(const struct mst_way_report *r, struct mst_findings *out)
{
	bool control = r->back_control.error != 0;
	const struct mst_way_step *wrong = control ? &r->back_control : &r->back_data;
	char text[200];

	if (!r->back_control.tried)
		return;
	if (wrong->error == 0) {
		(void)snprintf(text, sizeof(text),
			       "%.40s can call this host, too (ports %u and %u): servers may run "
			       "at either end",
			       r->host, r->back_port, r->back_data_port);
		(void)say(r, out, MST_FINDING_OK, "back", text);
		return;
	}
	(void)snprintf(text, sizeof(text), "%.40s cannot call this host at port %u", r->host,
		       control ? r->back_port : r->back_data_port);
	struct mst_finding *new = say(r, out, MST_FINDING_WARNING, "back", text);
	mst_finding_cause(new, "%s", mst_reason_or_errno(&wrong->why, wrong->error));
	mst_finding_fix(new,
			"run the servers on %.40s, and workers here: workers call servers, never "
			"the other way round; or let TCP ports %u and %u in here",
			r->host, r->back_port, r->back_data_port);
}

/* ---- what follows for a step ---- */

static void judge_step(const struct mst_way_report *r, const struct mst_doctor_wish *wish,
		       struct mst_findings *out)
{
	uint64_t bytes = wish->elems > 0 ? wish->elems * wish->type_bytes : STEP_BYTES;
	double up, down, both;
	char text[320], half[48] = "";

	if (!r->rates.tried || r->rates.error != 0)
		return;
	bool encrypted = r->tls.tried && r->tls.error == 0;
	up = (double)bytes / (encrypted ? r->encrypted_up[0] : r->up[0]);
	down = (double)bytes / (encrypted ? r->encrypted_down : r->down);
	both = up + down;
	if (wish->type_bytes == 4)
		(void)snprintf(half, sizeof(half), " bf16 halves it;");
	(void)snprintf(
		text, sizeof(text),
		"a gradient of %s takes %s there, and a result %s back%s: %s a step beside "
		"what a worker computes.%s --policy local:%d exchanges once in %d steps: %s a "
		"step",
		mst_bytes_text(bytes).text, duration(up).text, duration(down).text,
		encrypted ? ", encrypted" : "", duration(both).text, half, LOCAL_STEPS, LOCAL_STEPS,
		duration(both / LOCAL_STEPS).text);
	(void)say(r, out, MST_FINDING_OK, "step", text);
	if (wish->workers < 2)
		return;
	(void)snprintf(text, sizeof(text),
		       "%u workers that come over this one network: %s a step under bsp, if their "
		       "gradients go together",
		       wish->workers, duration(both * wish->workers).text);
	(void)say(r, out, MST_FINDING_OK, "step", text);
}

void mst_doctor_judge_data_port(const struct mst_doctor_tries *tries, struct mst_findings *out)
{
	const struct mst_way_step *held = &tries->held;
	struct mst_finding *new;

	if (!held->tried)
		return;
	new = mst_finding_add(out, held->error == 0 ? MST_FINDING_OK : MST_FINDING_FAIL,
			      "data port", "%" PRIu32 " is %s", tries->data_port,
			      held->error == 0 ? "free here, and a server may listen there"
					       : "no port that a server can have here");
	if (held->error == 0)
		return;
	if (held->error != -EADDRINUSE) {
		mst_finding_cause(new, "%s", mst_reason_or_errno(&held->why, held->error));
		return;
	}
	mst_finding_cause(new, "another process listens there");
	mst_finding_fix(new,
			"ss -ltnp 'sport = :%" PRIu32 "' shows which; each server of a host "
			"needs a --data-port of its own",
			tries->data_port);
}

void mst_doctor_judge_way(const struct mst_way_report *r, const struct mst_doctor_facts *f,
			  const struct mst_doctor_wish *wish, struct mst_findings *out)
{
	judge_control(r, out);
	if (r->control.error != 0)
		return;
	judge_data(r, out);
	judge_rates(r, f, out);
	judge_tls(r, out);
	judge_back(r, out);
	judge_step(r, wish, out);
}
