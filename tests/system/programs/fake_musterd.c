/* SPDX-License-Identifier: MIT */
/*
 * Stands in for musterd where the tools are tested alone: it speaks the control protocol, but its
 * job is a script, words in FAKE_JOB done one after the other:
 *
 *   met                it goes on when somebody has connected, or after ten seconds
 *   gather:MS run:MS   the job is in that state, and questions are answered, for so long
 *   see:NAME           questions are answered until there is such a file in HERE, or for a minute
 *   touch:NAME         makes such a file
 *   lose:RANK          that rank is lost from now on
 *   leave:RANK         that rank has left
 *   evict:RANK         that rank has been evicted by an operator
 *   again:RANK         that rank has another session from now on, and is live
 *   late:RANK          and that one late with half of its gradients
 *   rave               its texts hold what acts on a terminal, and broken UTF-8, from now on
 *   finish fail        the job ends; who watches is told
 *   over               the same, at this server alone: it goes on at the next one
 *   miss:WHAT          that was asked for and is missing, which the parent is told
 *   halt:MS            nothing is answered for so long
 *   close              all control connections are closed
 *   stubborn           from now on SIGTERM is ignored
 *   exit:STATUS        the process ends; without it, 0 at the end of the script
 *   die:SIGNAL         the process kills itself
 *
 * `refuse` as the first word: it exits with 1 before it listens. FAKE_ARGS names a file that gets
 * the arguments, one a line.
 */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/transport/stream.h"
#include "common/wire/message.h"
#include "server/options/process.h"

#define CLIENTS_MAX 16
#define FRAME_MAX (64u << 10)
#define STEP_NS (10 * MST_MS)
#define MINUTE_NS (60 * MST_SECOND)
#define PATH_LEN 4096
#define RAVING "\033]0;mine\007 caf\xc3\xa9 \xff\xe2\x80\xae end"

static struct {
	struct mst_listener *listen_fd;
	struct mst_stream *client[CLIENTS_MAX];
	enum mst_job_state state;
	uint32_t workers;
	uint64_t began_ns;
	int lost, late, again, left, evicted; /* ranks, or -1 */
	uint64_t gone_at;                     /* of the one that is lost, left or evicted */
	bool raves, goes_on;
} fake = { .lost = -1, .late = -1, .again = -1, .left = -1, .evicted = -1 };

static volatile sig_atomic_t terminated;

static void on_term(int signo)
{
	(void)signo;
	terminated = 1;
}

static uint64_t version_now(void)
{
	return fake.began_ns == 0 ? 0 : (mst_now_ns() - fake.began_ns) / STEP_NS;
}

static void send_message(struct mst_stream *to, const struct mst_message *msg)
{
	static unsigned char frame[FRAME_MAX];
	int64_t length = mst_message_encode(msg, frame, sizeof(frame));

	MST_ASSERT(length > 0);
	(void)mst_plain.send(to, frame, (size_t)length);
}

static void fill_status(struct mst_status *s)
{
	uint64_t version = version_now();

	*s = (struct mst_status){
		.state = fake.state,
		.goes_on = fake.goes_on,
		.workers = fake.workers,
		.live = fake.state == MST_JOB_RUNNING ? fake.workers - (fake.lost >= 0) : 0,
		.version = version,
		.samples = (double)(version * fake.workers * 32),
		.loss = version == 0 ? NAN : 1.0 / (double)version,
		.elapsed_ns = version * STEP_NS,
		.step_mean_ns = version == 0 ? 0 : STEP_NS,
		.step_p50_ns = STEP_NS,
		.step_p99_ns = STEP_NS + MST_MS,
		.step_max_ns = 2 * STEP_NS,
		.recent_step_ns = STEP_NS,
		.saved_ns = version * MST_MS,
		.rank_count = fake.workers,
	};
	(void)snprintf(s->job, sizeof(s->job), "default");
	(void)snprintf(s->policy, sizeof(s->policy), "backup:-1");
	if (fake.state == MST_JOB_FINISHED)
		(void)snprintf(s->why, sizeof(s->why), "the script says so");
	if (fake.state == MST_JOB_FAILED)
		(void)snprintf(s->why, sizeof(s->why), "too few workers: %d of %u",
			       (int)fake.workers - 1, fake.workers);
	if (fake.raves) {
		(void)snprintf(s->policy, sizeof(s->policy), "%s", RAVING);
		(void)snprintf(s->why, sizeof(s->why), "%s", RAVING);
	}
}

