/* SPDX-License-Identifier: MIT */
/* What a job needs, against what a process may lock and a device can hold. Pure. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/wire/lane.h"
#include "tools/doctor/judge.h"

#define PAGE UINT64_C(4096)
#define BUFFERS 4u      /* versions a server has in memory, as --buffers of musterd is by default */
#define SENDS_MAX 4096u /* of a queue pair; many take fewer */
/* A limit below this is a default of Linux (64 KiB) or systemd (8 MiB), set without RDMA in
 * mind. */
#define MEMLOCK_SMALL (UINT64_C(64) << 20)

static uint32_t rails_of(const char *devices)
{
	uint32_t rails = 1;

	for (const char *at = devices; at != NULL && *at != '\0'; at++)
		rails += *at == ',';
	return rails;
}

void mst_doctor_need(const struct mst_doctor_wish *wish, struct mst_doctor_need *out)
{
	/* Results may be of a wider type than gradients. */
	struct mst_lane_figures figures = { .elems = wish->elems,
					    .type_bytes = wish->type_bytes,
					    .result_type_bytes = sizeof(float),
					    .slots = wish->slots,
					    .workers = wish->workers };
	struct mst_lane_layout lane;
	uint64_t rails = rails_of(wish->devices);
	uint32_t links = wish->role == MST_DOCTOR_WORKER ? 1 : wish->workers;

	MST_ASSERT(wish->workers > 0);
	mst_lane_layout(&figures, &lane);
	uint64_t published = BUFFERS * ((lane.result_bytes + PAGE - 1) / PAGE * PAGE);
	*out = (struct mst_doctor_need){
		/* Inbound and outbound region, with a page of each for the transport, once for each
		 * rail. */
		.worker_bytes = rails * (lane.up_bytes + lane.down_bytes + 2 * PAGE),
		/* The server mirrors the records of a worker's inbound region; results go out from
		 * where they are published. */
		.server_bytes = rails *
				(wish->workers * (lane.up_bytes + lane.down_result + 2 * PAGE) +
				 published),
		.region_bytes = lane.up_bytes + PAGE,
		.qp = 2 * links,
		.cq = links,
		.mr = 2 * links + 1,
		.pd = links + 1,
		/* Every receive and every send may complete. */
		.cqe = lane.down_credits + SENDS_MAX + 2,
		.qp_wr = lane.down_credits + 1,
	};
	if (wish->role != MST_DOCTOR_WORKER && published > out->region_bytes)
		out->region_bytes = published;
}

/* Whence the limit comes, and where it is raised. */
static void fix_memlock(const struct mst_doctor_facts *f, uint64_t wanted,
			struct mst_finding *finding)
{
	if (f->container[0] != '\0') {
		mst_finding_cause(finding, "containers (%s) begin with the limit of their engine",
				  f->container);
		mst_finding_fix(finding, "start the container with --ulimit memlock=-1, or "
					 "--cap-add=IPC_LOCK");
	} else if (f->unit[0] != '\0') {
		mst_finding_cause(finding, "it is that of the systemd unit %s", f->unit);
		mst_finding_fix(finding,
				"systemctl edit %s, with the lines [Service] and "
				"LimitMEMLOCK=infinity; then systemctl restart %s",
				f->unit, f->unit);
	} else if (f->memlock_hard >= wanted) {
		mst_finding_cause(finding, "it is this shell's own limit, which it may raise");
		mst_finding_fix(finding, "ulimit -l %s",
				f->memlock_hard == MST_DOCTOR_UNLIMITED ? "unlimited" : "hard");
	} else {
		mst_finding_cause(finding, "it is %s%s",
				  f->memlock_file[0] != '\0' ? "set in " : "the default for logins",
				  f->memlock_file);
		mst_finding_fix(finding, "as root: printf '* - memlock unlimited\\n' "
					 ">/etc/security/limits.d/zz-muster.conf; then log in "
					 "anew");
	}
}

