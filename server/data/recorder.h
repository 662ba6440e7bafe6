/* SPDX-License-Identifier: MIT */
/*
 * The recorder observes the ledger's events and decisions, as the statistics do, and puts a row
 * into a recording whenever a gradient ends: with a verdict, or given up after a preemption hint.
 * It influences nothing. Pure but for the recording: events, decisions and now_ns go in.
 *
 * A gradient's time runs from when its rank was given the version, or had handed in its gradient
 * before on the same version, until it has arrived. The start is not known if the rank was given
 * another version since.
 */
#ifndef MST_SERVER_DATA_RECORDER_H
#define MST_SERVER_DATA_RECORDER_H

#include <stdint.h>

#include "server/core/ledger/ledger.h"
#include "server/data/recording.h"

/* A worker gives up one gradient at a time. What says more at once is a broken worker, of which so
 * many rows are kept, and the rest is counted as missing. */
#define MST_RECORDER_GIVEN_UP_MAX 16u

struct mst_recorder;

uint64_t mst_recorder_bytes(uint32_t workers); /* that mst_recorder_new() allocates */
/* @to: must outlive the recorder. Return: 0 or -ENOMEM. */
int mst_recorder_new(uint32_t workers, struct mst_recording *to, struct mst_recorder **out);
void mst_recorder_free(struct mst_recorder *r); /* accepts NULL */

/* To be called for every event that the ledger handles. */
void mst_recorder_event(struct mst_recorder *r, const struct mst_ledger_event *ev, uint64_t now_ns);
/* To be called for every decision, in order. */
void mst_recorder_decided(struct mst_recorder *r, const struct mst_decision *d, uint64_t now_ns);

#endif
