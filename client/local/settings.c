/* SPDX-License-Identifier: MIT */
#include "client/local/settings.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/local/mapped.h"
#include "client/local/sized.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "common/transport/hostport.h"
#include "common/transport/reach.h"

/* Over a network whose processors move the bytes, a worker that computes receives nothing: its
 * server's results would wait. */
#define IO_THREADS 1u
#define DEFAULT_SERVER "127.0.0.1:" MST_CONTROL_PORT
#define DEFAULT_JOB "default"
#define DEFAULT_JOIN_MS 60000u

/* The option, or else the variable, or else the default; an empty one counts as unset. */
static const char *choose(const char *option, const char *variable, const char *otherwise)
{
	const char *value = option != NULL ? option : getenv(variable);

	return value != NULL && value[0] != '\0' ? value : otherwise;
}

/* torchrun gives every process the address of the first host; its MASTER_PORT is that of the store
 * of torch, where no musterd can listen. A v6 address needs brackets before a port. */
static int read_master(const char *host, struct mst_settings *out, struct mst_reason *why)
{
	bool bare_v6 = host[0] != '[' && strchr(host, ':') != NULL;
	int len = snprintf(out->server, sizeof(out->server), "%s%s%s:%s", bare_v6 ? "[" : "", host,
			   bare_v6 ? "]" : "", MST_CONTROL_PORT);

	if (len < 0 || (size_t)len >= sizeof(out->server))
		return mst_reason_fail(
			why, -EINVAL,
			"MASTER_ADDR has %zu characters; set MUSTER_SERVER to HOST:PORT",
			strlen(host));
	out->server_from = "MASTER_ADDR";
	return 0;
}

static int read_server(const struct muster_options *opt, struct mst_settings *out,
		       struct mst_reason *why)
{
	const char *server = choose(opt->server, "MUSTER_SERVER", NULL);
	const char *master = choose(NULL, "MASTER_ADDR", NULL);
	char text[MST_HOSTPORT_LEN];
	struct mst_hostport at;
	struct mst_reason cause;

	if (server == NULL && master != NULL)
		return read_master(master, out, why);
	if (server == NULL)
		server = DEFAULT_SERVER;
	if (strlen(server) >= sizeof(out->server))
		return mst_reason_fail(
			why, -EINVAL,
			"the server's address has %zu characters, at most %zu are taken",
			strlen(server), sizeof(out->server) - 1);
	int rc = mst_hostport_read(server, &at, &cause);
	if (rc != 0)
		return mst_reason_fail(
			why, rc, "the server's address %s: fix options.server or MUSTER_SERVER",
			cause.text);
	(void)snprintf(out->server, sizeof(out->server), "%s", mst_hostport_text(server, text));
	return 0;
}

static int read_job(const struct muster_options *opt, struct mst_settings *out,
		    struct mst_reason *why)
{
	const char *job = choose(opt->job, "MUSTER_JOB", DEFAULT_JOB);

	if (strlen(job) >= sizeof(out->job))
		return mst_reason_fail(why, -EINVAL,
				       "the job's name has %zu characters, at most %zu are taken",
				       strlen(job), sizeof(out->job) - 1);
	if (!mst_text_is_clean(job))
		return mst_reason_fail(why, -EINVAL,
				       "the job's name is not UTF-8 without control characters");
	(void)snprintf(out->job, sizeof(out->job), "%s", job);
	return 0;
}

