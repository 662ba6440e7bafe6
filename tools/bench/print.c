/* SPDX-License-Identifier: MIT */
#include "tools/bench/print.h"
#include "common/transport/transport.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "common/kernels/sum.h"

/* A quantile that fewer samples cannot show is not printed. */
#define SAMPLES_P99 100u
#define SAMPLES_P999 1000u

static const char *const buffer_names[] = { "slot", "own" };
static const char *const owner_names[] = {
	[MUSTER_SERVERS_OWN] = "servers", [MUSTER_WORKERS_OWN] = "workers"
};
static const char *const type_names[] = {
	[MUSTER_F32] = "f32", [MUSTER_BF16] = "bf16", [MUSTER_F16] = "f16"
};

static const char *transport_name(const struct mst_bench_line *line)
{
	static char text[MST_NETWORKS_TEXT_LEN];
	struct mst_networks networks;
	struct mst_reason why;

	(void)mst_server_options_networks(&line->options.server, &networks, &why); /* checked */
	return mst_networks_text(&networks, text);
}

/* GB/s, 10^9 bytes; bytes per ns is just that. */
static double rate(double bytes, uint64_t ns)
{
	return ns == 0 ? 0 : bytes / (double)ns;
}

static double algbw(const struct mst_bench_cell *cell)
{
	return rate((double)cell->bytes, cell->figures.step.p50);
}

static double busbw(const struct mst_bench_cell *cell)
{
	return algbw(cell) * 2 * (cell->workers - 1) / cell->workers;
}

/* Bytes of the gradients in a version. */
static double version_bytes(const struct mst_bench_line *line, const struct mst_bench_cell *cell)
{
	return (double)cell->bytes * mst_bench_quorum(line, cell->workers);
}

static double server_rate(const struct mst_bench_line *line, const struct mst_bench_cell *cell)
{
	return rate(version_bytes(line, cell), cell->figures.step.p50);
}

static double core_rate(const struct mst_bench_line *line, const struct mst_bench_cell *cell)
{
	return rate(version_bytes(line, cell) * (double)cell->figures.commits, cell->server_cpu_ns);
}

struct cell_text {
	char text[24];
};

static struct cell_text us(uint64_t ns)
{
	struct cell_text t;

	(void)snprintf(t.text, sizeof(t.text), ns < 1000000 ? "%.1f" : "%.0f", (double)ns / 1e3);
	return t;
}

static struct cell_text us_of(const struct mst_bench_cell *cell, uint64_t ns, uint64_t samples_min)
{
	return cell->figures.samples < samples_min ? (struct cell_text){ .text = "-" } : us(ns);
}

/* "64K", "25M", "4100": as it may be typed. */
static struct cell_text size_text(uint64_t bytes)
{
	static const char *const units[] = { "", "K", "M", "G" };
	struct cell_text t;
	size_t unit = 0;

	while (bytes % 1024 == 0 && bytes > 0 && unit + 1 < sizeof(units) / sizeof(units[0])) {
		bytes /= 1024;
		unit++;
	}
	(void)snprintf(t.text, sizeof(t.text), "%" PRIu64 "%s", bytes, units[unit]);
	return t;
}

/* Takes "model name : X" apart. */
static void read_model(char *out, size_t len)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[256];

	(void)snprintf(out, len, "unknown processor");
	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		const char *colon = strchr(line, ':');

		if (colon == NULL || strncmp(line, "model name", strlen("model name")) != 0)
			continue;
		line[strcspn(line, "\n")] = '\0';
		(void)snprintf(out, len, "%s", colon + 2);
		break;
	}
	if (f != NULL)
		(void)fclose(f);
}

static int count_processors(void)
{
	cpu_set_t allowed;

	return sched_getaffinity(0, sizeof(allowed), &allowed) == 0 ? CPU_COUNT(&allowed) : 0;
}

