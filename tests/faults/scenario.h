/* SPDX-License-Identifier: MIT */
/*
 * A scenario: run() with one fault armed, for every kind of call and every n up to @most (calls
 * that poll are made without end). What came of the fault run() checks by itself; checked for it
 * here is that it took no longer than @patience_ns, and that all descriptors are closed again.
 */
#ifndef MST_TESTS_FAULTS_SCENARIO_H
#define MST_TESTS_FAULTS_SCENARIO_H

#include <stdint.h>

#include "tests/faults/faulty.h"

struct scenario {
	const char *name;
	unsigned side; /* whose calls fail */
	unsigned most;
	/* A library calls for memory by the thousand: beyond @most one call in so many is tried;
	 * 0: none. */
	unsigned thin;
	uint64_t patience_ns;
	void (*run)(void);
	void (*after)(void); /* with no fault armed: what must work all the same; NULL: nothing */
};

/* Prints a line of how many calls of which kind failed. Return: their sum. */
unsigned scenario_play(const struct scenario *s);

/* A promise that a run must keep; one that is broken is printed with the fault that broke it. */
void scenario_holds(bool holds, const char *promise);
/* Does what is said of a failure, which may be several lines, name the call that was struck, or
 * what is wrong with it? */
bool scenario_is_named(const char *said);
/* The promise that it does. */
void scenario_names(const char *said);

#endif
