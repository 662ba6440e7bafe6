/* SPDX-License-Identifier: MIT */
#include "tools/checkpoint/print.h"

#include <inttypes.h>
#include <time.h>

#include "common/checkpoint/say.h"

#define TIME_LEN 32u

/* In UTC, as "2026-11-24 12:58:01". */
static const char *time_text(int64_t ms, char out[TIME_LEN])
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm tm;

	if (gmtime_r(&seconds, &tm) == NULL || strftime(out, TIME_LEN, "%F %T", &tm) == 0)
		(void)snprintf(out, TIME_LEN, "?");
	return out;
}

static void print_row(const struct mst_stock *s, const struct mst_stock_row *row, FILE *out)
{
	const struct mst_checkpoint_manifest *m = &row->m;
	char when[TIME_LEN], size[32];

	if (!row->known) {
		(void)fprintf(out, "%10" PRIu64 "  damaged: %s\n", row->version, row->why);
		return;
	}
	(void)fprintf(out, "%10" PRIu64 " %12" PRIu64 "  %s %6" PRIu32 " %12s  %-8s  %s, %s, %s\n",
		      row->version, m->samples, time_text(m->written_ms, when), m->parts,
		      mst_checkpoint_size(mst_stock_bytes(m), size), mst_stock_state(s, row),
		      m->id.job, m->policy, m->optimizer);
	if (!row->fine)
		(void)fprintf(out, "%10s  %s\n", "", row->why);
}

static void print_tensors(const struct mst_stock_row *row, FILE *out)
{
	(void)fprintf(out, "\nTensors of version %" PRIu64 ":\n%4s %-5s %14s %14s %14s  %s\n",
		      row->version, "part", "type", "elements", "from element", "of", "name");
	for (uint32_t i = 0; i < row->files; i++)
		for (uint32_t k = 0; k < row->file[i].tensors; k++) {
			const struct mst_tensor_entry *t = &row->file[i].tensor[k];
			(void)fprintf(
				out,
				"%4" PRIu32 " %-5s %14" PRIu64 " %14" PRIu64 " %14" PRIu64 "  %s\n",
				i, mst_dtype_name(t->type), t->count, t->offset, t->total, t->name);
		}
}

void mst_stock_print(const struct mst_stock *s, FILE *out)
{
	(void)fprintf(out, "%10s %12s  %-19s %6s %12s  %-8s  %s\n", "version", "samples",
		      "written (UTC)", "parts", "size", "state", "job, policy, optimizer");
	for (uint32_t i = 0; i < s->rows; i++)
		print_row(s, &s->row[i], out);
	for (uint32_t i = 0; i < s->rows; i++)
		if (s->row[i].files > 0)
			print_tensors(&s->row[i], out);
}
