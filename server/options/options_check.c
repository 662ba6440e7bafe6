/* SPDX-License-Identifier: MIT */
/* Checks of the server's options that one row of the table cannot make, and the meaning of options
 * that are texts. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "common/host/user.h"
#include "common/transport/hostport.h"
#include "common/transport/transport.h"
#include "common/wire/lane.h"
#include "common/wire/message.h"
#include "server/core/ledger/outliers.h"
#include "server/core/policy/majority.h"
#include "server/options/cpus.h"
#include "server/options/data_tls.h"
#include "server/options/options.h"
#include "server/options/paths.h"
#include "server/options/rule.h"

/* At most ten versions a second are saved, however often --checkpoint-every asks for it. */
#define SAVE_PAUSE_NS (100 * MST_MS)

int mst_server_options_checkpoints(const struct mst_server_options *o, struct mst_saves *out,
				   struct mst_reason *why)
{
	const char *every = o->checkpoint_every;

	if (strcmp(every, MST_CHECKPOINT_EVERY) == 0)
		every = mst_server_options_succeeds(o) ? "1min" : "10min";
	*out = (struct mst_saves){ .wanted = mst_server_options_saves(o),
				   .pause_ns = SAVE_PAUSE_NS };
	if (mst_parse_u64(every, &out->commits) == 0)
		return 0;
	if (mst_parse_duration(every, &out->every_ns) == 0 && out->every_ns > 0)
		return 0;
	return mst_reason_fail(
		why, -EINVAL,
		"option --checkpoint-every: \"%.60s\" is neither a number of versions, such "
		"as 1000, nor a duration, such as 10min, nor auto",
		every);
}

/* A server that takes this one's place has the same command line. */
static int successor_check(const struct mst_server_options *o, struct mst_reason *why)
{
	bool owns = mst_server_options_goes_on(o) && o->owner == MUSTER_SERVERS_OWN;

	if (!owns || o->resume == NULL || o->join != NULL)
		return 0;
	if (!mst_server_options_saves(o))
		return mst_reason_fail(
			why, -EINVAL,
			"--resume %.200s with --server-patience would have every server that takes "
			"this one's place go back to that checkpoint, for nothing newer is saved: "
			"give --state %.200s in its place, which is gone on from, too",
			o->resume, o->resume);
	if (mst_server_paths_same(o->resume, o->state))
		return 0;
	return mst_reason_fail(
		why, -EINVAL,
		"--resume %.200s with --server-patience would have every server that takes this "
		"one's place go back to that checkpoint, not to the newest in %.200s (--state): "
		"leave --resume out, and first copy its files to %.200s if the job is to begin "
		"with them",
		o->resume, o->state, o->state);
}

static int state_check(const struct mst_server_options *o, struct mst_reason *why)
{
	struct mst_saves saves;

	if (o->or_begin && o->resume == NULL)
		return mst_reason_fail(
			why, -EINVAL,
			"--or-begin means nothing without --resume, which says where to look "
			"for a checkpoint");
	if (o->resume != NULL && o->resume[0] == '\0')
		return mst_reason_fail(why, -EINVAL, "option --resume: the directory has no name");
	if (o->state != NULL && o->state[0] == '\0')
		return mst_reason_fail(why, -EINVAL, "option --state: the directory has no name");
	if (!mst_server_options_saves(o) && strcmp(o->checkpoint_every, MST_CHECKPOINT_EVERY) != 0)
		return mst_reason_fail(
			why, -EINVAL,
			"--checkpoint-every %.40s does nothing without --state DIR, which says "
			"where versions are saved",
			o->checkpoint_every);
	int rc = successor_check(o, why);
	return rc != 0 ? rc : mst_server_options_checkpoints(o, &saves, why);
}

/* A host's name is resolved later, by listening. */
static int listen_check(const char *option, const char *listen, struct mst_reason *why)
{
	struct mst_hostport at;
	struct mst_reason cause;
	int rc = mst_hostport_read(listen, &at, &cause);

	return rc == 0 ? 0 : mst_reason_fail(why, rc, "option --%s: %s", option, cause.text);
}

