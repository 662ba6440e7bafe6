/* SPDX-License-Identifier: MIT */
/*
 * What the files of the supervisor share: its state, and what they call of one another. Internal to
 * tools/run/supervisor.c and the files that its name begins with.
 */
#ifndef MST_TOOLS_RUN_SUPERVISOR_STATE_H
#define MST_TOOLS_RUN_SUPERVISOR_STATE_H

#include "common/base/clock.h"
#include "common/base/listening.h"
#include "tools/run/daemon.h"
#include "tools/run/progress.h"
#include "tools/run/restarts.h"
#include "tools/run/supervisor.h"
#include "tools/watch.h"

#define MST_SUPERVISOR_SILENT_NS (5 * MST_SECOND) /* what musterd may take to explain itself */

enum mst_supervisor_phase {
	MST_SUPERVISOR_STARTING, /* musterd is coming up */
	MST_SUPERVISOR_RUNNING,  /* the workers run */
	MST_SUPERVISOR_ENDING,   /* the run is over; the workers are to go */
	MST_SUPERVISOR_CLOSING,  /* they have gone; musterd is to go */
	MST_SUPERVISOR_DONE,     /* no process is left */
};

/* What has become of a server, besides how its last process has ended. */
struct mst_server_course {
	struct mst_restarts restarts;
	uint64_t started_ns; /* its last process */
	uint64_t again_ns;   /* when it is started again; 0: it is not */
	/* When it is killed: a follower that has not ended with its leader, a leader that neither
	 * listens nor ends. MST_NEVER: it is not. */
	uint64_t kill_ns;
};

struct mst_supervisor {
	const struct mst_run_line *line;
	const struct mst_run_options *options;
	struct mst_signals *signals;
	enum mst_supervisor_phase phase;
	struct mst_ending ending;
	uint64_t signal_ns;            /* when ending.signo came */
	struct mst_job_snapshot blank; /* what is known before musterd has told anything */
	bool started;                  /* the job has, as musterd has told once */
	struct mst_progress progress;

	struct mst_daemon daemon;
	const char *listen;      /* what musterd was told */
	bool port_taken;         /* by another process, says musterd */
	char address[160];       /* where it does listen */
	bool up;                 /* it has said so */
	struct mst_watch *watch; /* NULL before it is up */
	bool watching;           /* the connection is of use */
	uint64_t next_ask_ns;
	uint64_t asked; /* how many questions have been sent */
	/* The clock by which an answer is waited for, and what it showed at the last question. */
	struct mst_listening answering;
	uint64_t ask_ns;

	/* A worker that died when the job had not started, as far as was known; NULL: none. The
	 * next status that is asked for tells whether it had started; without an answer it had not.
	 */
	const struct mst_child *suspect;
	bool suspect_asked;
	uint64_t suspect_ns; /* till when to wait for the answer */

	/* If nothing has ended the run by this time, it ends for this reason. */
	uint64_t deadline_ns;
	const char *deadline_why;

	/* The next signal to processes that do not end by themselves, SIGTERM or SIGKILL, and when
	 * it is sent. 0: none. */
	int push_signo;
	uint64_t push_ns;
	bool patient;     /* --grace comes before it, and is worth a word */
	uint64_t tell_ns; /* when it is told next who has not exited; MST_NEVER: it is not */

	/* Musterd has been told to end by a signal that came here. The workers get the signal too,
	 * when musterd has ended the job, or at pass_ns at the latest. pass_signo is 0 when they
	 * have it, or if there was none. */
	bool musterd_told;
	int pass_signo;
	uint64_t pass_ns;

	uint32_t workers, followers;
	struct mst_rank_course *course;   /* by rank */
	struct mst_server_course *server; /* the leader's, then those of followers */
	/* 0: musterd, the leader; 1 + rank: the workers; 1 + workers + i: followers beside the
	 * leader. */
	struct mst_child child[];
};

static inline struct mst_child *mst_supervisor_musterd(struct mst_supervisor *s)
{
	return &s->child[0];
}
static inline struct mst_child *mst_supervisor_workers(struct mst_supervisor *s)
{
	return &s->child[1];
}

