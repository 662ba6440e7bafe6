/* SPDX-License-Identifier: MIT */
/*
 * What every driver of the comparison measures with, so that no peer is measured otherwise.
 *
 * A step: all workers fill their gradient, meet, and begin together; each takes the time from its
 * call until the result is readable; they meet again, and check it. The step took as long as its
 * slowest worker. Filling, meeting and checking lie outside the times, and after the second
 * meeting: with fewer cores than workers, a check at once would keep the others from theirs.
 *
 * --fill all: every element is written before and checked after every step, as a gradient that has
 * just been computed is: its lines are dirty in its worker's cache. --fill marks: that holds for
 * the steps that warm up, and then for the last element and one of each 4 KiB; the rest stays what
 * and where the step before left it, as in the benchmarks that MPI and others bring along.
 *
 * With --delay-ms the last rank plays the straggler: it sleeps before each of its calls, meets
 * nobody and is not measured. The figures are then what a step costs everybody else.
 *
 * The workers are processes that share one file. Ints rather than enums and structs in calls: one
 * driver is Python and calls through ctypes.
 */
#ifndef MST_BENCH_METER_H
#define MST_BENCH_METER_H

#include <stdbool.h>
#include <stdint.h>

#define METER_WORKERS_MAX 64u /* sets of ranks are 64 bits */

struct meter;

/* What the command line asked for. */
struct meter_course {
	const char *file;    /* shared by the workers of this run, and not yet there */
	const char *peer;    /* the name under which it is reported */
	const char *buffers; /* muster: slot or own; else own */
	const char *fill;    /* all or marks */
	const char *owner;   /* muster: servers (the default if a rank is delayed) or workers */
	const char *server;  /* a process of this session, whose processor time is told; or NULL */
	uint32_t workers, steps, warmup, delay_ms;
	uint64_t elems;
	double seconds; /* enough measured, unless a rank is delayed; 5 steps in any case */
};

/* Reads the command line. Return: the meter, the caller's to meter_close(); NULL: said why. */
struct meter *meter_open(int argc, char **argv);
const struct meter_course *meter_course(const struct meter *m);

/* Maps the file, once the driver knows its rank. Return: 0; a negative errno, said why. */
int meter_join(struct meter *m, uint32_t rank);

/* float32[elems] of this rank for the step @tag: no two ranks, and no two steps that follow each
 * other, have the same, and every sum and mean of at most 8 is exact. */
void meter_fill(const struct meter *m, float *gradient, uint64_t tag);

/* Meets the others and starts the clock; the straggler sleeps instead. Blocks until all are here.
 * Return: false: enough, there is no further step. */
bool meter_next(struct meter *m);
/* Stops it. */
void meter_done(struct meter *m);
/* Meets those again who met before the step. To be called before anything else is done. */
void meter_meet(struct meter *m);

/* Counts what is wrong in @result: it must be the sum over the ranks in @set (bit r: rank r) of
 * what they filled for @tag, divided by @divisor. */
void meter_check(struct meter *m, const float *result, uint64_t tag, uint64_t set, double divisor);
/* The same, of what was subtracted from @before. */
void meter_check_step(struct meter *m, const float *result, const float *before, uint64_t tag,
		      uint64_t set);

/* Elements that all workers have found wrong so far. */
uint64_t meter_wrong(const struct meter *m);

/* Rank 0 waits for the others and prints the figures, one line of JSON. Frees the meter.
 * Return: the exit status of the driver; a wrong element fails nothing, it is reported. */
int meter_close(struct meter *m);

#endif