static void judge_memlock_alone(const struct mst_doctor_facts *f, struct mst_findings *out)
{
	bool small = f->memlock <= MEMLOCK_SMALL;
	struct mst_finding *new = mst_finding_add(
		out, small ? MST_FINDING_WARNING : MST_FINDING_OK, "memlock",
		"a process may lock %s; --workers and --elems tell whether a job "
		"fits",
		mst_bytes_text(f->memlock).text);

	if (small)
		fix_memlock(f, MST_DOCTOR_UNLIMITED, new);
}

static void judge_memlock(const struct mst_doctor_facts *f, const struct mst_doctor_wish *wish,
			  struct mst_findings *out)
{
	struct mst_doctor_need need;
	char figures[128] = "";
	uint64_t wanted;

	mst_doctor_need(wish, &need);
	if (wish->role != MST_DOCTOR_SERVER)
		(void)snprintf(figures, sizeof(figures), "a worker registers %s",
			       mst_bytes_text(need.worker_bytes).text);
	if (wish->role != MST_DOCTOR_WORKER)
		(void)snprintf(figures + strlen(figures), sizeof(figures) - strlen(figures),
			       "%sthe server %s%s", figures[0] != '\0' ? ", " : "",
			       figures[0] != '\0' ? "" : "registers ",
			       mst_bytes_text(need.server_bytes).text);
	wanted = wish->role == MST_DOCTOR_WORKER ? need.worker_bytes : need.server_bytes;
	if (f->ipc_lock || f->memlock == MST_DOCTOR_UNLIMITED) {
		(void)mst_finding_add(out, MST_FINDING_OK, "memlock", "no limit%s; %s",
				      f->ipc_lock ? " (CAP_IPC_LOCK)" : "", figures);
		return;
	}
	struct mst_finding *new = mst_finding_add(
		out, wanted > f->memlock ? MST_FINDING_FAIL : MST_FINDING_OK, "memlock",
		"a process may lock %s; %s", mst_bytes_text(f->memlock).text, figures);
	if (wanted <= f->memlock)
		return;
	fix_memlock(f, wanted, new);
	if (wish->role == MST_DOCTOR_BOTH && need.worker_bytes <= f->memlock)
		mst_finding_fix(new, "or let the server run elsewhere: --role worker");
}

/* Adds one figure of a device: "8 of 65536 queue pairs". */
static void tell(char *out, size_t len, uint64_t need, uint64_t limit, const char *what)
{
	size_t used = strlen(out);

	(void)snprintf(out + used, len - used, "%s%" PRIu64 " of %" PRIu64 " %s",
		       used > 0 ? ", " : "", need, limit, what);
}

/* Some devices give the largest number there is. */
static bool any_size(const struct mst_probe_limits *limits)
{
	return limits->max_mr_size >= UINT64_C(1) << 60;
}

static void tell_size(char *out, size_t len, uint64_t need, const struct mst_probe_limits *limits)
{
	size_t used = strlen(out);

	(void)snprintf(out + used, len - used, "%sregions of %s%s%s", used > 0 ? ", " : "",
		       mst_bytes_text(need).text, any_size(limits) ? "" : " of ",
		       any_size(limits) ? "" : mst_bytes_text(limits->max_mr_size).text);
}

/* Lists the figures that are enough (@enough), or those that are not. Return: are all enough? */
static bool tell_all(const struct mst_doctor_need *need, const struct mst_probe_limits *limits,
		     bool enough, char *out, size_t len)
{
	const struct {
		uint64_t need, limit;
		const char *what;
	} row[] = {
		{ need->qp, limits->max_qp, "queue pairs" },
		{ need->cq, limits->max_cq, "completion queues" },
		{ need->pd, limits->max_pd, "protection domains" },
		{ need->mr, limits->max_mr, "memory regions" },
		{ need->cqe, limits->max_cqe, "completions a queue" },
		{ need->qp_wr, limits->max_qp_wr, "requests a queue" },
	};
	bool all = need->region_bytes <= limits->max_mr_size;

	out[0] = '\0';
	if (all == enough)
		tell_size(out, len, need->region_bytes, limits);
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		bool fits = row[i].need <= row[i].limit;
		all &= fits;
		if (fits == enough)
			tell(out, len, row[i].need, row[i].limit, row[i].what);
	}
	return all;
}

