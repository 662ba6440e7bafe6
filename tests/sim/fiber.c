/* SPDX-License-Identifier: MIT */
#include "tests/sim/fiber.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

/* Untouched pages cost nothing. A fiber's mapping is a page for the fiber itself, one that
 * faults for a fiber that overflows the stack, and the stack. */
#define STACK_BYTES ((size_t)512 << 10)
#define PAGE_BYTES ((size_t)4096)

struct fiber {
	ucontext_t context, back;
	void (*main)(void *arg);
	void *arg;
	char *stack;
	bool ended;
	void *own_fake, *back_fake; /* the address sanitizer's */
	const void *back_stack;
	size_t back_bytes;
	struct fiber *next; /* of those to be used again */
};

static struct fiber *running, *spare;

static _Noreturn void give_up(const char *what)
{
	perror(what);
	abort();
}

/* ---- what the address sanitizer wants to know ---- */

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#define leave __sanitizer_start_switch_fiber
#define arrive __sanitizer_finish_switch_fiber
#else
static void leave(void **keep, const void *stack, size_t bytes)
{
	(void)keep;
	(void)stack;
	(void)bytes;
}

static void arrive(void *kept, const void **from, size_t *bytes)
{
	(void)kept;
	(void)from;
	(void)bytes;
}
#endif

/* ---- the fiber ---- */

static void begin(void)
{
	struct fiber *f = running;

	arrive(NULL, &f->back_stack, &f->back_bytes);
	f->main(f->arg);
	f->ended = true;
	leave(NULL, f->back_stack, f->back_bytes);
	swapcontext(&f->context, &f->back);
}

static char *map(void)
{
	size_t bytes = 2 * PAGE_BYTES + STACK_BYTES;
	char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED || mprotect(at + PAGE_BYTES, PAGE_BYTES, PROT_NONE) != 0)
		give_up("no stack for a fiber");
	return at;
}

static struct fiber *fiber_get(void)
{
	struct fiber *f = spare;

	if (f != NULL) {
		spare = f->next;
		return f;
	}
	char *at = map();
	f = (struct fiber *)(void *)at;
	f->stack = at + 2 * PAGE_BYTES;
	return f;
}

/* getcontext() returns twice, as far as the compiler knows. */
static void set_up(struct fiber *f)
{
	if (getcontext(&f->context) != 0)
		give_up("no context for a fiber");
	f->context.uc_stack.ss_sp = f->stack;
	f->context.uc_stack.ss_size = STACK_BYTES;
	makecontext(&f->context, begin, 0);
	/* Else the address sanitizer takes all of the stack for unused at every switch. */
	f->context.uc_stack.ss_size = 0;
}

struct fiber *fiber_new(void (*main)(void *arg), void *arg)
{
	struct fiber *f = fiber_get();

	*f = (struct fiber){ .main = main, .arg = arg, .stack = f->stack };
	set_up(f);
	return f;
}

void fiber_free(struct fiber *f)
{
	f->next = spare;
	spare = f;
}

bool fiber_run(struct fiber *f)
{
	running = f;
	leave(&f->back_fake, f->stack, STACK_BYTES);
	swapcontext(&f->back, &f->context);
	arrive(f->back_fake, NULL, NULL);
	running = NULL;
	return f->ended;
}

void fiber_pause(void)
{
	struct fiber *f = running;

	leave(&f->own_fake, f->back_stack, f->back_bytes);
	swapcontext(&f->context, &f->back);
	arrive(f->own_fake, &f->back_stack, &f->back_bytes);
}
