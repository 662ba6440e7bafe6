/* SPDX-License-Identifier: MIT */
/* The server's options: its table, and what a row alone cannot check. */
#include "server/options.h"

#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/wire/lane.h"
#include "common/wire/message.h"
#include "server/core/rule.h"
#include "server/cpus.h"

#define FIELD(name) .offset = offsetof(struct mst_server_options, name)
#define CHUNK_UNIT 4096u
#define YEAR_NS (8760 * 3600e9) /* longer waits could overflow a time */
#define OPTIMIZER_DEFAULT "sgd:lr=0.1,momentum=0.9"

const struct mst_option mst_server_table[] = {
	{ .name = "config",
	  .letter = 'c',
	  .kind = MST_OPTION_STRING,
	  FIELD(config),
	  .value = "FILE",
	  .typed_only = true,
	  .help = "read options from this libconfig file; flags win over it" },
	{ .name = "listen",
	  .kind = MST_OPTION_STRING,
	  FIELD(listen),
	  .fallback = "127.0.0.1:17077",
	  .value = "HOST:PORT",
	  .help = "address of the control port; port 0 takes any free one" },
	{ .name = "job",
	  .kind = MST_OPTION_STRING,
	  FIELD(job),
	  .fallback = "default",
	  .value = "NAME",
	  .help = "the job's name, which workers must know" },
	{ .name = "workers",
	  .letter = 'n',
	  .kind = MST_OPTION_U32,
	  FIELD(workers),
	  .min = 1,
	  .max = MST_WORKERS_MAX,
	  .value = "W",
	  .help = "workers of the job; it starts when all of them have" },
	{ .name = "policy",
	  .kind = MST_OPTION_STRING,
	  FIELD(policy),
	  .fallback = "bsp",
	  .value = "POLICY",
	  .help = "synchronisation mode: when a step commits, what becomes of late gradients, "
		  "when a worker goes on" },
	{ .name = "owner",
	  .kind = MST_OPTION_CHOICE,
	  FIELD(owner),
	  .fallback = "servers",
	  .choices = "servers|workers",
	  .help = "who updates the parameters: servers answer with parameters, or workers get "
		  "every mean gradient and apply it" },
	{ .name = "optimizer",
	  .kind = MST_OPTION_STRING,
	  FIELD(optimizer),
	  .fallback = OPTIMIZER_DEFAULT,
	  .value = "SPEC",
	  .help = "what the servers do with a sum: sgd:lr=LR,momentum=M, or add for "
		  "contributions that are deltas; what is left out is as in the default" },
	{ .name = "lr-scale",
	  .kind = MST_OPTION_CHOICE,
	  FIELD(lr_scale),
	  .fallback = "linear",
	  .choices = "linear|none",
	  .help = "linear: the rate of a commit is multiplied by the contributions in it and "
		  "divided by --workers" },
	{ .name = "transport",
	  .kind = MST_OPTION_CHOICE,
	  FIELD(transport),
	  .fallback = "auto",
	  .choices = "auto|shm|verbs",
	  .help = "how gradients travel: through shared memory to workers on this host, or by "
		  "RDMA verbs to workers on any; auto is shared memory" },
	{ .name = "data-address",
	  .kind = MST_OPTION_STRING,
	  FIELD(data_address),
	  .value = "LIST",
	  .help = "verbs: addresses of this host on the data network, one per rail, such as "
		  "10.0.0.1,10.0.1.1; by default the first that has an RDMA device" },
	{ .name = "device",
	  .kind = MST_OPTION_STRING,
	  FIELD(device),
	  .value = "LIST",
	  .help = "verbs: devices and ports to use, one per rail, such as mlx5_0,mlx5_1:2; by "
		  "default those that the data addresses belong to" },
	{ .name = "gid-index",
	  .kind = MST_OPTION_STRING,
	  FIELD(gid_index),
	  .fallback = "auto",
	  .value = "N",
	  .help = "verbs: entry of the port's GID table; auto is the one of the data address" },
	{ .name = "pkey",
	  .kind = MST_OPTION_STRING,
	  FIELD(pkey),
	  .fallback = "auto",
	  .value = "KEY",
	  .help = "verbs: partition key, such as 0x8001; auto is the path's own" },
	{ .name = "traffic-class",
	  .kind = MST_OPTION_U32,
	  FIELD(traffic_class),
	  .fallback = "0",
	  .max = UINT8_MAX,
	  .help = "verbs: traffic class of all packets, both ways; on RoCE it holds the DSCP: four "
		  "times the DSCP is the class, 104 for DSCP 26" },
	{ .name = "service-level",
	  .kind = MST_OPTION_U32,
	  FIELD(service_level),
	  .fallback = "0",
	  .max = 15,
	  .help = "verbs: service level of all packets, both ways" },
	{ .name = "ack-timeout",
	  .kind = MST_OPTION_U32,
	  FIELD(ack_timeout),
	  .fallback = "16",
	  .min = 1,
	  .max = 31,
	  .help = "verbs: a try waits 4.096 us x 2^N for its acknowledgement, 14 is 67 ms, 16 is "
		  "0.27 s, 18 is 1.07 s; with 16 and 6 retries a dead path shows after 1.9 s" },
	{ .name = "retries",
	  .kind = MST_OPTION_U32,
	  FIELD(retries),
	  .fallback = "6",
	  .help = "verbs: how often a packet is sent again before its worker is lost, 0 to 6; with "
		  "--ack-timeout 16 each takes 0.27 s" },
	{ .name = "relaxed-ordering",
	  .kind = MST_OPTION_FLAG,
	  FIELD(relaxed_ordering),
	  .help = "verbs: let the device write a gradient's bytes to memory in any order, which is "
		  "faster on some hosts" },
	{ .name = "huge-pages",
	  .kind = MST_OPTION_CHOICE,
	  FIELD(huge_pages),
	  .fallback = "auto",
	  .choices = "auto|off",
	  .help = "use huge pages for slots and versions where the host has them" },
	{ .name = "slots",
	  .kind = MST_OPTION_U32,
	  FIELD(slots),
	  .fallback = "auto",
	  .min = 1,
	  .max = MST_SLOTS_MAX,
	  .automatic = "auto",
	  .help = "gradients a worker may have in flight; auto is as many as the policy needs" },
	{ .name = "memory",
	  .kind = MST_OPTION_SIZE,
	  FIELD(memory),
	  .fallback = "auto",
	  .min = 1 << 20,
	  .max = INFINITY,
	  .automatic = "auto",
	  .help = "most memory for slots and versions; auto is 3/4 of what host or control "
		  "group has free" },
	{ .name = "force",
	  .kind = MST_OPTION_FLAG,
	  FIELD(force),
	  .help = "accept a quorum under half of the workers" },
	{ .name = "commits",
	  .kind = MST_OPTION_U64,
	  FIELD(commits),
	  .fallback = "0",
	  .max = INFINITY,
	  .help = "the job ends after so many versions; 0 is no end" },
	{ .name = "samples",
	  .kind = MST_OPTION_REAL,
	  FIELD(samples),
	  .fallback = "0",
	  .max = INFINITY,
	  .help = "the job ends when so many samples are counted; 0 is no end" },
	{ .name = "lease",
	  .kind = MST_OPTION_DURATION,
	  FIELD(lease_ns),
	  .fallback = "5s",
	  .min = 10e6,
	  .max = 3600e9,
	  .help = "a worker silent for so long is taken for dead" },
	{ .name = "patience",
	  .kind = MST_OPTION_DURATION,
	  FIELD(patience_ns),
	  .fallback = "300s",
	  .min = 1e6,
	  .max = YEAR_NS,
	  .help = "how long an open step waits for a worker that is alive" },
	{ .name = "join-timeout",
	  .kind = MST_OPTION_DURATION,
	  FIELD(join_timeout_ns),
	  .fallback = "60s",
	  .min = 1e6,
	  .max = YEAR_NS,
	  .help = "how long the job waits for all workers to start" },
	{ .name = "on-loss",
	  .kind = MST_OPTION_CHOICE,
	  FIELD(on_loss),
	  .fallback = "shrink",
	  .choices = "shrink|fail",
	  .help = "when a worker is lost: go on with the others, or fail the job" },
	{ .name = "min-workers",
	  .kind = MST_OPTION_U32,
	  FIELD(min_workers),
	  .fallback = "1",
	  .min = 1,
	  .max = MST_WORKERS_MAX,
	  .help = "with fewer live workers the job fails" },
	{ .name = "chunk",
	  .kind = MST_OPTION_SIZE,
	  FIELD(chunk),
	  .fallback = "128K",
	  .min = CHUNK_UNIT,
	  .max = 1 << 30,
	  .help = "unit of summing and sending, a multiple of 4K" },
	{ .name = "group",
	  .kind = MST_OPTION_U32,
	  FIELD(group),
	  .fallback = "8",
	  .min = 1,
	  .max = MST_WORKERS_MAX,
	  .help = "ranks summed as a group; part of what makes the bits of a sum" },
	{ .name = "history",
	  .kind = MST_OPTION_U32,
	  FIELD(history),
	  .fallback = "16",
	  .min = 1,
	  .max = 4096,
	  .help = "workers own: versions kept for those who are behind" },
	{ .name = "buffers",
	  .kind = MST_OPTION_U32,
	  FIELD(buffers),
	  .fallback = "4",
	  .min = 3,
	  .max = 1024,
	  .help = "versions in memory besides the history; b workers that read slowly need b + "
		  "3" },
	{ .name = "shards",
	  .kind = MST_OPTION_U32,
	  FIELD(shards),
	  .fallback = "auto",
	  .min = 1,
	  .max = MST_SHARDS_MAX,
	  .automatic = "auto",
	  .help = "threads that share the sums, each with a range of the vector; auto is one for "
		  "each 512 KiB of it, as far as there are processors" },
	{ .name = "cpus",
	  .kind = MST_OPTION_STRING,
	  FIELD(cpus),
	  .fallback = "auto",
	  .value = "LIST",
	  .help = "processors to pin these threads to, one after the other, such as 0-3,8; auto "
		  "leaves that to the kernel" },
	{ .name = "spin-pauses",
	  .kind = MST_OPTION_U32,
	  FIELD(spin_pauses),
	  .fallback = "20",
	  .max = 1e9,
	  .help = "pauses before a waiting thread begins to yield" },
	{ .name = "spin-yields",
	  .kind = MST_OPTION_U32,
	  FIELD(spin_yields),
	  .fallback = "2000",
	  .max = 1e9,
	  .help = "yields before a waiting thread sleeps" },
	{ .name = "log-level",
	  .kind = MST_OPTION_STRING,
	  FIELD(log_level),
	  .fallback = "info",
	  .value = "LEVEL",
	  .help = "least important messages to print: error, warn, info or debug" },
	{ .name = "print-config",
	  .kind = MST_OPTION_FLAG,
	  FIELD(print_config),
	  .typed_only = true,
	  .help = "print all options as a file for --config, and exit" },
	{ .name = "help",
	  .letter = 'h',
	  .kind = MST_OPTION_FLAG,
	  FIELD(help),
	  .typed_only = true,
	  .help = "print this, and exit" },
	{ .name = "version",
	  .letter = 'V',
	  .kind = MST_OPTION_FLAG,
	  FIELD(version),
	  .typed_only = true,
	  .help = "print the version, and exit" },
	{ .name = NULL },
};

