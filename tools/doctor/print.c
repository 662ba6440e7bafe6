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

/* Over what jobs on this host alone work; NULL: nothing. */
static const struct mst_transport *works_alone(const struct mst_findings *findings)
{
	for (uint32_t i = 0; i < findings->count; i++) {
		const struct mst_finding *f = &findings->item[i];
		const struct mst_doctor_network *n = mst_doctor_network_of(f->check);
		if (n != NULL && n->within_host && f->level == MST_FINDING_OK)
			return n->transport;
	}
	return NULL;
}

void mst_doctor_print(const struct mst_findings *findings, FILE *out)
{
	uint32_t fails = mst_findings_of(findings, MST_FINDING_FAIL);
	uint32_t warnings = mst_findings_of(findings, MST_FINDING_WARNING);
	const struct mst_transport *alone = works_alone(findings);

	for (uint32_t i = 0; i < findings->count; i++)
		print_finding(&findings->item[i], out);
	(void)fprintf(out, "\n%u failure%s, %u warning%s: ", fails, fails == 1 ? "" : "s", warnings,
		      warnings == 1 ? "" : "s");
	if (fails == 0)
		(void)fputs("a job over RDMA can run here\n", out);
	else if (alone != NULL)
		(void)fprintf(out,
			      "a job over RDMA cannot run here; one on this host alone, over %s, "
			      "can\n",
			      alone->medium);
	else
		(void)fputs("a job over RDMA cannot run here\n", out);
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

json_t *mst_doctor_json(const struct mst_findings *findings, const struct mst_doctor_tries *tries)
{
	uint32_t fails = mst_findings_of(findings, MST_FINDING_FAIL);
	json_t *found = json_array(), *writes = json_array();
	int failed = 0;

	for (uint32_t i = 0; i < findings->count; i++)
		failed |= json_array_append_new(found, finding_json(&findings->item[i]));
	for (uint32_t i = 0; i < tries->count; i++)
		failed |= json_array_append_new(writes, try_json(&tries->item[i]));
	json_t *out = json_pack("{s:b, s:I, s:I, s:o, s:o}", "usable", fails == 0, "failures",
				(json_int_t)fails, "warnings",
				(json_int_t)mst_findings_of(findings, MST_FINDING_WARNING),
				"findings", found, "writes", writes);
	if (failed != 0) {
		json_decref(out);
		return NULL;
	}
	return out;
}
