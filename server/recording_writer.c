/* SPDX-License-Identifier: MIT */
#include "server/recording_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/base/eventcount.h"
#include "common/base/log.h"
#include "common/host/limits.h"
#include "common/host/tasks.h"
#include "muster/muster.h"
#include "server/recording_tail.h"

#define HEADER "rank,version,start_us,ready_us,verdict"
/* Where generations are counted. */
#define HEADER_COUNTED HEADER ",generation"
/* How often the writer looks for rows. */
#define LOOK_NS (20 * MST_MS)
/* From the end of the job on, a pipe whose reader takes nothing is given so long, */
#define PATIENCE_NS (2 * MST_SECOND)
/* and a disk that does not answer so long. */
#define GRACE_NS (5 * MST_SECOND)
/* No row is longer. */
#define ROW_MAX 160u

struct mst_recording_writer {
	struct mst_recording *recording;
	char *path;
	int fd;
	bool is_file; /* which can be cut */
	pthread_t thread;
	struct mst_eventcount stops, ends;
	_Atomic bool stop, ended;

	/* Used by the thread alone. */
	uint64_t rows;        /* in the file, whole */
	uint64_t lost;        /* taken, and not in the file */
	uint64_t whole_bytes; /* the file's length up to its last whole line */
	uint64_t heads;       /* the first lines of the text that are no rows */
	const struct mst_recorded_generation *generation; /* NULL: none has begun, or is counted */
	uint64_t give_up_ns; /* when a pipe is not waited for any more; MST_NEVER: not stopped */
	bool failed, told_missing;
	int error; /* failed: why, a negative errno */
	size_t used;
	char text[MST_RECORDING_TEXT_BYTES]; /* whole lines */
};

/* ---- between the two threads ---- */

/* Waits for @flag, which another thread sets before it opens @eventcount, at most @timeout_ns. */
static bool await(struct mst_eventcount *eventcount, const _Atomic bool *flag, uint64_t timeout_ns)
{
	mst_eventcount_shut(eventcount);
	/* Acquire: pairs with raise_flag(). */
	if (atomic_load_explicit(flag, memory_order_acquire))
		mst_eventcount_leave(eventcount);
	else
		mst_eventcount_wait(eventcount, timeout_ns);
	return atomic_load_explicit(flag, memory_order_acquire);
}

static void raise_flag(struct mst_eventcount *eventcount, _Atomic bool *flag)
{
	/* Release: pairs with await(). */
	atomic_store_explicit(flag, true, memory_order_release);
	mst_eventcount_open(eventcount);
}

/* A pipe is waited for while the job goes on, and for a while after its end. */
static bool is_given_up(struct mst_recording_writer *w)
{
	/* Acquire: pairs with raise_flag(). */
	if (w->give_up_ns == MST_NEVER && atomic_load_explicit(&w->stop, memory_order_acquire))
		w->give_up_ns = mst_deadline_ns(PATIENCE_NS);
	return w->give_up_ns != MST_NEVER && mst_now_ns() > w->give_up_ns;
}

/* ---- the file ---- */

/* Return: 0 or a negative errno; *@written: the bytes that were written. */
static int write_all(struct mst_recording_writer *w, size_t *written)
{
	*written = 0;
	while (*written < w->used) {
		ssize_t got = write(w->fd, w->text + *written, w->used - *written);
		struct pollfd fd = { .fd = w->fd, .events = POLLOUT };

		if (got > 0)
			*written += (size_t)got;
		else if (got == 0)
			return -EIO;
		else if (errno == EAGAIN && is_given_up(w))
			return -EAGAIN;
		else if (errno == EAGAIN)
			(void)poll(&fd, 1, (int)(LOOK_NS / MST_MS));
		else if (errno != EINTR)
			return -errno;
	}
	return 0;
}

/* How many lines the first @len bytes of the text have, and where the last of them ends. */
static uint64_t count_lines(const char *text, size_t len, size_t *end)
{
	uint64_t lines = 0;

	*end = 0;
	for (size_t i = 0; i < len; i++) {
		if (text[i] != '\n')
			continue;
		lines++;
		*end = i + 1;
	}
	return lines;
}

/* @said: room for the words. */
static const char *cause(int error, struct mst_reason *said)
{
	return error == -EAGAIN ? "its reader takes nothing" : mst_limit_failed(error, 0, said);
}

/* Cuts the file after its last whole line, and says what became of it. */
static void fail(struct mst_recording_writer *w, int error)
{
	bool cut = w->is_file && ftruncate(w->fd, (off_t)w->whole_bytes) == 0;
	struct mst_reason said;

	w->failed = true;
	w->error = error;
	mst_error("cannot write to the recording %s: %s; it ends after %" PRIu64 " rows%s, and the "
		  "job goes on",
		  w->path, cause(error, &said), w->rows,
		  cut ? "" : ", and its last line may be cut");
}