/* "Linux 6.1.0 x86_64, MODEL, 2 processors, load 0.31" */
static void tell_host(char *out, size_t len)
{
	struct utsname host;
	char model[128];
	double load = 0;

	if (uname(&host) < 0)
		host = (struct utsname){ .sysname = "?" };
	read_model(model, sizeof(model));
	if (getloadavg(&load, 1) != 1)
		load = 0;
	(void)snprintf(out, len, "%s %s %s, %s, %d processors, load %.2f", host.sysname,
		       host.release, host.machine, model, count_processors(), load);
}

void mst_bench_print_head(const struct mst_bench_line *line, FILE *out)
{
	const struct mst_bench_options *o = &line->options;
	char host[400];

	tell_host(host, sizeof(host));
	(void)fprintf(out,
		      "# muster " MST_VERSION ": transport %s, buffers %s, owner %s, policy %s%s\n"
		      "# %s, processors of the server: %s\n"
		      "# times in us, rates in GB/s; a step is from the call of push until the "
		      "result is readable, of the slowest\n",
		      transport_name(line), buffer_names[o->buffers], owner_names[line->owner],
		      o->server.policy, o->delay.count > 0 ? ", some delayed" : "", host,
		      o->server.cpus != NULL ? o->server.cpus : "auto");
	(void)fprintf(out, "%7s %9s %4s %3s %7s %6s %8s %8s %8s %8s %8s %8s %7s %6s", "size",
		      "count", "type", "n", "servers", "shards", "min", "p50", "p90", "p99",
		      "p99.9", "max", "samples", "#wrong");
	if (o->latency_of_last)
		(void)fprintf(out, " %8s %8s\n", "own", "first");
	else
		(void)fprintf(out, " %6s %6s %6s %6s %8s %8s %8s\n", "algbw", "busbw", "server",
			      "/core", "wait", "sum", "answer");
}

static void print_rates(const struct mst_bench_line *line, const struct mst_bench_cell *cell,
			FILE *out)
{
	const struct mst_bench_figures *f = &cell->figures;

	(void)fprintf(out, " %6.2f %6.2f %6.2f %6.2f %8s %8s %8s\n", algbw(cell), busbw(cell),
		      server_rate(line, cell), core_rate(line, cell), us(f->wait_ns).text,
		      us(f->sum_ns).text, us(f->answer_ns).text);
}

void mst_bench_print_row(const struct mst_bench_line *line, const struct mst_bench_cell *cell,
			 FILE *out)
{
	const struct mst_bench_figures *f = &cell->figures;
	enum muster_type type = (enum muster_type)line->options.type;

	(void)fprintf(out,
		      "%7s %9" PRIu64 " %4s %3u %7u %6u %8s %8s %8s %8s %8s %8s %7" PRIu64
		      " %6" PRIu64,
		      size_text(cell->bytes).text, cell->bytes / mst_type_bytes(type),
		      type_names[type], cell->workers, cell->servers, cell->shards,
		      us_of(cell, f->step.min, 1).text, us_of(cell, f->step.p50, 1).text,
		      us_of(cell, f->step.p90, 1).text, us_of(cell, f->step.p99, SAMPLES_P99).text,
		      us_of(cell, f->step.p999, SAMPLES_P999).text,
		      us_of(cell, f->step.max, 1).text, f->samples, f->wrong);
	if (line->options.latency_of_last)
		(void)fprintf(out, " %8s %8s\n", us(f->own_ns).text, us(f->first_ns).text);
	else
		print_rates(line, cell, out);
	(void)fflush(out);
}

void mst_bench_print_foot(const struct mst_bench_line *line, FILE *out)
{
	if (line->options.latency_of_last) {
		(void)fputs("# from the last push until the result is readable at the slowest "
			    "worker (p50 ...), at the one that pushed last (own), at the fastest "
			    "(first)\n",
			    out);
		return;
	}
	(void)fputs("# algbw: one gradient's bytes / p50; busbw: algbw x 2(n-1)/n, as all-reduce "
		    "benchmarks print it;\n#   an aggregation service may exceed the line rate in "
		    "that unit\n"
		    "# server: bytes of a version's gradients / p50; /core: the same per second of "
		    "the servers' processor time\n"
		    "# wait: first push called to last handed in; sum: until the first worker has "
		    "its result; answer: until all have\n",
		    out);
}