static inline struct mst_child *mst_supervisor_followers(struct mst_supervisor *s)
{
	return &s->child[1 + s->workers];
}

/* supervisor.c: from phase to phase. */

void mst_supervisor_enter(struct mst_supervisor *s, enum mst_supervisor_phase next);
/* The run is over, because it has failed in a way that musterd cannot tell; the workers still alive
 * are pushed from @when_ns on. */
void mst_supervisor_fail(struct mst_supervisor *s, uint64_t when_ns, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* How long processes may take to exit by themselves. */
uint64_t mst_supervisor_grace_ns(const struct mst_supervisor *s);
/* Asks musterd for the status, unless an answer is due. */
void mst_supervisor_ask(struct mst_supervisor *s);

/* supervisor_ranks.c */

/* The process of a rank has ended while the job went on. */
void mst_supervisor_rank_ended(struct mst_supervisor *s, const struct mst_child *worker);
/* Is it to be started again? Then it is told, and will be. */
bool mst_supervisor_rank_again(struct mst_supervisor *s, const struct mst_child *worker);
/* When a rank is started again next; MST_NEVER: none is. */
uint64_t mst_supervisor_rank_next(const struct mst_supervisor *s);
/* Starts those whose time has come. */
void mst_supervisor_ranks_start(struct mst_supervisor *s, uint64_t now_ns);
/* The end of that process is logged, if it did not end well, once musterd has told the version. */
void mst_supervisor_rank_lost(struct mst_supervisor *s, const struct mst_child *worker);
/* The same of those that are waiting for it: musterd has nothing more to tell. */
void mst_supervisor_ranks_lost(struct mst_supervisor *s);
/* musterd has told how the job is. */
void mst_supervisor_ranks_told(struct mst_supervisor *s, const struct mst_job_snapshot *known);
/* Names the ranks that have not exited, with their processes: eight at most. Return: how many. */
uint32_t mst_supervisor_ranks_left(struct mst_supervisor *s, char *out, size_t len);

/* supervisor_servers.c */

/* Does the job go on when a server is lost and started again? */
bool mst_supervisor_goes_on(const struct mst_supervisor *s);
/* The process of a server has ended while the job went on. Is it to be started again? Then it is
 * told, and will be; or the run has failed, since it was too often.
 * Return: false: it is not. */
bool mst_supervisor_server_again(struct mst_supervisor *s, const struct mst_child *child);
/* How it has ended. */
void mst_supervisor_server_ending(const struct mst_child *child, char *out, size_t len);
/* What would have kept the job alive when a server was lost: a clause, or "". */
const char *mst_supervisor_server_advice(const struct mst_supervisor *s);
/* When one is started again next, or killed; MST_NEVER: none is. */
uint64_t mst_supervisor_server_next(const struct mst_supervisor *s);
/* Starts those whose time has come. */
void mst_supervisor_servers_start(struct mst_supervisor *s, uint64_t now_ns);
/* musterd has told how the job is. */
/* musterd has closed the control connection, or has ended. */
void mst_supervisor_forget_watch(struct mst_supervisor *s);
void mst_supervisor_servers_told(struct mst_supervisor *s, const struct mst_job_snapshot *known);
/* All that has come has been read: kills those that stand still. */
void mst_supervisor_servers_look(struct mst_supervisor *s, uint64_t now_ns);

/* supervisor_start.c: musterd and the workers come up. */

void mst_supervisor_start_musterd(struct mst_supervisor *s);
/* It died before it had said where it listens: tries another port if this one was taken. */
void mst_supervisor_restart_musterd(struct mst_supervisor *s, const char *verdict);
/* Starts the process of a rank. The run is over if it cannot be started. */
void mst_supervisor_start_rank(struct mst_supervisor *s, uint32_t rank);
/* The same of a follower, @i from 0. */
void mst_supervisor_start_follower(struct mst_supervisor *s, uint32_t i);
/* Starts the leader that takes the place of one that is lost, at the same address. */
void mst_supervisor_start_musterd_again(struct mst_supervisor *s);
/* Reads what musterd has said; if it is up, starts the workers. */
bool mst_supervisor_awaits_ready(const struct mst_supervisor *s);
void mst_supervisor_take_ready(struct mst_supervisor *s);

#endif