static struct mst_status_rank rank_row(uint32_t rank)
{
	uint64_t version = version_now();
	struct mst_status_rank row = {
		.rank = rank,
		.incarnation = 1,
		.state = fake.state == MST_JOB_GATHERING ? MST_RANK_ABSENT : MST_RANK_LIVE,
		.counted = version,
		.samples_counted = (double)version * 32,
		.samples_pushed = (double)version * 32,
		.ready_mean_ns = 8 * MST_MS,
		.recent_came = version == 0 ? 0 : 32,
		.recent_ready_ns = 8 * MST_MS,
		.gone_at = MST_NOT_KNOWN,
		.straggler_ratio = (double)NAN,
		.straggler_ns = MST_NOT_KNOWN,
	};

	if ((int)rank == fake.lost || (int)rank == fake.left || (int)rank == fake.evicted) {
		row.state = (int)rank == fake.lost   ? MST_RANK_LOST
			    : (int)rank == fake.left ? MST_RANK_LEFT
						     : MST_RANK_EVICTED;
		row.gone_at = fake.gone_at;
	}
	if ((int)rank == fake.again)
		row.incarnation = 2;
	if ((int)rank == fake.late) {
		row.counted = row.late = version / 2;
		row.samples_counted = 320;
		row.samples_pushed = 640;
		row.behind_mean_ns = row.recent_behind_ns = 3 * MST_MS;
		row.recent_missed = row.recent_came / 2;
		row.straggler = MST_STRAGGLER_LATE;
		row.straggler_ratio = 1;
		row.straggler_ns = row.straggler_total_ns = 2 * MST_SECOND;
	}
	return row;
}

static void tell_status(struct mst_stream *to)
{
	static struct mst_message msg;

	msg.kind = MST_MSG_STATUS;
	fill_status(&msg.status);
	send_message(to, &msg);
	msg.kind = MST_MSG_STATUS_RANKS;
	for (uint32_t rank = 0; rank < fake.workers;) {
		msg.ranks.count = 0;
		while (rank < fake.workers && msg.ranks.count < MST_STATUS_RANKS_SENT)
			msg.ranks.row[msg.ranks.count++] = rank_row(rank++);
		send_message(to, &msg);
	}
}

/* Every question looks the same: so many bytes are so many questions. */
static void answer(int i)
{
	struct mst_message ask = { .kind = MST_MSG_ASK_STATUS };
	unsigned char frame[64], got[1024];
	int64_t length = mst_message_encode(&ask, frame, sizeof(frame));
	ssize_t bytes = mst_plain.receive(fake.client[i], got, sizeof(got));

	if (bytes == 0 || (bytes < 0 && bytes != -EAGAIN)) {
		mst_plain.close(fake.client[i]);
		fake.client[i] = NULL;
		return;
	}
	for (; bytes > 0; bytes -= (ssize_t)length)
		tell_status(fake.client[i]);
}

/* The first to come is client 0, whenever it comes. */
static void accept_clients(void)
{
	char peer[128];

	for (int i = 0; i < CLIENTS_MAX; i++) {
		if (fake.client[i] != NULL)
			continue;
		if (mst_plain.accept(fake.listen_fd, &fake.client[i], peer, sizeof(peer)) < 0) {
			fake.client[i] = NULL;
			return;
		}
	}
}

static void end_job(enum mst_job_state state)
{
	fake.state = state;
	for (int i = 0; i < CLIENTS_MAX; i++)
		if (fake.client[i] != NULL)
			tell_status(fake.client[i]);
}

static void close_clients(void)
{
	for (int i = 0; i < CLIENTS_MAX; i++) {
		mst_plain.close(fake.client[i]);
		fake.client[i] = NULL;
	}
}

static void end_if_terminated(void)
{
	if (!terminated)
		return;
	end_job(MST_JOB_FAILED);
	exit(1);
}

static void serve(uint64_t ms)
{
	uint64_t end = mst_now_ns() + ms * MST_MS;

	while (mst_now_ns() < end) {
		accept_clients();
		for (int i = 0; i < CLIENTS_MAX; i++)
			if (fake.client[i] != NULL)
				answer(i);
		end_if_terminated();
		mst_sleep_ns(5 * MST_MS);
	}
}

/* A tool that is scheduled late shall find a short script at its beginning: so no question is
 * answered before the script's first word. */
static void await_client(void)
{
	for (int tries = 0; tries < 2000 && fake.client[0] == NULL; tries++) {
		accept_clients();
		end_if_terminated();
		mst_sleep_ns(5 * MST_MS);
	}
}

static void in_here(const char *name, char *path, size_t len)
{
	const char *here = getenv("HERE");

	(void)snprintf(path, len, "%s/%s", here != NULL ? here : ".", name);
}

static void see(const char *name)
{
	char path[PATH_LEN];

	in_here(name, path, sizeof(path));
	for (uint64_t end = mst_now_ns() + MINUTE_NS;
	     access(path, F_OK) != 0 && mst_now_ns() < end;)
		serve(5);
}