static json_t *us_or_null(const struct mst_bench_cell *cell, uint64_t ns, uint64_t samples_min)
{
	return cell->figures.samples < samples_min ? json_null() : json_real((double)ns / 1e3);
}

static double real_us(uint64_t ns)
{
	return (double)ns / 1e3;
}

static int add_setting(json_t *doc, const struct mst_bench_line *line,
		       const struct mst_bench_cell *cell)
{
	const struct mst_bench_options *o = &line->options;

	return json_object_update_new(
		doc,
		json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:b}",
			  "transport", transport_name(line), "buffers", buffer_names[o->buffers],
			  "type", type_names[o->type], "owner", owner_names[line->owner], "policy",
			  o->server.policy, "kernels", cell->kernels, "pauses",
			  (json_int_t)cell->pauses, "workers", (json_int_t)cell->workers, "servers",
			  (json_int_t)cell->servers, "shards", (json_int_t)cell->shards,
			  "size_bytes", (json_int_t)cell->bytes, "count",
			  (json_int_t)(cell->bytes / mst_type_bytes((enum muster_type)o->type)),
			  "latency_of_last", o->latency_of_last));
}

static int add_times(json_t *doc, const struct mst_bench_cell *cell)
{
	const struct mst_bench_figures *f = &cell->figures;

	return json_object_update_new(
		doc, json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:f, s:f, s:f}", "samples",
			       (json_int_t)f->samples, "min_us", us_or_null(cell, f->step.min, 1),
			       "mean_us", us_or_null(cell, f->step.mean, 1), "p50_us",
			       us_or_null(cell, f->step.p50, 1), "p90_us",
			       us_or_null(cell, f->step.p90, 1), "p99_us",
			       us_or_null(cell, f->step.p99, 1), "p999_us",
			       us_or_null(cell, f->step.p999, SAMPLES_P999), "max_us",
			       us_or_null(cell, f->step.max, 1), "gate_p50_us",
			       real_us(f->opened.p50), "gate_p99_us", real_us(f->opened.p99),
			       "gate_max_us", real_us(f->opened.max)));
}

static int add_parts(json_t *doc, const struct mst_bench_line *line,
		     const struct mst_bench_cell *cell)
{
	const struct mst_bench_figures *f = &cell->figures;

	if (line->options.latency_of_last)
		return json_object_update_new(doc, json_pack("{s:f, s:f}", "own_p50_us",
							     real_us(f->own_ns), "first_p50_us",
							     real_us(f->first_ns)));
	return json_object_update_new(
		doc,
		json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "wait_us", real_us(f->wait_ns),
			  "sum_us", real_us(f->sum_ns), "answer_us", real_us(f->answer_ns),
			  "algbw_gbs", algbw(cell), "busbw_gbs", busbw(cell), "server_gbs",
			  server_rate(line, cell), "server_gbs_per_core", core_rate(line, cell)));
}

static int add_counts(json_t *doc, const struct mst_bench_cell *cell)
{
	const struct mst_bench_figures *f = &cell->figures;

	return json_object_update_new(
		doc,
		json_pack("{s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:I}", "wrong", (json_int_t)f->wrong,
			  "checked", (json_int_t)f->checked, "commits", (json_int_t)f->commits,
			  "counted", (json_int_t)f->counted, "late", (json_int_t)f->late,
			  "first_commit_ms", (double)f->first_commit_ns / 1e6, "server_cpu_s",
			  (double)cell->server_cpu_ns / 1e9, "server_rss_bytes",
			  (json_int_t)cell->server_rss_bytes));
}

json_t *mst_bench_json(const struct mst_bench_line *line, const struct mst_bench_cell *cell)
{
	json_t *doc = json_object();

	if (add_setting(doc, line, cell) == 0 && add_times(doc, cell) == 0 &&
	    add_parts(doc, line, cell) == 0 && add_counts(doc, cell) == 0)
		return doc;
	json_decref(doc);
	return NULL;
}
