/* SPDX-License-Identifier: MIT */
/*
 * Copies elements, and finds out on the way whether all of them are finite. A word of 64 bits holds
 * two or four elements, which are looked at together: no sum carries into the next element.
 */
#include "common/kernels/element.h"
#include "common/kernels/isa_parts.h"
#include "common/kernels/isa_vector.h"

#define LINE_BYTES 64

/* At any address, and of whatever type the elements are. */
typedef uint64_t word __attribute__((may_alias, aligned(1)));

/* The constants of a type, in each element's place of a word: what reaches from infinity to the
 * sign's bit, so that added to a magnitude it sets that bit where the element is not finite. */
struct probe {
	uint64_t sign, reach;
};

static struct probe probe_of(enum muster_type type)
{
	uint64_t each16 = UINT64_C(0x0001000100010001), each32 = UINT64_C(0x0000000100000001);

	if (type == MUSTER_F32)
		return (struct probe){ each32 * F32_SIGN, each32 * (F32_SIGN - F32_INF) };
	if (type == MUSTER_BF16)
		return (struct probe){ each16 * F16_SIGN, each16 * (F16_SIGN - BF16_INF) };
	return (struct probe){ each16 * F16_SIGN, each16 * (F16_SIGN - F16_INF) };
}

static size_t bytes_of(enum muster_type type, size_t count)
{
	return count * (type == MUSTER_F32 ? sizeof(float) : sizeof(uint16_t));
}

static uint64_t probe_word(const struct probe *p, uint64_t bits)
{
	return (bits & ~p->sign) + p->reach;
}

/* Fewer bytes than a word. */
static uint64_t probe_rest(const struct probe *p, const char *from, size_t bytes)
{
	uint64_t bits = 0;

	memcpy(&bits, from, bytes);
	return probe_word(p, bits);
}

static uint64_t copy(const struct probe *probe, char *restrict to, const char *restrict from,
		     size_t bytes)
{
	size_t words = bytes / sizeof(word);
	word *restrict out = (word *)to;
	const word *restrict in = (const word *)from;
	struct probe p = *probe;
	uint64_t seen = 0;

	for (size_t i = 0; i < words; i++) {
		out[i] = in[i];
		seen |= probe_word(&p, in[i]);
	}
	memcpy(out + words, in + words, bytes % sizeof(word));
	return seen | probe_rest(&p, (const char *)(in + words), bytes % sizeof(word));
}

bool MST_ISA_NAME(mst_copy)(void *to, const void *from, enum muster_type type, size_t count)
{
	struct probe p = probe_of(type);

	return (copy(&p, to, from, bytes_of(type, count)) & p.sign) == 0;
}

bool MST_ISA_NAME(mst_finite)(const void *from, enum muster_type type, size_t count)
{
	size_t bytes = bytes_of(type, count), words = bytes / sizeof(word);
	const word *in = from;
	struct probe p = probe_of(type);
	uint64_t seen = probe_rest(&p, (const char *)(in + words), bytes % sizeof(word));

	for (size_t i = 0; i < words; i++)
		seen |= probe_word(&p, in[i]);
	return (seen & p.sign) == 0;
}

/* Whole lines, to a line's start: the processor writes them without reading them before. */
static uint64_t copy_lines(const struct probe *p, char *to, const char *from, size_t bytes)
{
	vector64 sign = (vector64){ 0 } + p->sign, reach = (vector64){ 0 } + p->reach, seen = { 0 };
	uint64_t all = 0;

	for (size_t at = 0; at < bytes; at += VECTOR_BYTES) {
		vector64 v = *(const vector64 *)(from + at);

		VECTOR_PAST(to + at, v);
		seen |= (v & ~sign) + reach;
	}
	for (size_t i = 0; i < VECTOR_BYTES / sizeof(word); i++)
		all |= seen[i];
	return all;
}

bool MST_ISA_NAME(mst_copy_past)(void *to, const void *from, enum muster_type type, size_t count)
{
	size_t bytes = bytes_of(type, count), head = -(uintptr_t)to % LINE_BYTES;
	struct probe p = probe_of(type);

	head = head < bytes ? head : bytes;
	size_t lines = (bytes - head) / LINE_BYTES * LINE_BYTES, tail = head + lines;
	uint64_t seen = copy(&p, to, from, head);

	seen |= copy_lines(&p, (char *)to + head, (const char *)from + head, lines);
	seen |= copy(&p, (char *)to + tail, (const char *)from + tail, bytes - tail);
	return (seen & p.sign) == 0;
}

#ifdef __SSE2__

void MST_ISA_NAME(mst_drain)(void)
{
	_mm_sfence();
}

bool MST_ISA_NAME(mst_evict)(const void *from, size_t bytes)
{
	for (size_t at = 0; at < bytes; at += LINE_BYTES)
		_mm_clflush((const char *)from + at);
	_mm_mfence();
	return true;
}

#else

void MST_ISA_NAME(mst_drain)(void) {}

bool MST_ISA_NAME(mst_evict)(const void *from, size_t bytes)
{
	(void)from, (void)bytes;
	return false;
}

#endif