static int refuse(char *why, size_t why_len, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static int refuse(char *why, size_t why_len, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(why, why_len, fmt, args);
	va_end(args);
	return -EINVAL;
}

/* Reads "lr=0.1" or "momentum=0.9". Return: false if it is neither. */
static bool figure_parse(const char *text, size_t len, struct mst_optimizer *out)
{
	char figure[64];

	if (len >= sizeof(figure))
		return false;
	memcpy(figure, text, len);
	figure[len] = '\0';
	if (strncmp(figure, "lr=", 3) == 0)
		return mst_parse_real(figure + 3, &out->lr) == 0;
	if (strncmp(figure, "momentum=", 9) == 0)
		return mst_parse_real(figure + 9, &out->momentum) == 0;
	return false;
}

/* @text: what follows "sgd". */
static bool sgd_parse(const char *text, struct mst_optimizer *out)
{
	if (*text == '\0')
		return true;
	if (*text != ':')
		return false;
	do {
		text++; /* ':' or ',' */
		size_t len = strcspn(text, ",");
		if (!figure_parse(text, len, out))
			return false;
		text += len;
	} while (*text == ',');
	return true;
}

int mst_optimizer_parse(const char *text, struct mst_optimizer *out, char *why, size_t why_len)
{
	struct mst_optimizer sgd = { MST_OPTIMIZER_SGD, .lr = 0.1, .momentum = 0.9 };

	if (strcmp(text, "add") == 0) {
		*out = (struct mst_optimizer){ .kind = MST_OPTIMIZER_ADD };
		return 0;
	}
	if (strncmp(text, "sgd", 3) != 0 || !sgd_parse(text + 3, &sgd))
		return refuse(why, why_len,
			      "option --optimizer: \"%.60s\" is neither " OPTIMIZER_DEFAULT
			      " nor add",
			      text);
	if (!(sgd.lr > 0) || sgd.lr > (double)FLT_MAX)
		return refuse(why, why_len,
			      "option --optimizer: lr %g has to be above 0, and a number in float",
			      sgd.lr);
	if (!(sgd.momentum >= 0 && sgd.momentum < 1))
		return refuse(why, why_len,
			      "option --optimizer: momentum %g has to be at least 0 and below 1",
			      sgd.momentum);
	*out = sgd;
	return 0;
}

/* "127.0.0.1:17077", "[::1]:0", "host:17077". What a name means, listening finds out. */
static int listen_check(const char *listen, char *why, size_t why_len)
{
	const char *colon = strrchr(listen, ':');
	uint64_t port;

	if (colon == NULL || colon == listen || mst_parse_u64(colon + 1, &port) != 0 ||
	    port > UINT16_MAX)
		return refuse(why, why_len,
			      "option --listen: \"%.60s\" is not HOST:PORT with a port from 0 to"
			      " 65535",
			      listen);
	return 0;
}

static int texts_check(const struct mst_server_options *o, char *why, size_t why_len)
{
	if (o->job[0] == '\0' || strlen(o->job) >= MST_NAME_LEN)
		return refuse(why, why_len,
			      "option --job: \"%.80s\" has to have 1 to %u characters", o->job,
			      MST_NAME_LEN - 1);
	if (mst_log_level_parse(o->log_level) < 0)
		return refuse(why, why_len,
			      "option --log-level: \"%.60s\" is not error, warn, info or debug",
			      o->log_level);
	return listen_check(o->listen, why, why_len);
}

static int figures_check(const struct mst_server_options *o, char *why, size_t why_len)
{
	if (o->workers == 0)
		return refuse(why, why_len,
			      "--workers is missing: say how many workers the job has, such as"
			      " --workers 4");
	if (o->min_workers > o->workers)
		return refuse(why, why_len,
			      "--min-workers %" PRIu32 " can never be met: the job has %" PRIu32
			      " (--workers)",
			      o->min_workers, o->workers);
	if (o->chunk % CHUNK_UNIT != 0)
		return refuse(why, why_len,
			      "option --chunk: %" PRIu64 " bytes are not a multiple of 4K",
			      o->chunk);
	return 0;
}

static bool is_auto(const char *text)
{
	return text == NULL || strcmp(text, "auto") == 0;
}

/* "0x8001", "32769". The keys 0 and 0x8000 are of no partition. */
static bool pkey_parse(const char *text, int32_t *out)
{
	char *end;

	errno = 0;
	unsigned long key = strtoul(text, &end, 0);
	if (text[0] < '0' || text[0] > '9' || errno != 0 || *end != '\0' || key > UINT16_MAX ||
	    (key & 0x7fff) == 0)
		return false;
	*out = (int32_t)key;
	return true;
}

static int names_check(const struct mst_server_options *o, char *why, size_t why_len)
{
	if (o->data_address != NULL && strlen(o->data_address) >= MST_ADDRESS_LEN)
		return refuse(why, why_len, "option --data-address: \"%.60s...\" is too long",
			      o->data_address);
	if (o->device != NULL && strlen(o->device) >= MST_ADDRESS_LEN)
		return refuse(why, why_len, "option --device: \"%.60s...\" is too long", o->device);
	return 0;
}

int mst_server_options_fabric(const struct mst_server_options *o, struct mst_fabric *out, char *why,
			      size_t why_len)
{
	struct mst_fabric fabric = MST_FABRIC_DEFAULT;
	uint64_t index;
	int rc = names_check(o, why, why_len);

	if (rc != 0)
		return rc;
	if (!is_auto(o->gid_index)) {
		if (mst_parse_u64(o->gid_index, &index) != 0 || index > UINT8_MAX)
			return refuse(why, why_len,
				      "option --gid-index: \"%.60s\" is not a whole number from 0 "
				      "to 255, or auto",
				      o->gid_index);
		fabric.gid_index = (int)index;
	}
	if (!is_auto(o->pkey) && !pkey_parse(o->pkey, &fabric.pkey))
		return refuse(why, why_len,
			      "option --pkey: \"%.60s\" is not a partition key from 0x0001 to "
			      "0xffff, or auto",
			      o->pkey);
	if (o->retries > 6)
		return refuse(why, why_len,
			      "option --retries: %" PRIu32 " is not from 0 to 6; 7 stands for ever "
			      "on some devices, which would never notice a dead worker",
			      o->retries);
	fabric.addresses = o->data_address;
	fabric.devices = o->device;
	fabric.traffic_class = (uint8_t)o->traffic_class;
	fabric.service_level = (uint8_t)o->service_level;
	fabric.ack_timeout = (uint8_t)o->ack_timeout;
	fabric.retries = (uint8_t)o->retries;
	fabric.relaxed_ordering = o->relaxed_ordering;
	fabric.huge_pages = o->huge_pages == 0;
	*out = fabric;
	return 0;
}

static int optimizer_check(const struct mst_server_options *o, struct mst_optimizer *out, char *why,
			   size_t why_len)
{
	int rc = mst_optimizer_parse(o->optimizer, out, why, why_len);

	if (rc != 0)
		return rc;
	if (o->owner == MUSTER_WORKERS_OWN && strcmp(o->optimizer, OPTIMIZER_DEFAULT) != 0)
		return refuse(why, why_len,
			      "--optimizer %.60s has nothing to do with --owner workers: there the"
			      " workers update the parameters themselves",
			      o->optimizer);
	return 0;
}

int mst_server_options_rule(const struct mst_server_options *o, struct mst_rule *out, char *why,
			    size_t why_len)
{
	struct mst_optimizer optimizer;
	int rc = optimizer_check(o, &optimizer, why, why_len);

	if (rc != 0)
		return rc;
	if (strlen(o->policy) >= MST_POLICY_LEN)
		return refuse(why, why_len, "option --policy: \"%.60s...\" is too long", o->policy);
	*out = (struct mst_rule){
		.divide = optimizer.kind != MST_OPTIMIZER_ADD,
		.patience_ns = o->patience_ns,
		.on_loss = (enum mst_loss)o->on_loss,
		.min_workers = o->min_workers,
	};
	return mst_rule_parse(o->policy, out, why, why_len);
}

static int policy_check(const struct mst_server_options *o, char *why, size_t why_len)
{
	struct mst_rule rule;
	char wrong[MST_SENTENCE_LEN];

	if (mst_server_options_rule(o, &rule, why, why_len) != 0)
		return -EINVAL;
	struct mst_rule_context ctx = {
		.owner = (enum muster_owner)o->owner,
		.workers = o->workers,
		.slots = o->slots != 0 ? o->slots : mst_rule_slots(&rule),
		.force = o->force,
	};
	if (mst_rule_check(&rule, &ctx, wrong, sizeof(wrong)) != 0)
		return refuse(why, why_len, "--policy %s: %s", o->policy, wrong);
	return 0;
}

static int cpus_check(const struct mst_server_options *o, char *why, size_t why_len)
{
	struct mst_cpus cpus;
	int rc = mst_cpus_parse(o->cpus, &cpus, why, why_len);

	if (rc != 0 || mst_cpus_forbidden(&cpus) < 0)
		return rc;
	(void)snprintf(why, why_len,
		       "--cpus names processor %d, and this process may not run there (taskset, "
		       "cgroups, or there is none)",
		       mst_cpus_forbidden(&cpus));
	return -EINVAL;
}

int mst_server_options_check(const struct mst_server_options *o, char *why, size_t why_len)
{
	struct mst_fabric fabric;
	int rc = figures_check(o, why, why_len);

	if (rc == 0)
		rc = mst_server_options_fabric(o, &fabric, why, why_len);
	if (rc == 0)
		rc = texts_check(o, why, why_len);
	if (rc == 0)
		rc = cpus_check(o, why, why_len);
	return rc != 0 ? rc : policy_check(o, why, why_len);
}
