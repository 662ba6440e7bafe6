/* SPDX-License-Identifier: MIT */
/* What people read of a plan. */
#include <inttypes.h>
#include <stdio.h>

#include "common/base/clock.h"
#include "common/wire/lane.h"
#include "tests/sim/plan.h"

static const char *const names[] = {
	[SIM_FAULT_KILL] = "kill",       [SIM_FAULT_POWER_OFF] = "power-off",
	[SIM_FAULT_FREEZE] = "freeze",   [SIM_FAULT_STALL] = "stall",
	[SIM_FAULT_CUT] = "cut",         [SIM_FAULT_RESET] = "reset",
	[SIM_FAULT_DELAY] = "delay",     [SIM_FAULT_REJOIN] = "rejoin",
	[SIM_FAULT_DAWDLE] = "dawdle",   [SIM_FAULT_LEAVE] = "leave",
	[SIM_FAULT_FINISH] = "finish",   [SIM_FAULT_SCRIBBLE] = "scribble",
	[SIM_FAULT_RUBBISH] = "rubbish", [SIM_FAULT_STOP] = "stop",
	[SIM_FAULT_BREAK] = "break",     [SIM_FAULT_DEAF] = "deaf",
	[SIM_FAULT_HANG] = "hang",       [SIM_FAULT_LOG] = "log",
	[SIM_FAULT_SUSPEND] = "suspend", [SIM_FAULT_APART] = "apart",
	[SIM_FAULT_POLICY] = "policy",   [SIM_FAULT_REST] = "rest",
	[SIM_FAULT_RETURN] = "return",
};

static const char *const moment_names[] = {
	[0] = "",
	[MST_IMM_HEADER] = "header",
	[MST_IMM_ABANDON] = "abandon",
	[MST_IMM_ASK] = "ask",
	[MST_IMM_SESSION] = "session",
	[MST_IMM_GRANT] = "grant",
	[MST_IMM_VERDICT] = "verdict",
	[MST_IMM_ANSWER] = "answer",
	[SIM_MOMENT_COMMIT] = "commit",
};

const char *sim_fault_name(enum sim_fault_kind kind)
{
	return names[kind];
}

const char *sim_late_start_name(enum mst_late_start late_start)
{
	static const char *const late_start_names[] = { [MST_LATE_START_AUTO] = "auto",
							[MST_LATE_START_NOW] = "now",
							[MST_LATE_START_COMMIT] = "commit" };

	return late_start_names[late_start];
}

static double ms(uint64_t ns)
{
	return (double)ns / (double)MST_MS;
}

static void print_target(int target, FILE *out)
{
	if (target == SIM_SERVER)
		fprintf(out, "the server");
	else if (sim_target_is_server(target))
		fprintf(out, "follower %" PRIu32, sim_server_of_target(target));
	else
		fprintf(out, "rank %d", target);
}

static void print_trigger(const struct sim_trigger *t, FILE *out)
{
	if (t->moment == 0) {
		fprintf(out, " at %.3f ms", ms(t->after_ns));
		return;
	}
	fprintf(out, " %.3f ms after its %s number %" PRIu32, ms(t->after_ns),
		moment_names[t->moment], t->nth);
	if (t->server > 0)
		fprintf(out, " at follower %d", t->server);
	else if (t->server == 0)
		fprintf(out, " at the leader");
}

static bool has_span(enum sim_fault_kind kind)
{
	return kind == SIM_FAULT_FREEZE || kind == SIM_FAULT_STALL || kind == SIM_FAULT_DELAY ||
	       kind == SIM_FAULT_DAWDLE || kind == SIM_FAULT_DEAF || kind == SIM_FAULT_HANG ||
	       kind == SIM_FAULT_LOG || kind == SIM_FAULT_APART;
}

static void print_fault(const struct sim_fault *f, uint32_t index, FILE *out)
{
	fprintf(out, "  fault %" PRIu32 ": %s of ", index, sim_fault_name(f->kind));
	print_target(f->target, out);
	if (f->with != SIM_ALL) {
		fprintf(out, " towards ");
		print_target(sim_target_of_server((uint32_t)f->with), out);
	}
	print_trigger(&f->when, out);
	if (f->kind == SIM_FAULT_POLICY)
		fprintf(out, ", %s", f->policy);
	if (has_span(f->kind))
		fprintf(out, ", for %.3f ms", ms(f->span_ns));
	fprintf(out, "%s\n", f->left_out ? " (left out)" : "");
}

