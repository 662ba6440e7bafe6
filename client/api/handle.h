/* SPDX-License-Identifier: MIT */
/*
 * The handle that a program holds: it puts the parts of the library together. It moves bytes and
 * waits; what they mean, client/core decides. Each part has a struct and a file of its own;
 * docs/map.md lists them, and tests/tidy/ranks.txt says which may see which.
 *
 * A handle belongs to one thread at a time; only muster_check() may run beside it, and the
 * heartbeat's thread touches the control connection alone. It belongs to the process that opened
 * it; process.c takes care of the copy that a child of fork() inherits.
 */
#ifndef MST_CLIENT_API_HANDLE_H
#define MST_CLIENT_API_HANDLE_H

#include "client/local/clip.h"
#include "client/local/contiguous.h"
#include "client/local/own.h"
#include "client/local/readers.h"
#include "client/local/result_copy.h"
#include "client/local/sources.h"
#include "client/session/lineage.h"
#include "client/session/outbound.h"
#include "client/session/reconnect.h"
#include "client/session/starting.h"
#include "client/session/state_transfer.h"
#include "common/base/reason.h"

/* What muster_agree() knows. */
struct mst_agreeing {
	bool claimed, gave;
	struct mst_agree told; /* as the program has been told */
	struct mst_gift taken; /* the state of another worker; data NULL: none */
};

/* What a handle that comes back has still to do for the session that is lost. */
struct mst_returning_handle {
	bool unsettled;      /* what was pushed there has no verdicts: */
	uint64_t base, sent; /* the tickets before its first one, and its last */
	uint64_t generation; /* its id */
	uint32_t incarnation;
	uint64_t number; /* of the generation of the last outcome; 0: there was none */
	/* The generation of this number goes on from the version `shared` of the worker, which had
	 * the version `had` when it heard of it; so many are void, as the next outcome says. */
	uint64_t noted, shared, had, withdrawn;
	bool first;   /* the next outcome is the first of its session */
	bool linked;  /* all links stand */
	bool chooses; /* a network did not work, and the next is tried: */
	struct mst_network_choice choice;
	uint64_t heard_until_ns; /* a link is lost: the leader's words are waited for; 0: not yet */
	/* The user has asked for the end of the job, and the leader has not been told since the
	 * first outcome of this session. Before the start it does not listen to that. */
	bool owes_end;
};

struct muster {
	struct muster *next; /* of this process; process.c's */
	bool inherited;      /* by fork(): nothing can be done with it but to close it */
	int pid;             /* of the process that opened it */

	struct mst_reason failure; /* the last: what muster_error() gives */
	struct mst_settings settings;
	struct mst_wakeup wakeup;
	struct mst_links links;
	struct mst_contiguous contiguous;
	struct mst_sources sources;
	struct mst_client_session session;
	struct mst_worker worker;
	struct mst_inbound inbound;
	struct mst_hint hint;
	struct mst_end_cause cause;
	struct mst_engine engine;
	struct mst_client_guard guard;
	struct mst_client_transfer transfer;
	struct mst_clip clip;
	struct mst_outbound outbound;
	struct mst_starting starting;
	struct mst_agreeing agreeing;
	struct mst_own own; /* muster_train()'s */
	struct mst_lineage lineage;
	struct mst_reconnect reconnect;
	struct mst_result_copy snapshot;
	struct mst_readers readers; /* of what muster_check() reads */
	struct mst_returning_handle returning;

	uint64_t wait_ns; /* how long muster_wait() may take */

	void *average; /* that muster_average() has brought last */
	uint64_t average_number;
	bool average_due;   /* it waits for another, */
	bool average_asked; /* and the leader has been asked for it */

	uint64_t goal_given; /* the least version that muster_goal() was called with; 0: none */
	uint64_t goal_due;   /* what muster_goal() has not been answered; 0: nothing */
	uint64_t goals_told; /* how many versions to end with have been told */
	bool goal_told;      /* goal_due is one of them */

	uint64_t differences;          /* that the program has been told */
	struct mst_differs difference; /* the last of them */

	struct mst_engine_watch try_watch; /* of the tries since the last outcome */
};

/* Joins the parts of a zeroed handle. */
void mst_handle_init(struct muster *m);
/* From the settings to a linked session whose heart beats. On failure, with its sentence, what
 * there is stays, to be released by mst_handle_free(). */
int mst_handle_join(struct muster *m);
/* The last step of joining: there is a welcome, and there are links. */
int mst_handle_begin(struct muster *m);
/* The same of the next session of a handle that comes back, in place of the last. */
int mst_handle_go_on(struct muster *m);
/* Whatever call waits: sends what the start of a generation asks this worker for. Otherwise the
 * others wait for it. Return: 0, or an error with its sentence. */
int mst_handle_serve(struct muster *m);
/* Has the leader ended the session @ctx meanwhile? */
bool mst_handle_is_unwanted(void *ctx);
/* Accepts a handle at any stage of joining. */
void mst_handle_free(struct muster *m);

/* What every call that acts begins with. */
enum mst_handle_entry {
	MST_ENTRY_OPEN = 0,
	MST_ENTRY_OVER = 1, /* the last outcome has been handed out: return 0, do nothing */
};
/* Return: an entry, or an error, @early before muster_start(). Looks at how the session stands
 * first, and no call can do without: what was read in place since the last call was sound only if
 * the session has not ended, and by succeeding this call says so. @call: for sentences. */
int mst_handle_enter(struct muster *m, int early, const char *call);

/* The handle was inherited. Return: -ECHILD with its sentence. */
int mst_handle_disowned(struct muster *m);

/* Frees the state that muster_agree() has brought. */
void mst_agreeing_let_go(struct mst_agreeing *a);

/* What process.c does: the handles of this process, and what fork() means for them. */

/* From now on a fork() in any thread finds the handle. 0; -ENOMEM. */
int mst_process_add(struct muster *m);
/* Accepts a handle that was never added. */
void mst_process_remove(struct muster *m);
/* Between the two no thread forks: for what a child must find either whole or not at all. */
void mst_process_hold(void);
void mst_process_release(void);

#endif
