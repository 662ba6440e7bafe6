/* SPDX-License-Identifier: MIT */
/*
 * Passthrough options: a command that starts musterd takes musterd's options too, and passes them
 * on as they were typed. One table is composed of its own rows and the server's; where a name is in
 * both, the command's row stands, and the option is not passed on.
 */
#ifndef MST_TOOLS_PASSTHROUGH_H
#define MST_TOOLS_PASSTHROUGH_H

#include <stddef.h>

#include "common/config/option.h"

#define MST_PASSTHROUGH_ROWS 128u

struct mst_passthrough {
	const struct mst_option *own;
	size_t server_offset;       /* of struct mst_server_options in the command's own struct */
	const char *const *without; /* rows of the server that are not offered; ends with NULL */
	/* All rows, the command's own first: composed once, for a command has one thread. */
	struct mst_option table[MST_PASSTHROUGH_ROWS];
	unsigned own_count;
};

/* Composes the table at its first call. */
const struct mst_option *mst_passthrough_table(struct mst_passthrough *p);

/* Prints the command's own rows, and then those that are passed on to @receiver. */
void mst_passthrough_help(struct mst_passthrough *p, const char *receiver);

/* Copies those of argv[1..@end) that are the server's into @out, an array that ends with NULL and
 * is the caller's to free(); its strings are argv's. argv has been parsed by the table before.
 * Return: 0 or -ENOMEM. */
int mst_passthrough_collect(struct mst_passthrough *p, char **argv, int end, char ***out);

#endif
