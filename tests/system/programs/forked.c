/* SPDX-License-Identifier: MIT */
/*
 * A worker that forks in the middle of a contribution. What the child does is the first argument:
 *
 *   close   closes the handle
 *   calls   finds that every call is an error in words, and closes the handle
 *   open    opens a handle of its own, as another rank, and works with it until the job is over
 *   hold    keeps all it has inherited, and lives on while its parent is killed
 *   exec    the same, as another program
 *
 * The parent then goes on, and checks that every version is what it has pushed. It is the only
 * worker of a job where workers own, but for `open`, where its child is the other one.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "muster/muster.h"

enum { ELEMS = 20000, ROUNDS = 8, FORK_AT = 3 };

static const struct muster_contribution one = { .size = sizeof(one), .weight = 1, .full = true };

static struct muster *join(int rank)
{
	struct muster_options opt = MUSTER_OPTIONS;
	struct muster *m;

	opt.rank = rank;
	opt.elems = ELEMS;
	opt.owner = MUSTER_WORKERS_OWN;
	if (muster_open(&opt, &m) == 0)
		return m;
	fprintf(stderr, "forked: open: %s\n", muster_error(NULL));
	exit(1);
}

static int failed(const struct muster *m, const char *call)
{
	fprintf(stderr, "forked: %s: %s\n", call, muster_error(m));
	return 1;
}

static int wrong(const char *what)
{
	fprintf(stderr, "forked: %s\n", what);
	return 1;
}

static bool is(const float *result, float value)
{
	for (int i = 0; i < ELEMS; i++) {
		if (result[i] != value)
			return false;
	}
	return true;
}

static void fill(float *grad, float value, int from, int to)
{
	for (int i = from; i < to; i++)
		grad[i] = value;
}

/* ---- the child ---- */

static bool refuses(const struct muster *m, int rc)
{
	return rc == -ECHILD && strstr(muster_error(m), "forked") != NULL;
}

static int call_all(struct muster *m)
{
	struct muster_outcome out = MUSTER_OUTCOME;
	struct muster_hooks hooks = MUSTER_HOOKS;

	if (muster_check(m) != MUSTER_GIVE_UP || muster_gradient(m) != NULL)
		return wrong("a child is told to go on");
	if (!refuses(m, muster_push(m, &one, NULL)) ||
	    !refuses(m, muster_push_range(m, 0, 1, NULL)) || !refuses(m, muster_abandon(m)) ||
	    !refuses(m, muster_pull(m)) || !refuses(m, muster_wait(m, &out)) ||
	    !refuses(m, muster_finish(m, "a child")) || !refuses(m, muster_start(m, NULL, &out)) ||
	    !refuses(m, muster_train(m, &hooks)))
		return wrong("a call does not refuse to work in a child");
	if (muster_job(m)->elems != ELEMS)
		return wrong("a child cannot read the job");
	muster_close(m);
	return 0;
}

static int work(struct muster *m)
{
	struct muster_outcome out = MUSTER_OUTCOME;
	int rc = muster_start(m, NULL, &out);

	while (rc >= 0 && !out.finished) {
		float *grad = muster_gradient(m);
		if (grad == NULL)
			return failed(m, "gradient");
		fill(grad, 7, 0, ELEMS);
		rc = muster_push(m, &one, NULL);
		while (rc == 0 && (rc = muster_wait(m, &out)) > 0)
			;
	}
	return rc < 0 ? failed(m, "work") : 0;
}

static int be_child(struct muster *m, const char *what, int alive)
{
	if (strcmp(what, "calls") == 0)
		return call_all(m);
	if (strcmp(what, "hold") == 0) {
		close(alive);
		sleep(60);
	}
	if (strcmp(what, "exec") == 0)
		execlp("sleep", "sleep", "60", (char *)NULL);
	muster_close(m);
	if (strcmp(what, "open") != 0)
		return 0;
	m = join(1);
	int rc = work(m);
	muster_close(m);
	return rc;
}

/* ---- the parent ---- */

/*
 * Kills this process when its child has got past what a fork or an exec does by itself: until then
 * the child may still have what it inherited, because it has not run yet.
 */
static void die_before(pid_t child, int alive)
{
	char byte;

	if (read(alive, &byte, 1) != 0)
		exit(wrong("the child has not closed its end"));
	printf("%d\n", (int)child);
	fflush(stdout);
	raise(SIGKILL);
}

/* Return: the child. Where it holds on to all, this process is killed. */
static pid_t fork_one(struct muster *m, const char *what)
{
	int alive[2], status = 1;

	if (pipe2(alive, O_CLOEXEC) != 0)
		exit(wrong("no pipe"));
	pid_t pid = fork();
	if (pid == 0)
		_exit(be_child(m, what, alive[1]));
	if (pid < 0)
		exit(wrong("cannot fork"));
	close(alive[1]);
	if (strcmp(what, "hold") == 0 || strcmp(what, "exec") == 0)
		die_before(pid, alive[0]);
	close(alive[0]);
	if (strcmp(what, "open") != 0 && (waitpid(pid, &status, 0) != pid || status != 0))
		exit(wrong("the child has failed"));
	return pid;
}

/* Half of it is handed over, then comes the fork, then the other half. */
static int round_of(struct muster *m, int round, const char *what, pid_t *child)
{
	struct muster_outcome out = MUSTER_OUTCOME;
	float *grad = muster_gradient(m), value = (float)round;
	int rc;

	if (grad == NULL)
		return failed(m, "gradient");
	fill(grad, value, 0, ELEMS / 2);
	rc = muster_push_range(m, 0, ELEMS / 2, NULL);
	if (round == FORK_AT && *child == 0)
		*child = fork_one(m, what);
	fill(grad, value, ELEMS / 2, ELEMS);
	if (rc == 0)
		rc = muster_push(m, &one, NULL);
	if (rc == 0)
		rc = muster_wait(m, &out);
	if (rc != 0)
		return failed(m, "push or wait");
	if (strcmp(what, "open") != 0 && !is(out.result, value))
		return wrong("a version is not what was pushed");
	return 0;
}

int main(int argc, char **argv)
{
	struct muster_outcome out = MUSTER_OUTCOME;
	const char *what = argc == 2 ? argv[1] : "";
	pid_t child = 0;
	int rc = 0, status = 0;

	struct muster *m = join(0);
	if (strcmp(what, "open") == 0)
		child = fork_one(m, what);
	if (muster_start(m, NULL, &out) != 0)
		return failed(m, "start");
	for (int round = 1; rc == 0 && round <= ROUNDS; round++)
		rc = round_of(m, round, what, &child);
	if (rc == 0 && muster_finish(m, "all rounds are done") != 0)
		rc = failed(m, "finish");
	muster_close(m);
	if (strcmp(what, "open") == 0 && (waitpid(child, &status, 0) != child || status != 0))
		return wrong("the child has failed");
	return rc;
}