static void flush(struct mst_recording_writer *w)
{
	size_t written, end, whole;

	if (w->used == 0)
		return;
	int rc = write_all(w, &written);
	uint64_t all = count_lines(w->text, w->used, &whole) - w->heads;
	uint64_t lines = count_lines(w->text, written, &end);
	uint64_t rows = lines > w->heads ? lines - w->heads : 0;
	w->rows += rows;
	w->lost += all - rows;
	w->whole_bytes += end;
	w->used = 0;
	w->heads = 0;
	if (rc != 0)
		fail(w, rc);
}

/* ---- rows ---- */

static const char *end_name(uint32_t end)
{
	static const char *const names[] = {
		[MUSTER_NONE] = "none",
		[MUSTER_COUNTED] = "counted",
		[MUSTER_LATE] = "late",
		[MUSTER_STALE] = "stale",
		[MUSTER_CANCELLED] = "cancelled",
		[MUSTER_REFUSED] = "refused",
		[MUSTER_OUTLIER] = "outlier",
		[MUSTER_DAMAGED] = "damaged",
		[MST_RECORDED_GIVEN_UP] = "given_up",
	};

	MST_ASSERT(end < sizeof(names) / sizeof(names[0]));
	return names[end];
}

static void compose(struct mst_recording_writer *w, const struct mst_recorded *row)
{
	char start[32] = "", number[32] = "";
	const uint64_t us = 1000;

	if (w->generation != NULL)
		(void)snprintf(number, sizeof(number), ",%" PRIu64, w->generation->number);
	if (row->start_ns != MST_NEVER)
		(void)snprintf(start, sizeof(start), "%" PRIu64 ".%03" PRIu64, row->start_ns / us,
			       row->start_ns % us);
	w->used += (size_t)snprintf(w->text + w->used, sizeof(w->text) - w->used,
				    "%" PRIu32 ",%" PRIu64 ",%s,%" PRIu64 ".%03" PRIu64 ",%s%s\n",
				    row->rank, row->version, start, row->end_ns / us,
				    row->end_ns % us, end_name(row->end), number);
	MST_ASSERT(w->used < sizeof(w->text));
}

static void tell_missing(struct mst_recording_writer *w)
{
	if (w->told_missing || mst_recording_missing(w->recording) == 0)
		return;
	w->told_missing = true;
	mst_warn("rows of the recording %s are missing: %s takes them more slowly than gradients "
		 "come",
		 w->path, w->is_file ? "the disk" : "its reader");
}

/* ---- generations ---- */

