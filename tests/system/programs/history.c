/* SPDX-License-Identifier: MIT */
#include "tests/system/programs/history.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"

#define PATH_LEN 4096u

struct history {
	char path[PATH_LEN];
	FILE *log;
	uint64_t elems, stride;
	size_t type_bytes, result_bytes; /* of an element */
	size_t sample_bytes;             /* of a gradient's */
	uint8_t *sample;
	int gradients; /* descriptor; -1: none yet */
};

/* The CRC of Ethernet and zlib, four bits at a time. */
static uint32_t crc(uint32_t sum, const void *data, size_t bytes)
{
	static const uint32_t table[16] = {
		0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
		0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
		0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
	};
	const uint8_t *p = data;

	sum = ~sum;
	for (size_t i = 0; i < bytes; i++) {
		sum ^= p[i];
		sum = sum >> 4 ^ table[sum & 15];
		sum = sum >> 4 ^ table[sum & 15];
	}
	return ~sum;
}

static uint32_t crc_of_sample(const struct history *h, const void *vector)
{
	const uint8_t *p = vector;
	uint32_t sum = 0;

	for (uint64_t i = 0; i < h->elems; i += h->stride)
		sum = crc(sum, p + i * h->result_bytes, h->result_bytes);
	return sum;
}

static size_t bytes_of(enum muster_type type)
{
	return type == MUSTER_F32 ? 4 : 2;
}

static void verdicts_tell(struct history *h, const struct muster_job *job)
{
	for (uint32_t i = 0; i < job->verdict_count; i++)
		fprintf(h->log, "verdict %" PRIu32 " %" PRIu64 " %d %" PRIu64 "\n",
			job->verdicts[i].incarnation, job->verdicts[i].ticket,
			job->verdicts[i].verdict, job->verdicts[i].counted_in);
}

struct history *history_open(const char *path, const struct muster_job *job, uint64_t samples)
{
	struct history *h = calloc(1, sizeof(*h));

	if (h == NULL)
		return NULL;
	(void)snprintf(h->path, sizeof(h->path), "%.4000s.%" PRIu32 ".%" PRIu32, path, job->rank,
		       job->incarnation);
	h->elems = job->elems;
	h->stride = samples == 0 ? 1 : (job->elems + samples - 1) / samples;
	h->type_bytes = bytes_of(job->type);
	h->result_bytes = bytes_of(job->result_type);
	h->sample_bytes = (h->elems + h->stride - 1) / h->stride * h->type_bytes;
	h->gradients = -1;
	h->sample = malloc((h->elems + h->stride - 1) / h->stride * 4);
	h->log = fopen(h->path, "we");
	if (h->sample == NULL || h->log == NULL) {
		free(h->sample);
		free(h);
		return NULL;
	}
	(void)setvbuf(h->log, NULL, _IOLBF, (size_t)1 << 16);
	fprintf(h->log,
		"job %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu64 " %d %d %d %" PRIu64 " %s\n",
		job->rank, job->incarnation, job->workers, job->elems, job->type, job->result_type,
		job->owner, h->stride, job->policy);
	verdicts_tell(h, job);
	return h;
}

void history_push(struct history *h, uint64_t ticket, uint64_t tag,
		  const struct muster_contribution *c)
{
	fprintf(h->log, "push %" PRIu64 " %" PRIu64 " %.17g %d\n", ticket, tag, c->weight, c->sum);
}

void history_void(struct history *h, uint64_t ticket)
{
	fprintf(h->log, "void %" PRIu64 "\n", ticket);
}

void history_pass(struct history *h, uint64_t ticket)
{
	fprintf(h->log, "pass %" PRIu64 "\n", ticket);
}

void history_outcome(struct history *h, const struct muster_outcome *out)
{
	uint32_t whole = 0, sample = 0;

	if (out->result != NULL) {
		whole = crc(0, out->result, h->elems * h->result_bytes);
		sample = h->stride == 1 ? whole : crc_of_sample(h, out->result);
	}
	fprintf(h->log,
		"outcome %d %" PRIu64 " %" PRIu64 " %" PRIu64 " %d %d %08" PRIx32 " %08" PRIx32
		" %.17g %.17g %" PRIu64 " %u",
		out->verdict, out->ticket, out->counted_in, out->version, out->fresh, out->finished,
		whole, sample, out->orders.lr_scale, out->weight, mst_now_ns(), out->set_len);
	for (uint32_t i = 0; i < out->set_len; i++)
		fprintf(h->log, " %" PRIu32 ":%" PRIu32 ":%.17g", out->set[i].rank,
			out->set[i].count, out->set[i].weight);
	fprintf(h->log, "\n");
}

void history_error(struct history *h, const char *call, int error)
{
	fprintf(h->log, "error %s %d %" PRId64 "\n", call, error, mst_wall_ms());
}

void history_end(struct history *h, int error)
{
	if (h == NULL)
		return;
	fprintf(h->log, "end %d\n", error);
	(void)fclose(h->log);
	if (h->gradients >= 0)
		close(h->gradients);
	free(h->sample);
	free(h);
}

/* ---- vectors ---- */

/* Return: bytes. */
static size_t sample_from(struct history *h, const void *vector, size_t elem_bytes)
{
	const uint8_t *p = vector;
	size_t at = 0;

	for (uint64_t i = 0; i < h->elems; i += h->stride, at += elem_bytes)
		memcpy(h->sample + at, p + i * elem_bytes, elem_bytes);
	return at;
}

static int create(const struct history *h, const char *suffix)
{
	char path[PATH_LEN + 8];

	(void)snprintf(path, sizeof(path), "%s.%s", h->path, suffix);
	return open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
}

void history_keep_gradient(struct history *h, uint64_t ticket, const void *gradient)
{
	off_t at = (off_t)((ticket - 1) * h->sample_bytes);

	(void)sample_from(h, gradient, h->type_bytes);
	if (h->gradients < 0)
		h->gradients = create(h, "grad");
	if (h->gradients < 0 ||
	    pwrite(h->gradients, h->sample, h->sample_bytes, at) != (ssize_t)h->sample_bytes)
		history_error(h, "record", -1);
}

void history_keep_start(struct history *h, const void *state)
{
	size_t bytes = sample_from(h, state, h->result_bytes);
	int fd = create(h, "start");

	if (fd < 0 || write(fd, h->sample, bytes) != (ssize_t)bytes)
		history_error(h, "record", -1);
	if (fd >= 0)
		close(fd);
}
