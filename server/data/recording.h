/* SPDX-License-Identifier: MIT */
/*
 * Rows on their way from the data thread to the thread that writes them to a file: how every
 * gradient of a job ended, and when. The ring between the two threads is bounded, because a disk
 * may take its time and the data thread may not. A row that finds no place is counted as missing.
 *
 * Putting a row costs a copy of 32 bytes: no allocation, no lock, no system call.
 */
#ifndef MST_SERVER_DATA_RECORDING_H
#define MST_SERVER_DATA_RECORDING_H

#include <stdbool.h>
#include <stdint.h>

#include "common/wire/message.h"

/* Rows that wait. The writer looks every 20 ms, so this many are enough for three million
 * gradients a second. */
#define MST_RECORDING_ROWS 65536u
/* The text of rows that are written at once. */
#define MST_RECORDING_TEXT_BYTES 65536u

/* How a gradient ended: an enum muster_verdict, or this. */
#define MST_RECORDED_GIVEN_UP 8u

/* One gradient that has ended. Times count from the start of the job. */
struct mst_recorded {
	uint64_t version;  /* that the gradient was computed on */
	uint64_t start_ns; /* since when its worker could compute it; MST_NEVER: not known */
	uint64_t end_ns;   /* when it had arrived, or when the server learned that it never will */
	uint32_t rank;
	uint32_t end; /* enum muster_verdict or MST_RECORDED_GIVEN_UP */
};

/* The generation that all rows of a job's process are of. */
struct mst_recorded_generation {
	char run[MST_RUN_LEN];
	uint64_t number, began; /* with this version */
};

struct mst_recording;

/* Bytes for the budget of a job that is recorded: the ring, and the text of its writer. */
uint64_t mst_recording_bytes(void);
/* Return: 0 or -ENOMEM. */
int mst_recording_new(struct mst_recording **out);
void mst_recording_free(struct mst_recording *r); /* accepts NULL */

/* Before any thread uses it: rows wait until it is known which generation they are of. */
void mst_recording_counts(struct mst_recording *r);
bool mst_recording_is_counted(const struct mst_recording *r);
/* Control thread, once: the generation has begun. */
void mst_recording_begin(struct mst_recording *r, const struct mst_recorded_generation *g);
/* The thread that writes. Return: NULL: none has begun yet. */
const struct mst_recorded_generation *mst_recording_begun(const struct mst_recording *r);

/* Data thread. */
void mst_recording_put(struct mst_recording *r, const struct mst_recorded *row);
/* Data thread: counts so many rows that are not put at all. */
void mst_recording_miss(struct mst_recording *r, uint64_t rows);

/* The thread that writes. Return: false if no row waits. */
bool mst_recording_take(struct mst_recording *r, struct mst_recorded *out);
/* Any thread: rows that found no place so far. */
uint64_t mst_recording_missing(const struct mst_recording *r);

#endif
