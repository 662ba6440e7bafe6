/* SPDX-License-Identifier: MIT */
/*
 * muster doctor: finds what keeps this host from a job between hosts, and says how to fix it.
 *
 * Gathers facts, judges them, then moves bytes over whatever nothing seems to be in the way of.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/log.h"
#include "common/base/reason.h"
#include "common/config/option.h"
#include "tools/command.h"
#include "tools/doctor/network.h"
#include "tools/doctor/print.h"
#include "tools/report.h"

static int print_help(void)
{
	(void)puts(
		"usage: muster doctor [options]\n\n"
		"Checks what a job between hosts needs of this one: for RDMA modules, devices,\n"
		"ports; for TCP addresses and sockets; limits; then writes a mebibyte and looks\n"
		"at it. Each line is ok, warning or FAIL; what is not ok comes with its cause and\n"
		"what fixes it.\n\n"
		"To test the way between two hosts: muster doctor --listen on one of them, and\n"
		"muster doctor --peer HOST on the other. Neither root nor RDMA is needed.\n\n"
		"Options:");
	mst_options_help(mst_doctor_table, stdout);
	return MST_EXIT_DONE;
}

static struct mst_doctor_wish wish_of(const struct mst_doctor_options *o)
{
	return (struct mst_doctor_wish){
		.devices = o->devices,
		.workers = o->workers,
		.elems = o->elems,
		.type_bytes = o->type == 0 ? 4 : 2,
		.slots = o->slots,
		.rdma = o->devices != NULL || (o->transport != MST_DOCTOR_ALL &&
					       mst_doctor_asks_for(o, mst_verbs.scheme)),
		.role = (enum mst_doctor_role)o->role,
	};
}

/* What a worker would take from its environment. */
static int take_environment(struct mst_doctor_options *o, struct mst_reason *why)
{
	struct mst_fabric fabric = MST_FABRIC_DEFAULT;
	int rc = mst_fabric_environment(&fabric, why);

	if (o->devices == NULL)
		o->devices = fabric.devices;
	if (o->addresses == NULL)
		o->addresses = fabric.addresses;
	return rc;
}

static int show(const struct mst_findings *findings, const struct mst_doctor_tries *tries,
		const struct mst_doctor_options *o)
{
	if (!mst_doctor_prints_json(o))
		mst_doctor_print(findings, stdout);
	if (o->json == NULL)
		return 0;
	json_t *doc = mst_doctor_json(findings, tries);
	int rc = mst_report_write(doc, o->json);
	json_decref(doc);
	return rc;
}

/* What of it a job needs in any case stays a failure. */
static void judge_tries(const struct mst_doctor_facts *facts, const struct mst_doctor_wish *wish,
			const struct mst_doctor_tries *tries, struct mst_findings *out)
{
	for (uint32_t i = 0; i < tries->count; i++) {
		uint32_t first = out->count;
		mst_doctor_judge_try(&tries->item[i], out);
		for (; tries->item[i].spare && first < out->count; first++)
			if (out->item[first].level == MST_FINDING_FAIL)
				out->item[first].level = MST_FINDING_WARNING;
	}
	mst_doctor_judge_data_port(tries, out);
	if (tries->way.control.tried)
		mst_doctor_judge_way(&tries->way, facts, wish, out);
	if (!wish->rdma && mst_findings_ok(out, "tcp"))
		mst_findings_spare(out, mst_doctor_is_of_rdma, "RDMA");
}

static int examine(const struct mst_doctor_facts *facts, const struct mst_doctor_options *o)
{
	static struct mst_findings findings; /* too large for a stack */
	static struct mst_doctor_tries tries;
	struct mst_doctor_wish wish = wish_of(o);

	mst_doctor_judge(facts, &wish, &findings);
	mst_doctor_try_here(facts, &wish, o, &tries);
	if (o->peer != NULL && mst_doctor_is_way(o->peer))
		mst_doctor_try_way(facts, o, &tries);
	else if (o->peer != NULL)
		mst_doctor_try_peer(facts, o, &tries);
	judge_tries(facts, &wish, &tries, &findings);
	int shown = show(&findings, &tries, o), rc = 0;
	if (shown == 0 && o->listen)
		rc = mst_doctor_listen(facts, o, mst_doctor_prints_json(o) ? stderr : stdout);
	if (rc < 0 || mst_findings_of(&findings, MST_FINDING_FAIL) > 0)
		return MST_EXIT_FAILED;
	return shown < 0 ? MST_EXIT_INCOMPLETE : MST_EXIT_DONE;
}

static int doctor(struct mst_doctor_options *o, const char *operand)
{
	struct mst_doctor_facts facts;
	struct mst_reason why;

	if (o->help)
		return print_help();
	if (operand != NULL)
		return mst_refuse("doctor",
				  "what is \"%.60s\"? muster doctor takes options only; --peer "
				  "HOST:PORT names another host",
				  operand);
	if (mst_doctor_options_check(o, &why) < 0 || mst_report_check("json", o->json, &why) < 0)
		return mst_refuse("doctor", "%s", why.text);
	if (take_environment(o, &why) != 0)
		return mst_refuse("doctor", "%s", why.text);
	if (mst_doctor_gather(&facts) < 0) {
		mst_error("no memory to look around");
		return MST_EXIT_FAILED;
	}
	mst_doctor_read_certificate(&o->tls, &facts);
	int exit_status = examine(&facts, o);
	mst_doctor_forget(&facts);
	return exit_status;
}

int mst_doctor_command(int argc, char **argv)
{
	struct mst_doctor_options options;
	struct mst_options parsed;
	int operand;

	if (mst_options_init(&parsed, mst_doctor_table, &options) < 0)
		return MST_EXIT_FAILED;
	int rc = mst_options_argv(&parsed, argc, argv, &operand);
	int exit_status = rc < 0 ? mst_refuse("doctor", "%s", parsed.why.text)
				 : doctor(&options, argv[operand]);
	mst_options_free(&parsed);
	return exit_status;
}