static int texts_check(const struct mst_server_options *o, struct mst_reason *why)
{
	struct mst_networks networks;

	if (o->job[0] == '\0' || strlen(o->job) >= MST_NAME_LEN)
		return mst_reason_fail(why, -EINVAL,
				       "option --job: \"%.80s\" has to have 1 to %u characters",
				       o->job, MST_NAME_LEN - 1);
	if (mst_networks_read(o->transport, &networks, why) != 0)
		return mst_reason_fail(why, -EINVAL, "option --transport: %s", why->text);
	if (!mst_text_is_clean(o->job))
		return mst_reason_fail(
			why, -EINVAL,
			"option --job: the name has to be UTF-8 without control characters");
	if (mst_log_level_parse(o->log_level) < 0)
		return mst_reason_fail(
			why, -EINVAL,
			"option --log-level: \"%.60s\" is not error, warn, info or debug",
			o->log_level);
	int rc = listen_check("listen", o->listen, why);
	if (rc != 0 || o->join == NULL)
		return rc;
	return listen_check("join", o->join, why);
}

/* Reads a list of weights such as "2,1,1".
 * Return: how many; 0: it is no such list. */
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

int mst_server_options_partition(const struct mst_server_options *o,
				 uint32_t weights[MST_SERVERS_MAX], struct mst_reason *why)
{
	for (uint32_t i = 0; i < MST_SERVERS_MAX; i++)
		weights[i] = 1;
	if (strcmp(o->partition, "even") == 0)
		return 0;
	uint32_t count = weights_parse(o->partition, weights);
	if (count == 0)
		return mst_reason_fail(
			why, -EINVAL,
			"option --partition: \"%.60s\" is neither even nor a list of whole "
			"numbers from 1 to %u, such as 2,1,1",
			o->partition, MST_PART_WEIGHT_MAX);
	if (count != o->servers)
		return mst_reason_fail(why, -EINVAL,
				       "option --partition: \"%.60s\" has %" PRIu32
				       " numbers for %" PRIu32 " servers (--servers)",
				       o->partition, count, o->servers);
	return 0;
}

static int servers_check(const struct mst_server_options *o, struct mst_reason *why)
{
	uint32_t weights[MST_SERVERS_MAX];

	if (o->join != NULL && o->servers > 1)
		return mst_reason_fail(
			why, -EINVAL,
			"--join makes this server a follower, and --servers is for the "
			"leader: leave one of the two out");
	return mst_server_options_partition(o, weights, why);
}

static int record_check(const struct mst_server_options *o, struct mst_reason *why)
{
	if (!mst_server_options_record(o))
		return 0;
	if (o->join != NULL)
		return mst_reason_fail(
			why, -EINVAL,
			"--record is for the leader, which learns of every gradient; leave "
			"it out beside --join");
	if (strcmp(o->record, "-") == 0)
		return mst_reason_fail(why, -EINVAL,
				       "option --record: - names no file here; standard output is "
				       "/dev/stdout");
	return 0;
}

static int budget_check(const struct mst_server_options *o, struct mst_reason *why)
{
	if (o->budget != 0 && o->join != NULL)
		return mst_reason_fail(
			why, -EINVAL,
			"--budget is for the leader, which knows of all servers; leave "
			"--join out");
	if (o->budget % sizeof(float) != 0)
		return mst_reason_fail(why, -EINVAL,
				       "option --budget: %" PRIu64
				       " bytes are not a number of elements of "
				       "f32",
				       o->budget);
	return 0;
}

static int figures_check(const struct mst_server_options *o, struct mst_reason *why)
{
	if (o->workers == 0 && o->join == NULL)
		return mst_reason_fail(
			why, -EINVAL,
			"--workers is missing: say how many workers the job has, such as"
			" --workers 4");
	if (o->min_workers > o->workers && o->join == NULL)
		return mst_reason_fail(why, -EINVAL,
				       "--min-workers %" PRIu32
				       " can never be met: the job has %" PRIu32 " (--workers)",
				       o->min_workers, o->workers);
	if (o->norm_limit != 0 && o->norm_limit < 1)
		return mst_reason_fail(
			why, -EINVAL,
			"--norm-limit %g would refuse what is as long as the median: say how "
			"many times the median a norm may be, such as 10, or 0 for no limit",
			o->norm_limit);
	if (o->norm_limit != 0 && o->join == NULL && o->workers < MST_OUTLIERS_MIN)
		return mst_reason_fail(
			why, -EINVAL,
			"--norm-limit %g needs %u workers or more for a median that one of "
			"them cannot make alone: the job has %" PRIu32 " (--workers)",
			o->norm_limit, MST_OUTLIERS_MIN, o->workers);
	if (o->chunk % MST_CHUNK_UNIT != 0)
		return mst_reason_fail(why, -EINVAL,
				       "option --chunk: %" PRIu64 " bytes are not a multiple of 4K",
				       o->chunk);
	return 0;
}

