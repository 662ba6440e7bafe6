/* SPDX-License-Identifier: MIT */
/* A table with every kind of option, for the tests of common/config. */
#ifndef MST_TESTS_UNIT_COMMON_CONFIG_OPTION_CASE_H
#define MST_TESTS_UNIT_COMMON_CONFIG_OPTION_CASE_H

#include "common/config/option.h"

struct option_case {
	const char *config, *job, *log;
	uint32_t workers, owner, slots, seed;
	uint64_t commits, memory, lease_ns;
	double samples, bias;
	bool force, help;
	struct mst_option_list delay;
};

extern const struct mst_option option_case_table[];

struct option_world {
	struct mst_options options;
	struct option_case fields;
};

/* All defaults. */
void option_world_init(struct option_world *w);
void option_world_fini(struct option_world *w);

/* Reads flags; @argv ends with NULL and begins with the first flag. Return: what mst_options_argv()
 * gives. @operand may be NULL. */
int option_world_flags(struct option_world *w, const char *const *argv, int *operand);
#define OPTION_FLAGS(w, ...) option_world_flags(w, (const char *const[]){ __VA_ARGS__, NULL }, NULL)

/* Reads a file of this text, the path of which ends in "/config". */
int option_world_text(struct option_world *w, const char *text, size_t len);
#define OPTION_TEXT(w, text) option_world_text(w, text, sizeof(text) - 1)

/* Is @part in the sentence of the last failure? Prints the sentence if not. */
bool option_world_says(const struct option_world *w, const char *part);

#endif
