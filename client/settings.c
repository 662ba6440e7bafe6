/* SPDX-License-Identifier: MIT */
#include "client/settings.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"

#define DEFAULT_SERVER "127.0.0.1:17077"
#define DEFAULT_JOB "default"
#define DEFAULT_JOIN_MS 60000u

/* Where a sentence about what is wrong goes. */
struct complaint {
	char *why;
	size_t len;
};

static __attribute__((format(printf, 2, 3))) int invalid(const struct complaint *to,
							 const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(to->why, to->len, fmt, args);
	va_end(args);
	return -EINVAL;
}

/* The option, or else the variable, or else the default; an empty one counts as unset. */
static const char *choose(const char *option, const char *variable, const char *otherwise)
{
	const char *value = option != NULL ? option : getenv(variable);

	return value != NULL && value[0] != '\0' ? value : otherwise;
}

static int read_names(const struct muster_options *opt, struct mst_settings *out,
		      const struct complaint *to)
{
	const char *server = choose(opt->server, "MUSTER_SERVER", DEFAULT_SERVER);
	const char *job = choose(opt->job, "MUSTER_JOB", DEFAULT_JOB);

	if (strlen(server) >= sizeof(out->server))
		return invalid(to, "the server's address has %zu characters, at most %zu are taken",
			       strlen(server), sizeof(out->server) - 1);
	if (strlen(job) >= sizeof(out->job))
		return invalid(to, "the job's name has %zu characters, at most %zu are taken",
			       strlen(job), sizeof(out->job) - 1);
	(void)snprintf(out->server, sizeof(out->server), "%s", server);
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

static int read_rank(const struct muster_options *opt, struct mst_settings *out,
		     const struct complaint *to)
{
	const char *text = choose(NULL, "MUSTER_RANK", "-1");

	out->rank = opt->rank;
	if (opt->rank < -1)
		return invalid(to, "options.rank is %" PRId32 "; a rank is 0 or more, -1 is any",
			       opt->rank);
	if (opt->rank < 0 && !read_number(text, -1, &out->rank))
		return invalid(to, "MUSTER_RANK is \"%.40s\"; a rank is 0 or more, -1 is any",
			       text);
	return 0;
}

static int read_vector(const struct muster_options *opt, struct mst_settings *out,
		       const struct complaint *to)
{
	if (opt->elems == 0 || opt->elems > MST_ELEMS_MAX)
		return invalid(to, "options.elems is %" PRIu64 "; a vector has 1 to 2^40 elements",
			       opt->elems);
	if ((unsigned)opt->type > MUSTER_F16 || (unsigned)opt->result_type > MUSTER_F16)
		return invalid(to, "options.type or options.result_type is no enum muster_type");
	if ((unsigned)opt->owner > MUSTER_WORKERS_OWN)
		return invalid(to, "options.owner is no enum muster_owner");
	out->elems = opt->elems;
	out->type = opt->type;
	out->result_type = opt->result_type;
	out->owner = opt->owner;
	return 0;
}

static int check_tensors(const struct muster_options *opt, const struct complaint *to)
{
	if (opt->tensor_count > 0 && opt->tensors == NULL)
		return invalid(to, "options.tensor_count is %" PRIu32 ", options.tensors is NULL",
			       opt->tensor_count);
	for (uint32_t i = 0; i < opt->tensor_count; i++) {
		const struct muster_tensor *t = &opt->tensors[i];
		if (t->first > opt->elems || t->count > opt->elems - t->first)
			return invalid(to,
				       "options.tensors[%" PRIu32 "] is %" PRIu64
				       " elements from %" PRIu64 " on, the vector has %" PRIu64,
				       i, t->count, t->first, opt->elems);
	}
	return 0;
}

static int read_transport(struct mst_settings *out, const struct complaint *to)
{
	const char *scheme = choose(NULL, "MUSTER_TRANSPORT", "auto");

	if (strcmp(scheme, "auto") == 0)
		return 0;
	out->transport = mst_transport_find(scheme);
	if (out->transport == NULL)
		return invalid(to, "MUSTER_TRANSPORT is \"%.40s\"; this build knows auto, shm%s",
			       scheme, mst_transport_find("verbs") != NULL ? " and verbs" : "");
	return 0;
}

static int read_text(const char *variable, char *out, size_t len, const struct complaint *to)
{
	const char *text = choose(NULL, variable, "");

	if (strlen(text) >= len)
		return invalid(to, "%s has %zu characters, at most %zu are taken", variable,
			       strlen(text), len - 1);
	(void)snprintf(out, len, "%s", text);
	return 0;
}

static int read_fabric(struct mst_settings *out, const struct complaint *to)
{
	const char *index = choose(NULL, "MUSTER_GID_INDEX", "auto");
	int rc = read_text("MUSTER_DEVICE", out->devices, sizeof(out->devices), to);

	if (rc == 0)
		rc = read_text("MUSTER_DATA_ADDRESS", out->addresses, sizeof(out->addresses), to);
	if (rc != 0 || strcmp(index, "auto") == 0)
		return rc;
	if (!read_number(index, 0, &out->gid_index))
		return invalid(to, "MUSTER_GID_INDEX is \"%.40s\"; it is 0 or more, or auto",
			       index);
	return 0;
}

static int open_log(const struct complaint *to)
{
	const char *word = choose(NULL, "MUSTER_LOG", NULL);

	if (word == NULL)
		return 0;
	int level = mst_log_level_parse(word);
	if (level < 0)
		return invalid(to, "MUSTER_LOG is \"%.40s\"; it is error, warn, info or debug",
			       word);
	mst_log_open("libmuster", (enum mst_log_level)level);
	return 0;
}

int mst_settings_read(const struct muster_options *opt, struct mst_settings *out, char *why,
		      size_t why_len)
{
	const struct complaint to = { why, why_len };

	if (opt == NULL)
		return invalid(&to, "options are NULL; start from MUSTER_OPTIONS");
	if (opt->size < sizeof(*opt))
		return invalid(&to,
			       "options.size is %zu, it must be at least %zu; start from "
			       "MUSTER_OPTIONS, which sets it",
			       opt->size, sizeof(*opt));
	*out = (struct mst_settings){
		.join_ns = (opt->join_ms != 0 ? opt->join_ms : DEFAULT_JOIN_MS) * MST_MS,
		.wait_ns = opt->wait_ms * MST_MS,
		.gid_index = -1,
	};
	int rc = open_log(&to);
	if (rc == 0)
		rc = read_names(opt, out, &to);
	if (rc == 0)
		rc = read_rank(opt, out, &to);
	if (rc == 0)
		rc = read_vector(opt, out, &to);
	if (rc == 0)
		rc = check_tensors(opt, &to);
	if (rc == 0)
		rc = read_transport(out, &to);
	return rc == 0 ? read_fabric(out, &to) : rc;
}
