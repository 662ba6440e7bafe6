/* SPDX-License-Identifier: MIT */
#include "server/options/cpus.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>

#include "common/base/bitset.h"

static_assert(MST_CPUS_MAX <= CPU_SETSIZE, "a set has room for every number");

/* Digits only: no sign, no blank. Return: false if there is no number below MST_CPUS_MAX. */
static bool read_number(const char **text, uint32_t *out)
{
	const char *at = *text;

	for (*out = 0; *at >= '0' && *at <= '9' && *out < MST_CPUS_MAX; at++)
		*out = *out * 10 + (uint32_t)(*at - '0');
	if (at == *text || *out >= MST_CPUS_MAX)
		return false;
	*text = at;
	return true;
}

static bool add(struct mst_cpus *out, uint64_t *seen, uint32_t first, uint32_t last)
{
	for (uint32_t cpu = first; cpu <= last; cpu++) {
		if (mst_bitset_test(seen, cpu))
			return false;
		mst_bitset_add(seen, cpu);
		out->cpu[out->count++] = (uint16_t)cpu;
	}
	return first <= last;
}

static bool read_list(const char *text, struct mst_cpus *out)
{
	uint64_t seen[MST_CPUS_MAX / 64] = { 0 };
	uint32_t first, last;

	out->count = 0;
	for (;; text++) {
		if (!read_number(&text, &first))
			return false;
		last = first;
		if (*text == '-') {
			text++;
			if (!read_number(&text, &last))
				return false;
		}
		if (!add(out, seen, first, last))
			return false;
		if (*text != ',')
			return *text == '\0';
	}
}

int mst_cpus_parse(const char *text, struct mst_cpus *out, struct mst_reason *why)
{
	if (strcmp(text, "auto") == 0) {
		out->count = 0;
		return 0;
	}
	if (read_list(text, out))
		return 0;
	mst_reason_set(why,
		       "--cpus \"%.60s\" is no list of processors: it is auto, or numbers below %u "
		       "and ranges of them, each once, such as 0-3,8",
		       text, MST_CPUS_MAX);
	return -EINVAL;
}

/* The processors that this process may run on. If the kernel does not say, all of them. */
static cpu_set_t allowed(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		memset(&set, 0xff, sizeof(set));
	return set;
}

int mst_cpus_forbidden(const struct mst_cpus *cpus)
{
	cpu_set_t set = allowed();

	for (uint32_t i = 0; i < cpus->count; i++)
		if (!CPU_ISSET(cpus->cpu[i], &set))
			return cpus->cpu[i];
	return -1;
}
