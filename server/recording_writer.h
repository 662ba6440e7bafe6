/* SPDX-License-Identifier: MIT */
/*
 * The thread that writes a recording to its file, as CSV with a header line:
 *
 *   rank,version,start_us,ready_us,verdict
 *   0,17,351204.118,371310.500,counted
 *
 * Times are in microseconds from the start of the job. ready_us is when the gradient had arrived;
 * for one that was cancelled or given up, when the server learned of that. start_us is empty where
 * it is not known. If rows are missing, the last line says how many: "# 17 rows are missing".
 *
 * Where generations are counted, each row has the number of its generation besides, in a last
 * column "generation", and the rows of each generation follow a remark such as
 *
 *   # generation 2 of run 95d6f6b7af999cf5 begins with version 334
 *
 * They are added to those of the generations before, if the file has them. Nothing is written
 * before the generation begins.
 *
 * The disk may take its time, or be full: no other thread waits for it. What cannot be written is
 * reported once, in words, and the job goes on. A file that ends early ends with a whole line.
 */
#ifndef MST_SERVER_RECORDING_WRITER_H
#define MST_SERVER_RECORDING_WRITER_H

#include "common/base/reason.h"
#include "server/data/recording.h"

struct mst_recording_writer;

/* Opens or creates the file, which becomes empty unless it goes on, and starts the thread.
 * @recording must outlive it.
 * @why: on failure a sentence.
 * Return: 0 or -errno. */
int mst_recording_writer_start(const char *path, struct mst_recording *recording,
			       struct mst_recording_writer **out, struct mst_reason *why);
/* To be called when nobody puts rows any more. Writes what is left and says how much was recorded.
 * Waits for at most some seconds for a file that takes nothing. Accepts NULL.
 * @missing: what of the recording is not in the file, a clause; "": nothing is missing.
 * Return: false: the thread still waits for the file, so that the recording must not be freed. */
bool mst_recording_writer_stop(struct mst_recording_writer *w, struct mst_reason *missing);

#endif