uint64_t mst_server_options_join_until(const struct mst_server_options *o, uint64_t since_ns)
{
	return o->join_timeout_ns != 0 ? since_ns + o->join_timeout_ns : MST_NEVER;
}

uint32_t mst_server_options_min_workers(const struct mst_server_options *o)
{
	if (o->min_workers != 0)
		return o->min_workers;
	return mst_server_options_goes_on(o) ? mst_majority_least(o->workers) : 1;
}

uint64_t mst_server_options_stop_timeout(const struct mst_server_options *o, uint64_t usual_ns)
{
	return o->stop_timeout_ns != 0 ? o->stop_timeout_ns : usual_ns;
}

#define LEASES_OF_SERVER 3u

uint64_t mst_server_options_server_lease(const struct mst_server_options *o)
{
	return o->server_lease_ns != 0 ? o->server_lease_ns : LEASES_OF_SERVER * o->lease_ns;
}

static int leases_check(const struct mst_server_options *o, struct mst_reason *why)
{
	if (mst_server_options_server_lease(o) >= o->lease_ns)
		return 0;
	return mst_reason_fail(
		why, -EINVAL,
		"--server-lease %.3g s is shorter than --lease %.3g s: a server beats a few "
		"times in a lease",
		(double)o->server_lease_ns / (double)MST_SECOND,
		(double)o->lease_ns / (double)MST_SECOND);
}

static int cpus_check(const struct mst_server_options *o, struct mst_reason *why)
{
	struct mst_cpus cpus;
	int rc = mst_cpus_parse(o->cpus, &cpus, why);

	if (rc != 0 || mst_cpus_forbidden(&cpus) < 0)
		return rc;
	mst_reason_set(why,
		       "--cpus names processor %d, and this process may not run there (taskset, "
		       "cgroups, or there is none)",
		       mst_cpus_forbidden(&cpus));
	return -EINVAL;
}

/* --budget starts no server. */
static int access_check(const struct mst_server_options *o, struct mst_reason *why)
{
	enum mst_access access;

	if (o->budget != 0)
		return 0;
	int rc = mst_server_options_access(o, &access, why);
	return rc != 0 ? rc : mst_data_tls_check(o, why);
}

static int finish_check(const struct mst_server_options *o, struct mst_reason *why)
{
	if (o->join == NULL || o->finish == MST_FINISH_BY_WORKER)
		return 0;
	return mst_reason_fail(
		why, -EINVAL,
		"--finish is for the leader, whose job it is; leave it out beside --join");
}

static int user_check(const struct mst_server_options *o, struct mst_reason *why)
{
	struct mst_user user;

	if (!mst_server_options_becomes(o) || mst_user_find(o->user, &user, why) == 0)
		return 0;
	return mst_reason_fail(why, -EINVAL, "option --user: %s", why->text);
}

int mst_server_options_workers_check(const struct mst_server_options *o, struct mst_reason *why)
{
	int rc = figures_check(o, why);

	return rc != 0 ? rc : mst_server_rule_check(o, why);
}

int mst_server_options_check(const struct mst_server_options *o, struct mst_reason *why)
{
	struct mst_fabric fabric;
	int rc = figures_check(o, why);

	if (rc == 0)
		rc = mst_fabric_read(&o->fabric, &fabric, why);
	if (rc == 0)
		rc = texts_check(o, why);
	if (rc == 0)
		rc = access_check(o, why);
	if (rc == 0)
		rc = finish_check(o, why);
	if (rc == 0)
		rc = leases_check(o, why);
	if (rc == 0)
		rc = cpus_check(o, why);
	if (rc == 0)
		rc = servers_check(o, why);
	if (rc == 0)
		rc = budget_check(o, why);
	if (rc == 0)
		rc = record_check(o, why);
	if (rc == 0)
		rc = state_check(o, why);
	if (rc == 0 && o->budget == 0) /* which may be asked of another host */
		rc = mst_server_paths_check(o, why);
	if (rc == 0)
		rc = user_check(o, why);
	if (o->join != NULL)
		return rc; /* a follower has no policy: its leader has checked it */
	return rc != 0 ? rc : mst_server_rule_check(o, why);
}