static void judge_device(const struct mst_doctor_device *d, const struct mst_doctor_wish *wish,
			 struct mst_findings *out)
{
	const struct mst_probe_limits *limits = &d->probe.limits;
	struct mst_doctor_need need;
	struct mst_finding *new;
	char text[300];

	if (wish->workers == 0) {
		new = mst_finding_add(out, MST_FINDING_OK, "limits",
				      "%u queue pairs, %u memory regions of %s, %u completions a "
				      "queue",
				      limits->max_qp, limits->max_mr,
				      any_size(limits) ? "any size"
						       : mst_bytes_text(limits->max_mr_size).text,
				      limits->max_cqe);
		mst_finding_subject(new, "%s", d->probe.name);
		return;
	}
	mst_doctor_need(wish, &need);
	if (tell_all(&need, limits, true, text, sizeof(text))) {
		new = mst_finding_add(out, MST_FINDING_OK, "limits", "the job takes %s", text);
	} else {
		(void)tell_all(&need, limits, false, text, sizeof(text));
		new = mst_finding_add(out, MST_FINDING_FAIL, "limits", "the job would take %s",
				      text);
		mst_finding_cause(new, "the device has no more");
		mst_finding_fix(new, "fewer workers or slots, or a server with another device");
	}
	mst_finding_subject(new, "%s", d->probe.name);
}

void mst_doctor_judge_limits(const struct mst_doctor_facts *f, const struct mst_doctor_wish *wish,
			     struct mst_findings *out)
{
	if (f->device_count == 0)
		return;
	for (uint32_t i = 0; i < f->device_count; i++)
		if (mst_doctor_device_works(&f->device[i]) &&
		    mst_doctor_names(wish->devices, f->device[i].probe.name, 0))
			judge_device(&f->device[i], wish, out);
}

static void judge_huge_pages(const struct mst_doctor_facts *f, struct mst_findings *out)
{
	char pool[64] = "";

	if (f->huge_free > 0)
		(void)snprintf(pool, sizeof(pool), ", %" PRIu64 " of %s free in the pool",
			       f->huge_free, mst_bytes_text(f->huge_bytes).text);
	if (f->thp[0] == '\0') {
		(void)mst_finding_add(out, MST_FINDING_OK, "huge pages",
				      "this kernel does not tell%s", pool);
		return;
	}
	bool never = strcmp(f->thp, "never") == 0;
	struct mst_finding *new = mst_finding_add(
		out, never ? MST_FINDING_WARNING : MST_FINDING_OK, "huge pages",
		"transparent: %s, for shared memory: %s%s", f->thp,
		f->thp_shmem[0] != '\0' ? f->thp_shmem : "not told", pool);
	if (!never)
		return;
	mst_finding_cause(new, "they are switched off, so that a device has 512 times as many "
			       "pages to look up");
	mst_finding_fix(new, "as root: echo madvise >/sys/kernel/mm/transparent_hugepage/enabled");
}

void mst_doctor_judge_memory(const struct mst_doctor_facts *f, const struct mst_doctor_wish *wish,
			     struct mst_findings *out)
{
	if (wish->workers > 0)
		judge_memlock(f, wish, out);
	else if (f->ipc_lock || f->memlock == MST_DOCTOR_UNLIMITED)
		(void)mst_finding_add(out, MST_FINDING_OK, "memlock", "no limit%s",
				      f->ipc_lock ? " (CAP_IPC_LOCK)" : "");
	else
		judge_memlock_alone(f, out);
	judge_huge_pages(f, out);
}
