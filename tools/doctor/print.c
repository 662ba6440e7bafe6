/* SPDX-License-Identifier: MIT */
#include "tools/doctor/print.h"

#include <string.h>

#include "tools/doctor/network.h"

/* Each line of @text after a word of its own. */
static void print_lines(const char *word, const char *text, FILE *out)
{
	for (size_t len; *text != '\0'; text += len + (text[len] == '\n')) {
		len = strcspn(text, "\n");
		(void)fprintf(out, "         %-10s  %.*s\n", word, (int)len, text);
	}
}

static void print_finding(const struct mst_finding *f, FILE *out)
{
	(void)fprintf(out, "%-7s  %-10s  %s%s%s\n", mst_finding_word(f->level), f->check,
		      f->subject, f->subject[0] != '\0' ? ": " : "", f->found);
	print_lines("  because", f->cause, out);
	print_lines("  fix", f->fix, out);
}

/* "RDMA and TCP": over what bytes were moved, between hosts or within this one; "": nothing. */
static void list_working(const struct mst_findings *findings, bool within_host, char *out,
			 size_t len)
{
	size_t used = 0;

	out[0] = '\0';
	for (const struct mst_doctor_network *n = mst_doctor_networks; n->check != NULL; n++) {
		if (n->within_host != within_host || !mst_findings_ok(findings, n->check) ||
		    used >= len)
			continue;
		int more = snprintf(out + used, len - used, "%s%s", used > 0 ? " and " : "",
				    n->transport->medium);
		used += more > 0 ? (size_t)more : 0;
	}
}

void mst_doctor_print(const struct mst_findings *findings, FILE *out)
{
	uint32_t fails = mst_findings_of(findings, MST_FINDING_FAIL);
	uint32_t warnings = mst_findings_of(findings, MST_FINDING_WARNING);
	char between[64], alone[64];

	list_working(findings, false, between, sizeof(between));
	list_working(findings, true, alone, sizeof(alone));

	for (uint32_t i = 0; i < findings->count; i++)
		print_finding(&findings->item[i], out);
	(void)fprintf(out, "\n%u failure%s, %u warning%s: ", fails, fails == 1 ? "" : "s", warnings,
		      warnings == 1 ? "" : "s");
	if (fails > 0)
		(void)fputs("fix the first failure first\n", out);
	else if (between[0] != '\0')
		(void)fprintf(out, "a job between hosts can run here over %s\n", between);
	else if (alone[0] != '\0')
		(void)fprintf(out, "a job on this host alone can run here, over %s\n", alone);
	else
		(void)fputs("a job cannot run here\n", out);
	(void)fflush(out);
}

static json_t *finding_json(const struct mst_finding *f)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "level", mst_finding_word(f->level),
			 "check", f->check, "subject", f->subject, "found", f->found, "cause",
			 f->cause, "fix", f->fix);
}

static json_t *try_json(const struct mst_doctor_try *t)
{
	const struct mst_write_report *r = &t->report;

	return json_pack("{s:s, s:s, s:s, s:b, s:s, s:I, s:I, s:f, s:f, s:I, s:s, s:s, s:I}",
			 "check", t->check, "transport", t->transport, "subject", t->subject, "ok",
			 t->error == 0, "why", r->why.text, "bytes", (json_int_t)MST_WRITE_BYTES,
			 "wrong", (json_int_t)r->wrong_bytes, "latency_us",
			 (double)r->latency_ns / 1e3, "gbs", r->bytes_per_s / 1e9, "mtu",
			 (json_int_t)t->own.mtu, "peer_host", r->peer.host, "peer_port",
			 r->peer.port, "peer_mtu", (json_int_t)r->peer.mtu);
}

static json_t *step_json(const struct mst_way_step *step)
{
	return step->tried ? json_pack("{s:b, s:s}", "ok", step->error == 0, "why", step->why.text)
			   : json_null();
}

static json_t *way_json(const struct mst_way_report *w)
{
	const double *up = w->up, *tls = w->encrypted_up;

	return json_pack("{s:s, s:s, s:b, s:f, s:f, s:[f,f,f], s:f, s:[f,f,f], s:f, s:I, s:o, s:o, "
			 "s:o, s:o, s:o, s:o}",
			 "address", w->address, "host", w->host, "encrypted", w->encrypted,
			 "connect_us", (double)w->connect_ns / 1e3, "round_trip_us",
			 (double)w->round_trip_ns / 1e3, "up_gbs", up[0] / 1e9, up[1] / 1e9,
			 up[2] / 1e9, "down_gbs", w->down / 1e9, "tls_up_gbs", tls[0] / 1e9,
			 tls[1] / 1e9, tls[2] / 1e9, "tls_down_gbs", w->encrypted_down / 1e9, "mtu",
			 (json_int_t)w->mtu, "control", step_json(&w->control), "data",
			 step_json(&w->moved), "rate", step_json(&w->rates), "tls",
			 step_json(&w->tls), "back_control", step_json(&w->back_control),
			 "back_data", step_json(&w->back_data));
}

json_t *mst_doctor_json(const struct mst_findings *findings, const struct mst_doctor_tries *tries)
{
	json_t *way = tries->way.control.tried ? way_json(&tries->way) : json_null();
	uint32_t fails = mst_findings_of(findings, MST_FINDING_FAIL);
	json_t *found = json_array(), *writes = json_array();
	int failed = 0;

	for (uint32_t i = 0; i < findings->count; i++)
		failed |= json_array_append_new(found, finding_json(&findings->item[i]));
	for (uint32_t i = 0; i < tries->count; i++)
		failed |= json_array_append_new(writes, try_json(&tries->item[i]));
	json_t *out = json_pack("{s:b, s:I, s:I, s:o, s:o, s:o, s:o}", "usable", fails == 0,
				"failures", (json_int_t)fails, "warnings",
				(json_int_t)mst_findings_of(findings, MST_FINDING_WARNING),
				"findings", found, "writes", writes, "data_port",
				step_json(&tries->held), "way", way);
	if (failed != 0) {
		json_decref(out);
		return NULL;
	}
	return out;
}
