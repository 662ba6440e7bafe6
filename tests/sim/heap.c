/* SPDX-License-Identifier: MIT */
#include "tests/sim/heap.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

static struct sim_heap heap;

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *at, size_t bytes);
void *__real_aligned_alloc(size_t align, size_t bytes);
void __real_free(void *at);
void *__wrap_malloc(size_t bytes);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t length);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *at, size_t bytes);
void *__wrap_aligned_alloc(size_t align, size_t bytes);
void __wrap_free(void *at);

static void *enter(void *at)
{
	heap.calls++;
	if (at != NULL) {
		heap.blocks++;
		heap.bytes += malloc_usable_size(at);
	}
	return at;
}

static void leave(void *at)
{
	if (at == NULL)
		return;
	heap.blocks--;
	heap.bytes -= malloc_usable_size(at);
}

void *__wrap_malloc(size_t bytes)
{
	return enter(__real_malloc(bytes));
}

void *__wrap_calloc(size_t count, size_t bytes)
{
	return enter(__real_calloc(count, bytes));
}

void *__wrap_realloc(void *at, size_t bytes)
{
	leave(at);
	void *grown = enter(__real_realloc(at, bytes));
	if (grown == NULL && bytes > 0)
		(void)enter(at); /* it still stands */
	return grown;
}

void *__wrap_aligned_alloc(size_t align, size_t bytes)
{
	return enter(__real_aligned_alloc(align, bytes));
}

char *__wrap_strdup(const char *text)
{
	return __wrap_strndup(text, strlen(text));
}

char *__wrap_strndup(const char *text, size_t most)
{
	size_t length = strnlen(text, most);
	char *copy = __wrap_malloc(length + 1);

	if (copy != NULL) {
		memcpy(copy, text, length);
		copy[length] = '\0';
	}
	return copy;
}

void __wrap_free(void *at)
{
	leave(at);
	__real_free(at);
}

struct sim_heap sim_heap_now(void)
{
	return heap;
}
