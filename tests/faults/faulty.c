/* SPDX-License-Identifier: MIT */
#include "tests/faults/faulty.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* In memory that forked processes share, so that their calls count too. */
struct state {
	_Atomic unsigned side, call, n;
	_Atomic unsigned made[FAULTY_CALL_COUNT]; /* calls of each kind by the side */
	_Atomic bool kills;
	_Atomic int error; /* 0: what the table has */
};

static struct state before_main;
static struct state *state = &before_main;
static _Thread_local unsigned own_side = FAULTY_NOBODY;

static const struct {
	const char *name;
	int error;
} calls[] = {
#define AS_ROW(name, error) { #name, error },
	FAULTY_CALLS(AS_ROW)
};

unsigned faulty_enter(unsigned side)
{
	unsigned before = own_side;

	own_side = side;
	return before;
}

void faulty_arm(unsigned side, enum faulty_call call, unsigned n)
{
	atomic_store(&state->side, FAULTY_NOBODY);
	atomic_store(&state->call, call);
	atomic_store(&state->n, n);
	atomic_store(&state->error, 0);
	for (unsigned kind = 0; kind < FAULTY_CALL_COUNT; kind++)
		atomic_store(&state->made[kind], 0);
	atomic_store(&state->side, side);
}

void faulty_leave(int error)
{
	atomic_store(&state->error, error);
}

void faulty_kill(void)
{
	atomic_store(&state->kills, true);
}

unsigned faulty_disarm(void)
{
	atomic_store(&state->side, FAULTY_NOBODY);
	return faulty_made(faulty_armed());
}

unsigned faulty_made(enum faulty_call call)
{
	return atomic_load(&state->made[call]);
}

bool faulty_struck(void)
{
	return faulty_made(faulty_armed()) >= atomic_load(&state->n);
}

unsigned faulty_side(void)
{
	return atomic_load(&state->side);
}

enum faulty_call faulty_armed(void)
{
	return (enum faulty_call)atomic_load(&state->call);
}

int faulty_error(void)
{
	int error = atomic_load(&state->error);

	return error != 0 ? error : calls[faulty_armed()].error;
}

bool faulty_strikes(enum faulty_call call)
{
	if (own_side == FAULTY_NOBODY || own_side != atomic_load(&state->side))
		return false;
	unsigned made = atomic_fetch_add(&state->made[call], 1) + 1;
	if ((unsigned)call != atomic_load(&state->call) || made != atomic_load(&state->n))
		return false;
	if (atomic_load(&state->kills))
		(void)raise(SIGKILL);
	errno = faulty_error();
	return true;
}

const char *faulty_name(enum faulty_call call)
{
	return calls[call].name;
}

const char *faulty_text(void)
{
	static _Thread_local char text[64];

	(void)snprintf(text, sizeof(text), "%s %u", calls[faulty_armed()].name,
		       atomic_load(&state->n));
	return text;
}

/* ---- whole programs ---- */

/* MUSTER_FAULT "recv 3 FILE": the third recv of this program and of what it forks fails; how many
 * calls of each kind there were is written to FILE at its end. */
static char report_path[512];
static pid_t reporter;

static void report(void)
{
	if (getpid() != reporter)
		return;
	faulty_disarm();
	FILE *f = fopen(report_path, "w");
	if (f == NULL)
		return;
	for (unsigned call = 0; call < FAULTY_CALL_COUNT; call++)
		fprintf(f, "%s %u\n", calls[call].name, faulty_made((enum faulty_call)call));
	fclose(f);
}

static void share_state(void)
{
	void *page = mmap(NULL, sizeof(*state), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			  -1, 0);

	if (page != MAP_FAILED)
		state = page;
}

/* A library that allocates without the program's knowledge allocates here too, if the program links
 * it. */
void json_set_alloc_funcs(void *(*alloc)(size_t), void (*release)(void *)) __attribute__((weak));

__attribute__((constructor)) static void begin(void)
{
	const char *text = getenv("MUSTER_FAULT");
	char name[32];
	unsigned n;

	if (text == NULL || sscanf(text, "%31s %u %511s", name, &n, report_path) != 3)
		return;
	share_state();
	if (json_set_alloc_funcs != NULL)
		json_set_alloc_funcs(malloc, free);
	for (unsigned call = 0; call < FAULTY_CALL_COUNT; call++) {
		if (strcmp(calls[call].name, name) != 0)
			continue;
		reporter = getpid();
		atexit(report);
		faulty_enter(1);
		faulty_arm(1, (enum faulty_call)call, n);
		return;
	}
	fprintf(stderr, "faulty: no call \"%s\"\n", name);
	_exit(99);
}
