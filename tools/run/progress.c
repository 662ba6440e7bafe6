/* SPDX-License-Identifier: MIT */
#include "tools/run/progress.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/log_writer.h"
#include "tools/figure.h"
#include "tools/straggler.h"

#define PLAIN_EVERY_NS (2 * MST_SECOND)
#define LINE_LEN 256
#define COLUMNS_UNKNOWN 80

void mst_progress_init(struct mst_progress *p, bool quiet)
{
	const char *term = getenv("TERM");

	*p = (struct mst_progress){
		.quiet = quiet,
		.in_place = isatty(STDERR_FILENO) && term != NULL && strcmp(term, "dumb") != 0,
	};
}

static uint32_t count_here(const struct mst_job_snapshot *s)
{
	uint32_t here = 0;

	for (uint32_t i = 0; i < s->row_count; i++)
		here += s->row[i].state == MST_RANK_JOINED || s->row[i].state == MST_RANK_LIVE;
	return here;
}

__attribute__((format(printf, 2, 3))) static void append(char *line, const char *fmt, ...)
{
	size_t used = strlen(line);
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(line + used, LINE_LEN - used, fmt, args);
	va_end(args);
}

/* What matters most comes first: a narrow terminal cuts the rest. */
static void compose(const struct mst_job_snapshot *s, char *line)
{
	const struct mst_status *job = &s->job;
	char late[64];

	line[0] = '\0';
	if (job->state == MST_JOB_GATHERING) {
		append(line, "%u of %u workers are here", count_here(s), job->workers);
		return;
	}
	append(line, "version %" PRIu64 ", %u of %u live", job->version, job->live, job->workers);
	if (job->step_mean_ns > 0)
		append(line, ", step %s", mst_figure_duration(job->step_mean_ns).text);
	if (!isnan(job->loss))
		append(line, ", loss %s", mst_figure_loss(job->loss).text);
	struct mst_named_straggler g = mst_straggler_find(s);
	mst_straggler_words(&g, late, sizeof(late));
	if (late[0] != '\0')
		append(line, ", %s", late);
}

static int columns(void)
{
	struct winsize size;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col < 2)
		return COLUMNS_UNKNOWN;
	return size.ws_col;
}

/* One column stays free: a line that fills the last one would make some terminals scroll. The
 * cursor goes back to the first: what server or workers print then begins where a line begins. */
static void redraw(struct mst_progress *p, const char *line)
{
	char text[LINE_LEN + 8];
	int len = snprintf(text, sizeof(text), "\r%.*s\033[K\r", columns() - 1, line);

	p->drawn |= mst_log_offer(text, (size_t)len);
}

void mst_progress_show(struct mst_progress *p, const struct mst_job_snapshot *s, uint64_t now_ns)
{
	char line[LINE_LEN];

	if (p->quiet)
		return;
	if (p->next_ns == 0)
		p->next_ns = now_ns + PLAIN_EVERY_NS; /* a short run needs no plain line */
	if (!p->in_place && now_ns < p->next_ns)
		return;
	compose(s, line);
	if (p->in_place) {
		if (!mst_log_waits()) /* else it would be old before the terminal takes it */
			redraw(p, line);
		return;
	}
	mst_info("%s", line);
	p->next_ns = now_ns + PLAIN_EVERY_NS;
}

void mst_progress_clear(struct mst_progress *p)
{
	static const char clear[] = "\r\033[K";

	if (!p->drawn)
		return;
	(void)mst_log_offer(clear, sizeof(clear) - 1);
	p->drawn = false;
}
