/* SPDX-License-Identifier: MIT */
/*
 * What the files of a course share: its state, and what they call of one another. Internal to
 * tools/course*.c.
 */
#ifndef MST_TOOLS_COURSE_STATE_H
#define MST_TOOLS_COURSE_STATE_H

#include "common/base/clock.h"
#include "tools/course.h"
#include "tools/daemon.h"
#include "tools/progress.h"
#include "tools/watch.h"

#define MST_COURSE_SILENT_NS (5 * MST_SECOND) /* what musterd may take to explain itself */

enum mst_course_phase {
	MST_COURSE_STARTING, /* musterd is coming up */
	MST_COURSE_RUNNING,  /* the workers run */
	MST_COURSE_ENDING,   /* the run is over; the workers are to go */
	MST_COURSE_CLOSING,  /* they have gone; musterd is to go */
	MST_COURSE_DONE,     /* no process is left */
};

struct mst_course {
	const struct mst_run_line *line;
	const struct mst_run_options *options;
	struct mst_signals *signals;
	enum mst_course_phase phase;
	struct mst_ending ending;
	uint64_t signal_ns;        /* when ending.signo came */
	struct mst_snapshot blank; /* what is known before musterd has told anything */
	struct mst_progress progress;

	struct mst_daemon daemon;
	const char *listen;      /* what musterd was told */
	char address[160];       /* where it does listen */
	struct mst_watch *watch; /* NULL before it is up */
	bool watching;           /* the connection is of use */
	uint64_t next_ask_ns;

	/* A worker died before the job had started, as far as was known: the answer to a question
	 * asked after its death tells whether it had; without one, it had not. NULL: none. */
	const struct mst_child *suspect;
	bool suspect_asked;
	uint64_t suspect_ns; /* till when to wait for the answer */

	/* If nothing has ended the run by then, this has. */
	uint64_t deadline_ns;
	const char *deadline_why;

	/* For those who do not go by themselves: SIGTERM, then SIGKILL, and when. 0: none. */
	int push_signo;
	uint64_t push_ns;

	uint32_t workers, members;
	/* 0: musterd, the lead; 1 + rank: the workers; 1 + workers + i: members beside the lead. */
	struct mst_child child[];
};

static inline struct mst_child *mst_course_musterd(struct mst_course *c)
{
	return &c->child[0];
}
static inline struct mst_child *mst_course_workers(struct mst_course *c)
{
	return &c->child[1];
}

static inline struct mst_child *mst_course_members(struct mst_course *c)
{
	return &c->child[1 + c->workers];
}

/* course.c: from phase to phase. */

/* The newest of what musterd has told, or the blank snapshot. */
const struct mst_snapshot *mst_course_known(const struct mst_course *c);
void mst_course_enter(struct mst_course *c, enum mst_course_phase next);
/* The run is over; the workers still alive are pushed from @when_ns on. */
void mst_course_end(struct mst_course *c, uint64_t when_ns);
/* The same, because it has failed in a way that musterd cannot tell. */
void mst_course_fail(struct mst_course *c, uint64_t when_ns, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* course_start.c: musterd and the workers come up. */

void mst_course_start_musterd(struct mst_course *c);
/* It died before it had said where it listens: tries another port if this one was taken. */
void mst_course_restart_musterd(struct mst_course *c, const char *fate);
/* Reads what musterd has said; if it is up, starts the workers. */
void mst_course_take_ready(struct mst_course *c);

/* course_watch.c: what musterd tells, and what it has to be asked. */

/* Asks for the status, unless an answer is due. */
void mst_course_ask(struct mst_course *c);
void mst_course_take_status(struct mst_course *c);
/* A worker died while the job was not known to have started. */
void mst_course_suspect(struct mst_course *c, const struct mst_child *worker);
/* The suspect died before the start: that ends the run. */
void mst_course_blame(struct mst_course *c);
/* A worker died under way. */
void mst_course_name_loss(struct mst_course *c, const struct mst_child *worker);

#endif
