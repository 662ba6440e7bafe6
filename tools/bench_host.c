/* SPDX-License-Identifier: MIT */
#include "tools/bench_host.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

/* Takes "model name : X" apart. */
static void read_model(char *out, size_t len)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[256];

	(void)snprintf(out, len, "unknown processor");
	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		const char *colon = strchr(line, ':');

		if (colon == NULL || strncmp(line, "model name", strlen("model name")) != 0)
			continue;
		line[strcspn(line, "\n")] = '\0';
		(void)snprintf(out, len, "%s", colon + 2);
		break;
	}
	if (f != NULL)
		(void)fclose(f);
}

static int count_processors(void)
{
	cpu_set_t allowed;

	return sched_getaffinity(0, sizeof(allowed), &allowed) == 0 ? CPU_COUNT(&allowed) : 0;
}

void mst_bench_host_words(char *out, size_t len)
{
	struct utsname host;
	char model[128];
	double load = 0;

	if (uname(&host) < 0)
		host = (struct utsname){ .sysname = "?" };
	read_model(model, sizeof(model));
	if (getloadavg(&load, 1) != 1)
		load = 0;
	(void)snprintf(out, len, "%s %s %s, %s, %d processors, load %.2f", host.sysname,
		       host.release, host.machine, model, count_processors(), load);
}