/* A whole number from @min on. Return: false if it is none. */
static bool read_number(const char *text, int32_t min, int32_t *out)
{
	char *end;

	errno = 0;
	long number = strtol(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0' || number < min || number > INT32_MAX)
		return false;
	*out = (int32_t)number;
	return true;
}

/*
 * What gives a process its rank. The first that is set holds: the user's, then that of the launcher
 * that is nearest to the process. srun or mpirun may start one torchrun on each host, which starts
 * the workers, so torchrun comes first; it sets WORLD_SIZE with RANK, and RANK alone may be
 * anybody's. mpirun may run within what srun has started, or in an sbatch script, so it comes
 * before Slurm.
 */
static const struct rank_variable {
	const char *name;
	const char *beside; /* counts only where this one is set, too; NULL: always */
	int32_t min;        /* -1: it may ask for any rank */
} rank_variables[] = {
	{ "MUSTER_RANK", NULL, -1 },
	{ "RANK", "WORLD_SIZE", 0 },
	{ "OMPI_COMM_WORLD_RANK", NULL, 0 },
	{ "PMIX_RANK", NULL, 0 },
	{ "PMI_RANK", NULL, 0 },
	{ "SLURM_PROCID", NULL, 0 },
	{ "RANK", NULL, 0 },
};

static const struct rank_variable *find_rank(void)
{
	for (size_t i = 0; i < sizeof(rank_variables) / sizeof(rank_variables[0]); i++) {
		const struct rank_variable *v = &rank_variables[i];
		if (choose(NULL, v->name, NULL) != NULL &&
		    (v->beside == NULL || choose(NULL, v->beside, NULL) != NULL))
			return v;
	}
	return NULL;
}

static int read_rank(const struct muster_options *opt, struct mst_settings *out,
		     struct mst_reason *why)
{
	const struct rank_variable *v = find_rank();

	out->rank = opt->rank;
	if (opt->rank < -1)
		return mst_reason_fail(
			why, -EINVAL, "options.rank is %" PRId32 "; a rank is 0 or more, -1 is any",
			opt->rank);
	if (opt->rank >= 0 || v == NULL)
		return 0;
	const char *text = choose(NULL, v->name, "");
	if (!read_number(text, v->min, &out->rank))
		return mst_reason_fail(
			why, -EINVAL, "%s is \"%.40s\"; a rank is 0 or more%s", v->name, text,
			v->min < 0 ? ", -1 is any" : "; set MUSTER_RANK, which comes first");
	out->rank_from = v->name;
	return 0;
}

static int read_vector(const struct muster_options *opt, struct mst_settings *out,
		       struct mst_reason *why)
{
	if (opt->elems == 0 || opt->elems > MST_ELEMS_MAX)
		return mst_reason_fail(why, -EINVAL,
				       "options.elems is %" PRIu64
				       "; a vector has 1 to 2^40 elements",
				       opt->elems);
	if ((unsigned)opt->type > MUSTER_F16 || (unsigned)opt->result_type > MUSTER_F16)
		return mst_reason_fail(
			why, -EINVAL, "options.type or options.result_type is no enum muster_type");
	if ((unsigned)opt->owner > MUSTER_WORKERS_OWN)
		return mst_reason_fail(why, -EINVAL, "options.owner is no enum muster_owner");
	out->elems = opt->elems;
	out->type = opt->type;
	out->result_type = opt->result_type;
	out->owner = opt->owner;
	return 0;
}

static int read_clip(const struct muster_options *opt, struct mst_settings *out,
		     struct mst_reason *why)
{
	const char *text = choose(NULL, "MUSTER_CLIP", "0");
	char *end;

	out->clip = opt->clip;
	if (!(opt->clip >= 0 && isfinite(opt->clip)))
		return mst_reason_fail(
			why, -EINVAL,
			"options.clip is %g; it is the norm that a longer gradient is "
			"shortened to, or 0 for none",
			opt->clip);
	if (opt->clip > 0)
		return 0;
	out->clip = mst_text_real(text, &end);
	if (end == text || *end != '\0' || !(out->clip >= 0 && isfinite(out->clip)))
		return mst_reason_fail(
			why, -EINVAL,
			"MUSTER_CLIP is \"%.40s\"; it is the norm that a longer gradient is "
			"shortened to, or 0 for none",
			text);
	return 0;
}

/* A server, or muster_wait(), would only find out later. */
static int read_result_into(const struct muster_options *opt, struct mst_settings *out,
			    struct mst_reason *why)
{
	size_t bytes = mst_settings_result_bytes(out);
	struct mst_mapped found;

	out->result_into = opt->result_into;
	if (opt->result_into == NULL ||
	    mst_mapped_check(opt->result_into, bytes, MST_MAPPED_FOR_WRITING, &found) == 0)
		return 0;
	mst_reason_set(why,
		       "options.result_into needs memory for a result, %" PRIu64
		       " elements in %zu bytes, and of that at %p %s",
		       out->elems, bytes, opt->result_into, found.why.text);
	return found.error;
}

static int check_tensors(const struct muster_options *opt, struct mst_reason *why)
{
	if (opt->tensor_count > 0 && opt->tensors == NULL)
		return mst_reason_fail(why, -EINVAL,
				       "options.tensor_count is %" PRIu32
				       ", options.tensors is NULL",
				       opt->tensor_count);
	if (opt->tensor_count > 0 && mst_tensors_check(opt, why) != 0)
		return mst_reason_fail(why, -EINVAL, "options.tensors: %s", why->text);
	return 0;
}

static int read_networks(struct mst_settings *out, struct mst_reason *why)
{
	int rc = mst_networks_read(choose(NULL, "MUSTER_TRANSPORT", "auto"), &out->networks, why);

	return rc == 0 ? 0 : mst_reason_fail(why, rc, "MUSTER_TRANSPORT: %s", why->text);
}

/* What the environment says may change after this. */
static const char *keep(const char *text, char kept[MST_FABRIC_TEXT_LEN])
{
	if (text == NULL)
		return NULL;
	(void)snprintf(kept, MST_FABRIC_TEXT_LEN, "%s", text);
	return kept;
}

static int read_fabric(struct mst_settings *out, struct mst_reason *why)
{
	int rc = mst_fabric_environment(&out->fabric, why);

	if (rc != 0)
		return rc;
	out->fabric.devices = keep(out->fabric.devices, out->devices);
	out->fabric.addresses = keep(out->fabric.addresses, out->addresses);
	return 0;
}

static int read_comes_back(const struct muster_options *opt, struct mst_settings *out,
			   struct mst_reason *why)
{
	if (opt->comes_back && opt->owner != MUSTER_WORKERS_OWN)
		return mst_reason_fail(
			why, -EINVAL,
			"options.comes_back is set, and servers own the parameters: a "
			"worker that joins late has them from the servers, and needs no "
			"state of another worker");
	out->comes_back = opt->comes_back;
	return 0;
}

/* A process says it once, however many workers it has. */
static void warn_of_strangers(const char *server)
{
	static atomic_bool said;

	/* Relaxed: nothing else depends on it. Asked first, because a name may take long to look
	 * up. */
	if (atomic_load_explicit(&said, memory_order_relaxed) ||
	    mst_reach_of(server) != MST_REACH_BEYOND)
		return;
	if (!atomic_exchange_explicit(&said, true, memory_order_relaxed))
		mst_warn("INSECURE: %s is beyond loopback, and without certificates whoever "
			 "answers there is taken for the server, and whoever is on the way can "
			 "read what it says: set MUSTER_TLS_CA, MUSTER_TLS_CERT and "
			 "MUSTER_TLS_KEY",
			 server);
}

static int read_credentials(const struct muster_options *opt, struct mst_settings *out,
			    struct mst_reason *why)
{
	struct mst_tls_files files = { opt->tls_ca, opt->tls_cert, opt->tls_key };

	mst_tls_files_environment(&files);
	int rc = mst_credentials_load(&files, &out->credentials, why);
	if (rc == 0 && out->credentials == NULL)
		warn_of_strangers(out->server);
	return rc;
}

static int open_log(struct mst_reason *why)
{
	const char *word = choose(NULL, "MUSTER_LOG", NULL);

	if (word == NULL && mst_log_is_open()) /* this program has said what it wants */
		return 0;
	if (word == NULL)
		word = "info";
	int level = mst_log_level_parse(word);
	if (level < 0)
		return mst_reason_fail(why, -EINVAL,
				       "MUSTER_LOG is \"%.40s\"; it is error, warn, info or debug",
				       word);
	mst_log_open("libmuster", (enum mst_log_level)level);
	return 0;
}

int mst_settings_read(const struct muster_options *theirs, struct mst_settings *out,
		      struct mst_reason *why)
{
	static const struct mst_sized sized = { "options", "MUSTER_OPTIONS",
						sizeof(struct muster_options) };
	struct muster_options read = MUSTER_OPTIONS;
	const struct muster_options *opt = &read;

	if (theirs == NULL)
		return mst_reason_fail(why, -EINVAL, "options are NULL; start from MUSTER_OPTIONS");
	int rc = mst_sized_read(&sized, theirs, &read, why);
	if (rc != 0)
		return rc;
	*out = (struct mst_settings){
		.join_ns = (opt->join_ms != 0 ? opt->join_ms : DEFAULT_JOIN_MS) * MST_MS,
		.wait_ns = opt->wait_ms * MST_MS,
		.start_version = opt->start_version,
		.fabric = MST_FABRIC_DEFAULT,
	};
	out->fabric.io_threads = IO_THREADS;
	rc = open_log(why);
	if (rc == 0)
		rc = read_server(opt, out, why);
	if (rc == 0)
		rc = read_job(opt, out, why);
	if (rc == 0)
		rc = read_rank(opt, out, why);
	if (rc == 0)
		rc = read_vector(opt, out, why);
	if (rc == 0)
		rc = read_clip(opt, out, why);
	if (rc == 0)
		rc = read_comes_back(opt, out, why);
	if (rc == 0)
		rc = read_result_into(opt, out, why);
	if (rc == 0)
		rc = check_tensors(opt, why);
	if (rc == 0)
		rc = read_networks(out, why);
	if (rc == 0)
		rc = read_fabric(out, why);
	if (rc == 0)
		rc = read_credentials(opt, out, why);
	if (rc == 0 && mst_tensors_copy(opt->tensors, opt->tensor_count, &out->tensors) != 0) {
		mst_reason_set(why, "no memory for the names of %" PRIu32 " tensors",
			       opt->tensor_count);
		return -ENOMEM;
	}
	return rc;
}

void mst_settings_fini(struct mst_settings *s)
{
	mst_tensors_free(s->tensors);
	s->tensors = NULL;
	mst_credentials_free(s->credentials);
	s->credentials = NULL;
}
