/* SPDX-License-Identifier: MIT */
#include "common/checkpoint/size.h"

#include <stdio.h>

char *mst_checkpoint_size(unsigned long long bytes, char out[32])
{
	static const char *const units[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double figure = (double)bytes / 1024;
	unsigned unit = 0;

	if (bytes < 10240) {
		(void)snprintf(out, 32, "%llu bytes", bytes);
		return out;
	}
	for (; figure >= 1024 && unit < 5; unit++)
		figure /= 1024;
	(void)snprintf(out, 32, "%.1f %s", figure, units[unit]);
	return out;
}