static void touch(const char *name)
{
	char path[PATH_LEN];

	in_here(name, path, sizeof(path));
	FILE *f = fopen(path, "w");
	if (f != NULL)
		(void)fclose(f);
}

static int parent_fd(const char *variable)
{
	const char *fd = getenv(variable);

	return fd != NULL ? (int)strtol(fd, NULL, 10) : -1;
}

static void say_missing(const char *what)
{
	(void)dprintf(parent_fd("MUSTER_END_FD"), MST_END_MISSING "%s\n", what);
}

/* Return: the rank that goes so; NULL: it is another word. */
static int *goes(const char *word)
{
	if (strcmp(word, "lose") == 0)
		return &fake.lost;
	if (strcmp(word, "leave") == 0)
		return &fake.left;
	return strcmp(word, "evict") == 0 ? &fake.evicted : NULL;
}

static void do_word(const char *word, const char *value)
{
	int number = (int)strtol(value, NULL, 10);

	if (strcmp(word, "met") == 0) {
		await_client();
	} else if (strcmp(word, "gather") == 0) {
		serve((uint64_t)number);
	} else if (strcmp(word, "run") == 0) {
		fake.state = MST_JOB_RUNNING;
		if (fake.began_ns == 0)
			fake.began_ns = mst_now_ns();
		serve((uint64_t)number);
	} else if (strcmp(word, "see") == 0) {
		see(value);
	} else if (strcmp(word, "touch") == 0) {
		touch(value);
	} else if (goes(word) != NULL) {
		*goes(word) = number;
		fake.gone_at = version_now();
	} else if (strcmp(word, "again") == 0) {
		fake.lost = -1;
		fake.again = number;
	} else if (strcmp(word, "miss") == 0) {
		say_missing(value);
	} else if (strcmp(word, "late") == 0) {
		fake.late = number;
	} else if (strcmp(word, "rave") == 0) {
		fake.raves = true;
	} else if (strcmp(word, "over") == 0) {
		fake.goes_on = true;
		end_job(MST_JOB_FAILED);
	} else if (strcmp(word, "finish") == 0) {
		end_job(MST_JOB_FINISHED);
	} else if (strcmp(word, "fail") == 0) {
		end_job(MST_JOB_FAILED);
	} else if (strcmp(word, "halt") == 0) {
		mst_sleep_ns((uint64_t)number * MST_MS);
	} else if (strcmp(word, "close") == 0) {
		close_clients();
	} else if (strcmp(word, "stubborn") == 0) {
		(void)signal(SIGTERM, SIG_IGN);
	} else if (strcmp(word, "exit") == 0) {
		exit(number);
	} else if (strcmp(word, "die") == 0) {
		(void)raise(number);
	} else {
		(void)fprintf(stderr, "fake_musterd: no such word: %s\n", word);
		exit(3);
	}
}

static void play(char *script)
{
	for (char *word = strtok(script, " "); word != NULL; word = strtok(NULL, " ")) {
		char *value = strchr(word, ':');

		if (value != NULL)
			*value++ = '\0';
		do_word(word, value != NULL ? value : "");
	}
}

static const char *argument(int argc, char **argv, const char *prefix)
{
	for (int i = 1; i < argc; i++)
		if (strncmp(argv[i], prefix, strlen(prefix)) == 0)
			return argv[i] + strlen(prefix);
	(void)fprintf(stderr, "fake_musterd: %s is missing\n", prefix);
	exit(2);
}

static void record_arguments(int argc, char **argv)
{
	const char *path = getenv("FAKE_ARGS");
	FILE *f = path == NULL ? NULL : fopen(path, "w");

	for (int i = 1; f != NULL && i < argc; i++)
		(void)fprintf(f, "%s\n", argv[i]);
	if (f != NULL)
		(void)fclose(f);
}

static void say_ready(const char *line, const char *bound)
{
	int fd = parent_fd("MUSTER_READY_FD");

	if (fd < 0)
		return;
	(void)dprintf(fd, "%s%s\n", line, bound);
	if (fd != parent_fd("MUSTER_END_FD"))
		(void)close(fd);
}

int main(int argc, char **argv)
{
	char *script = getenv("FAKE_JOB"), bound[160];

	if (script == NULL || strcmp(script, "refuse") == 0)
		return 1;
	record_arguments(argc, argv);
	fake.workers = (uint32_t)strtoul(argument(argc, argv, "--workers="), NULL, 10);
	int rc = mst_plain.listen(argument(argc, argv, "--listen="), NULL, &fake.listen_fd, bound,
				  sizeof(bound));
	if (rc == -EADDRINUSE)
		say_ready(MST_READY_TAKEN, "");
	if (rc < 0)
		return 1;
	(void)signal(SIGTERM, on_term);
	say_ready(MST_READY_LISTENS, bound);
	play(script);
	return 0;
}