static void print_servers(const struct sim_plan *p, FILE *out)
{
	if (p->servers == 1)
		return;
	fprintf(out, "  %" PRIu32 " servers, spread ", p->servers);
	for (uint32_t k = 0; k < p->servers; k++)
		fprintf(out, "%s%" PRIu32, k > 0 ? "," : "", p->weight[k]);
	for (uint32_t k = 1; k < p->servers; k++)
		fprintf(out, ", follower %" PRIu32 " comes at %.3f ms", k,
			ms(p->server_comes_ns[k]));
	fprintf(out, "\n");
}

/* "nfn": the first process of the rank is near, the second far, the third near. */
static void print_apart(uint32_t apart, FILE *out)
{
	for (uint32_t i = 0; i < SIM_HOSTS; i++)
		fputc(apart >> i & 1 ? 'f' : 'n', out);
}

/* Servers that are apart have no near workers. */
static void print_hosts(const struct sim_plan *p, FILE *out)
{
	bool apart = false;

	for (uint32_t k = 1; k < p->servers && p->network == SIM_MIXED; k++) {
		if (p->server_apart[k])
			fprintf(out, "  follower %" PRIu32 " has a host of its own\n", k);
		apart |= p->server_apart[k];
	}
	if (p->network != SIM_MIXED || apart)
		return;
	fprintf(out, "  near and far processes by rank:");
	for (uint32_t rank = 0; rank < p->workers; rank++) {
		fputc(' ', out);
		print_apart(p->manners[rank].apart, out);
	}
	fputc('\n', out);
}

static void print_rates(const struct sim_plan *p, FILE *out)
{
	if (p->distance > 0)
		fprintf(out, "  rate at most %g over the square of the distance\n", p->distance);
	if (p->average > 0)
		fprintf(out, "  an average of the weights, of which %g is left\n", p->average);
}

static void print_saves(const struct sim_saves *s, FILE *out)
{
	if (!s->wanted)
		return;
	fprintf(out, "  saves every %s, in %.3f ms at most, or %.3f ms, fails %g", s->every,
		ms(s->most_ns), ms(s->slow_chance > 0 ? s->slow_ns : 0), s->fail_chance);
	if (s->hangs >= 0)
		fprintf(out, ", server %d hangs from %" PRIu64 " on", s->hangs, s->hangs_from);
	if (s->then_servers > 0)
		fprintf(out, "; then %" PRIu32 " servers go on for %" PRIu64 " commits",
			s->then_servers, s->then_commits);
	fprintf(out, "\n");
}

void sim_plan_print(const struct sim_plan *p, FILE *out)
{
	fprintf(out,
		"seed %" PRIu64 ": %" PRIu32 " workers, %s, %s own%s%s, %" PRIu64
		" elements of %s in %" PRIu32 " shards, %" PRIu32 " tensors, %s, %" PRIu64
		" commits\n"
		"  lease %.0f ms, patience %.0f ms, join %.0f ms, buffers %" PRIu32
		", history %" PRIu32 ", group %" PRIu32 ", late start %s%s%s%s\n",
		p->seed, p->workers, p->policy,
		p->owner == MUSTER_WORKERS_OWN ? "workers" : "servers",
		p->owner == MUSTER_WORKERS_OWN ? "" : ", ",
		p->owner == MUSTER_WORKERS_OWN ? "" : p->optimizer, p->elems,
		p->type == MUSTER_F32 ? "f32" : "bf16", p->shards, p->tensors,
		sim_network_name(p->network), p->commits, ms(p->lease_ns), ms(p->patience_ns),
		ms(p->join_ns), p->buffers, p->history, p->group,
		sim_late_start_name(p->rule.late_start), p->slow_network ? ", slow network" : "",
		p->slow_server ? ", slow server" : "", p->marks ? ", marks" : "");
	print_servers(p, out);
	print_hosts(p, out);
	print_rates(p, out);
	print_saves(&p->saves, out);
	for (uint32_t i = 0; i < p->fault_count; i++)
		print_fault(&p->fault[i], i, out);
}
