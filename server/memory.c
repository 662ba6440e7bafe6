/* SPDX-License-Identifier: MIT */
#include "server/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static uint64_t read_number(const char *path, const char *format)
{
	char line[256];
	uint64_t value = 0;
	FILE *f = fopen(path, "re");

	if (f == NULL)
		return 0;
	while (value == 0 && fgets(line, sizeof(line), f) != NULL) {
		if (sscanf(line, format, &value) != 1)
			value = 0;
	}
	fclose(f);
	return value;
}

/* The group's limit less its use; 0: none. */
static uint64_t cgroup_free(void)
{
	uint64_t max = read_number("/sys/fs/cgroup/memory.max", "%" SCNu64);
	uint64_t used = read_number("/sys/fs/cgroup/memory.current", "%" SCNu64);

	return max > used ? max - used : 0;
}

uint64_t mst_memory_budget(void)
{
	uint64_t host = read_number("/proc/meminfo", "MemAvailable: %" SCNu64) * 1024;
	uint64_t group = cgroup_free();
	uint64_t left = group > 0 && group < host ? group : host;

	return left / 4 * 3;
}

const char *mst_memory_text(uint64_t bytes, char *out, size_t len)
{
	static const char *const unit[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB" };
	double value = (double)bytes;
	size_t i = 0;

	while (value >= 1024 && i + 1 < sizeof(unit) / sizeof(unit[0])) {
		value /= 1024;
		i++;
	}
	snprintf(out, len, i == 0 ? "%.0f %s" : "%.1f %s", value, unit[i]);
	return out;
}
