/* SPDX-License-Identifier: MIT */
/*
 * The handles of this process, and what fork() means for them: the session belongs to the process
 * that opened it. A child closes the descriptors that it has inherited while fork() still runs, so
 * that the end of the parent shows at once whatever the child does, and marks the handles, so that
 * every call with one of them in the child is an error.
 *
 * Handles are found here from when they are whole to when they are taken apart. What a thread is
 * connecting or freeing at the moment of a fork cannot be told from a copy of its memory.
 */
#ifndef MST_CLIENT_API_PROCESS_H
#define MST_CLIENT_API_PROCESS_H

struct muster;

/* From now on a fork() in any thread finds the handle. 0; -ENOMEM. */
int mst_process_add(struct muster *m);
/* Accepts a handle that was never added. */
void mst_process_remove(struct muster *m);

#endif
