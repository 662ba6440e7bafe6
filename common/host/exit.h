/* SPDX-License-Identifier: MIT */
/*
 * What an exit status says, for every program of this tree, and the end of main(): standard output
 * is one of the things that a program has promised.
 */
#ifndef MST_HOST_EXIT_H
#define MST_HOST_EXIT_H

#include <stdio.h>

/* clang-format off */

/* F(name, status, shown, means): the rows are printed in --help, in every manual page and in
 * README.md. */
#define MST_EXITS(F) \
	F(DONE, 0, "0", \
	  "done; also a job that a worker or an operator has finished before its goal, which the " \
	  "summary tells") \
	F(FAILED, 1, "1", \
	  "failed; also a job with a goal (--commits, --samples) that all workers have left " \
	  "before") \
	F(USAGE, 2, "2", "wrong usage: nothing was done") \
	F(INCOMPLETE, 3, "3", \
	  "done, but something that was asked for is missing: the last checkpoint, rows of the " \
	  "recording, a file of figures, or what was to be printed; a line on standard error " \
	  "says what") \
	F(AGAIN, 75, "75", \
	  "another server of the job is lost, and with it what this one did: the job goes on " \
	  "when servers are started again (--server-patience)") \
	F(BY_SIGNAL, 128, "128+n", "ended by signal n")

/* clang-format on */

enum mst_exit {
#define MST_EXIT_NAME(name, status, shown, means) MST_EXIT_##name = (status),
	MST_EXITS(MST_EXIT_NAME)
#undef MST_EXIT_NAME
};

/* The status of a program that has ended with @status, and something that it promised is missing:
 * one that has failed has failed all the same. */
static inline int mst_exit_incomplete(int status)
{
	return status == MST_EXIT_DONE ? MST_EXIT_INCOMPLETE : status;
}

/* That standard output is not complete has been logged: mst_exit_close() does not say it again. */
void mst_exit_told(void);

/* To be called last in main(): closes standard output. If not all that was printed could be
 * written, to standard output or by stdio to standard error, that is in the status; of standard
 * output it is logged, unless its reader has closed a pipe.
 * Return: the exit status of the process. */
int mst_exit_close(int status);

/* The table for --help, and the EXIT STATUS section of a manual page without its heading. */
void mst_exit_help(FILE *out);
void mst_exit_man(FILE *out);

#endif
