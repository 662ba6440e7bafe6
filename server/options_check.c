/* SPDX-License-Identifier: MIT */
/* What a row of the server's options alone cannot check, and what their texts stand for. */
#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/wire/lane.h"
#include "common/wire/message.h"
#include "server/core/rule.h"
#include "server/cpus.h"
#include "server/options.h"

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
			      "option --optimizer: \"%.60s\" is neither " MST_OPTIMIZER_DEFAULT
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
static int listen_check(const char *option, const char *listen, char *why, size_t why_len)
{
	const char *colon = strrchr(listen, ':');
	uint64_t port;

	if (colon == NULL || colon == listen || mst_parse_u64(colon + 1, &port) != 0 ||
	    port > UINT16_MAX)
		return refuse(why, why_len,
			      "option --%s: \"%.60s\" is not HOST:PORT with a port from 0 to"
			      " 65535",
			      option, listen);
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
	int rc = listen_check("listen", o->listen, why, why_len);
	if (rc != 0 || o->join == NULL)
		return rc;
	return listen_check("join", o->join, why, why_len);
}

/* "2,1,1". Return: how many; 0: it is no such list. */
static uint32_t weights_parse(const char *text, uint32_t weights[MST_SERVERS_MAX])
{
	uint32_t count = 0;

	while (count < MST_SERVERS_MAX) {
		char figure[8];
		size_t len = strcspn(text, ",");
		uint64_t weight;
		if (len >= sizeof(figure))
			return 0;
		memcpy(figure, text, len);
		figure[len] = '\0';
		if (mst_parse_u64(figure, &weight) != 0 || weight == 0 ||
		    weight > MST_PART_WEIGHT_MAX)
			return 0;
		weights[count++] = (uint32_t)weight;
		if (text[len] == '\0')
			return count;
		text += len + 1;
	}
	return 0;
}

int mst_server_options_spread(const struct mst_server_options *o, uint32_t weights[MST_SERVERS_MAX],
			      char *why, size_t why_len)
{
	for (uint32_t i = 0; i < MST_SERVERS_MAX; i++)
		weights[i] = 1;
	if (strcmp(o->spread, "even") == 0)
		return 0;
	uint32_t count = weights_parse(o->spread, weights);
	if (count == 0)
		return refuse(why, why_len,
			      "option --spread: \"%.60s\" is neither even nor a list of whole "
			      "numbers from 1 to %u, such as 2,1,1",
			      o->spread, MST_PART_WEIGHT_MAX);
	if (count != o->servers)
		return refuse(why, why_len,
			      "option --spread: \"%.60s\" has %" PRIu32 " numbers for %" PRIu32
			      " servers (--servers)",
			      o->spread, count, o->servers);
	return 0;
}

static int servers_check(const struct mst_server_options *o, char *why, size_t why_len)
{
	uint32_t weights[MST_SERVERS_MAX];

	if (o->join != NULL && o->servers > 1)
		return refuse(why, why_len,
			      "--join makes this server a member of a job, --servers is its "
			      "lead's to say");
	return mst_server_options_spread(o, weights, why, why_len);
}

static int budget_check(const struct mst_server_options *o, char *why, size_t why_len)
{
	if (o->budget != 0 && o->join != NULL)
		return refuse(why, why_len,
			      "--budget is for the lead, which knows of all servers; leave --join "
			      "out");
	if (o->budget % sizeof(float) != 0)
		return refuse(why, why_len,
			      "option --budget: %" PRIu64 " bytes are not a number of elements of "
			      "f32",
			      o->budget);
	return 0;
}

static int figures_check(const struct mst_server_options *o, char *why, size_t why_len)
{
	if (o->workers == 0 && o->join == NULL)
		return refuse(why, why_len,
			      "--workers is missing: say how many workers the job has, such as"
			      " --workers 4");
	if (o->min_workers > o->workers && o->join == NULL)
		return refuse(why, why_len,
			      "--min-workers %" PRIu32 " can never be met: the job has %" PRIu32
			      " (--workers)",
			      o->min_workers, o->workers);
	if (o->chunk % MST_CHUNK_UNIT != 0)
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
	if (o->owner == MUSTER_WORKERS_OWN && strcmp(o->optimizer, MST_OPTIMIZER_DEFAULT) != 0)
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
	if (rc == 0)
		rc = servers_check(o, why, why_len);
	if (rc == 0)
		rc = budget_check(o, why, why_len);
	if (o->join != NULL)
		return rc; /* the lead has checked its own */
	return rc != 0 ? rc : policy_check(o, why, why_len);
}
