/* SPDX-License-Identifier: MIT */
/*
 * Writes checkpoints of a made-up job, for scripts: checkpoint_files DIR VERSION ... in three
 * parts, with a table of tensors some of whose names are odd. Prints the table: a line for each
 * tensor, with its first element and how many it has.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/reason.h"
#include "tests/unit/common/checkpoint/checkpoint_case.h"

static const struct muster_tensor table[] = {
	{ .name = "fc1.weight", .first = 0, .count = 700 },
	{ .name = "fc1.bias", .first = 700, .count = 33 },
	{ .name = "quote\"back\\slash \xc3\xa4", .first = 733, .count = 1 },
	{ .name = NULL, .first = 734, .count = 66 },
	{ .name = "fc2.weight", .first = 800, .count = 201 },
};

int main(int argc, char **argv)
{
	struct checkpoint_case c = { .elems = 1001, .parts = 3, .table = table, .tensors = 5 };
	struct mst_reason why;

	for (int i = 2; i < argc; i++) {
		c.version = strtoull(argv[i], NULL, 10);
		if (checkpoint_write(argv[1], &c, &why) != 0) {
			(void)fprintf(stderr, "checkpoint_files: %s\n", why.text);
			return EXIT_FAILURE;
		}
	}
	for (unsigned i = 0; i < c.tensors; i++)
		(void)printf("%" PRIu64 " %" PRIu64 " %s\n", table[i].first, table[i].count,
			     table[i].name != NULL ? table[i].name : "tensor#3");
	return EXIT_SUCCESS;
}