static void add_head(struct mst_recording_writer *w, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static void add_head(struct mst_recording_writer *w, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	w->used += (size_t)vsnprintf(w->text + w->used, sizeof(w->text) - w->used, fmt, args);
	va_end(args);
	w->heads++;
}

/* Rows are added to those of earlier generations of the run. What else is in the file goes. */
static void open_generation(struct mst_recording_writer *w)
{
	const struct mst_recorded_generation *g = w->generation;
	uint64_t end = 0;
	bool goes_on = w->is_file && mst_recording_tail_find(w->path, HEADER_COUNTED, g, &end);

	if (w->is_file && (ftruncate(w->fd, (off_t)end) != 0 ||
			   lseek(w->fd, (off_t)end, SEEK_SET) != (off_t)end)) {
		fail(w, -errno);
		return;
	}
	w->whole_bytes = end;
	if (!goes_on)
		add_head(w, "%s\n", HEADER_COUNTED);
	add_head(w, MST_RECORDING_REMARK " begins with version %" PRIu64 "\n", g->number, g->run,
		 g->began);
}

/* Return: false: it is not known yet which generation the rows are of. */
static bool knows_generation(struct mst_recording_writer *w)
{
	if (!mst_recording_is_counted(w->recording) || w->generation != NULL)
		return true;
	w->generation = mst_recording_begun(w->recording);
	if (w->generation != NULL)
		open_generation(w);
	return w->generation != NULL;
}

/* ---- the end ---- */

/* Writes all that waits. */
static void drain(struct mst_recording_writer *w)
{
	struct mst_recorded row;

	if (!knows_generation(w))
		return;
	while (mst_recording_take(w->recording, &row)) {
		if (w->failed) {
			w->lost++;
			continue;
		}
		compose(w, &row);
		if (w->used + ROW_MAX > sizeof(w->text))
			flush(w);
	}
	flush(w);
	tell_missing(w);
}

/* The last line. */
static void write_missing(struct mst_recording_writer *w)
{
	uint64_t missing = mst_recording_missing(w->recording);

	if (missing == 0 || w->failed)
		return;
	add_head(w, "# %" PRIu64 " rows are missing\n", missing);
	flush(w);
}

/* ---- the thread ---- */

static void *writer_main(void *arg)
{
	struct mst_recording_writer *w = arg;

	while (!await(&w->stops, &w->stop, LOOK_NS))
		drain(w);
	drain(w); /* now all rows have been put */
	write_missing(w);
	raise_flag(&w->ends, &w->ended);
	return NULL;
}

/* ---- beginning and end ---- */

/* A pipe without a reader is an error, and not waited for. */
static int open_file(struct mst_recording_writer *w, const char *path)
{
	int empties = mst_recording_is_counted(w->recording) ? 0 : O_TRUNC;
	struct stat status;

	w->fd = open(path, O_WRONLY | O_CREAT | empties | O_CLOEXEC | O_NONBLOCK, 0666);
	if (w->fd < 0)
		return -errno;
	w->is_file = fstat(w->fd, &status) == 0 && S_ISREG(status.st_mode);
	w->path = strdup(path);
	return w->path != NULL ? 0 : -ENOMEM;
}

static int start_thread(struct mst_recording_writer *w)
{
	sigset_t all, before;

	sigfillset(&all); /* the control thread handles signals */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int rc = pthread_create(&w->thread, NULL, writer_main, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -rc;
}

static void writer_free(struct mst_recording_writer *w)
{
	if (w->fd >= 0)
		(void)close(w->fd);
	free(w->path);
	free(w);
}

int mst_recording_writer_start(const char *path, struct mst_recording *recording,
			       struct mst_recording_writer **out, struct mst_reason *why)
{
	struct mst_recording_writer *w = calloc(1, sizeof(*w));
	struct mst_reason cause;

	if (w == NULL) {
		mst_reason_set(why, "no memory to record to %s", path);
		return -ENOMEM;
	}
	w->recording = recording;
	w->give_up_ns = MST_NEVER;
	int rc = open_file(w, path);
	if (rc != 0) {
		mst_reason_set(why, "cannot record to %s: %s", path, strerror(-rc));
		writer_free(w);
		return rc;
	}
	if (!mst_recording_is_counted(recording))
		add_head(w, "%s\n", HEADER);
	rc = start_thread(w);
	if (rc != 0) {
		mst_reason_set(why, "cannot start the thread that records: %s",
			       mst_host_tasks_failed(rc, &cause));
		writer_free(w);
		return rc;
	}
	*out = w;
	return 0;
}

/* Some disks, over a network, report only at the end that they are full. */
static void close_file(struct mst_recording_writer *w)
{
	int rc = close(w->fd);

	w->fd = -1;
	if (rc == 0 || w->failed)
		return;
	w->error = -errno;
	w->failed = true;
	mst_error("cannot write to the recording %s: %s; its end may be missing", w->path,
		  strerror(-w->error));
}

static void name_missing(const struct mst_recording_writer *w, uint64_t rows,
			 struct mst_reason *out)
{
	if (rows > 0)
		mst_reason_set(out, "%" PRIu64 " of the %" PRIu64 " rows of the recording %s", rows,
			       rows + w->rows, w->path);
	else if (w->failed)
		mst_reason_set(out, "the end of the recording %s", w->path);
	struct mst_reason said;
	if (w->failed)
		mst_reason_add(out, ": %s", cause(w->error, &said));
}

static void tell_end(const struct mst_recording_writer *w, struct mst_reason *out)
{
	uint64_t missing = mst_recording_missing(w->recording) + w->lost;

	name_missing(w, missing, out);
	if (missing == 0)
		mst_info("%" PRIu64 " gradients are recorded in %s", w->rows, w->path);
	else
		mst_warn("%" PRIu64 " gradients are recorded in %s, and %" PRIu64 " are missing",
			 w->rows, w->path, missing);
}

bool mst_recording_writer_stop(struct mst_recording_writer *w, struct mst_reason *missing)
{
	uint64_t until_ns = mst_deadline_ns(GRACE_NS);
	bool ended = false;

	missing->text[0] = '\0';
	if (w == NULL)
		return true;
	raise_flag(&w->stops, &w->stop);
	while (!ended && mst_left_ns(until_ns) > 0)
		ended = await(&w->ends, &w->ended, mst_left_ns(until_ns));
	if (!ended) {
		mst_reason_set(missing,
			       "the end of the recording %s: the disk did not answer for %" PRIu64
			       " s",
			       w->path, GRACE_NS / MST_SECOND);
		return false;
	}
	(void)pthread_join(w->thread, NULL);
	close_file(w);
	tell_end(w, missing);
	writer_free(w);
	return true;
}
