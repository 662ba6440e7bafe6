/* SPDX-License-Identifier: MIT */
/*
 * A table of options from which everything follows: it parses flags and the libconfig file, checks
 * ranges, and prints --help, --print-config and the OPTIONS section of a manual page. Each program
 * of muster has such a table; a new option is one row and one field.
 *
 * A flag is --name VALUE or --name=VALUE; in a file the key is the name with '_' in place of '-'.
 * First the defaults hold, then the file, then flags: the later one wins.
 */
#ifndef MST_CONFIG_OPTION_H
#define MST_CONFIG_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/reason.h"

enum mst_option_kind {
	MST_OPTION_FLAG,     /* bool; takes no value; in a file true or false */
	MST_OPTION_U32,      /* uint32_t, min .. max */
	MST_OPTION_U64,      /* uint64_t */
	MST_OPTION_REAL,     /* double */
	MST_OPTION_SIZE,     /* uint64_t bytes: 4096, 128K, 3M, 2G; powers of 1024 */
	MST_OPTION_DURATION, /* uint64_t ns: 250ns, 500us, 20ms, 5s, 2min, 1h */
	MST_OPTION_STRING,   /* const char * */
	MST_OPTION_CHOICE,   /* uint32_t: index into choices "a|b|c" */
	MST_OPTION_LIST,     /* struct mst_option_list: may be given again and again */
};

#define MST_OPTION_LIST_MAX 64u

struct mst_option_list {
	uint32_t count;
	const char *item[MST_OPTION_LIST_MAX];
};

struct mst_option {
	const char *name; /* "on-loss"; NULL ends a table */
	char letter;      /* 'c' for -c, or 0 */
	enum mst_option_kind kind;
	size_t offset; /* of the field in the program's struct */
	/* the default, as a user would type it; NULL: 0, false, NULL, empty */
	const char *fallback;
	double min, max;       /* range of a number, in the kind's unit; both 0: any */
	const char *automatic; /* a word that means 0 ("auto"), or NULL */
	const char *choices;   /* CHOICE */
	const char *value;     /* what --help calls the value; NULL: as its kind does */
	const char *help;      /* one sentence without its full stop */
	bool typed_only;       /* only a flag (--help), never a key of a file */
};

/* What the options are parsed into. */
struct mst_options {
	const struct mst_option *table;
	void *fields;          /* the program's struct */
	void *strings;         /* the strings that fields point to; freed by mst_options_free() */
	struct mst_reason why; /* after a failure: names option, value, what is allowed */
};

/* Sets every field to its default. Asserts that the defaults are valid.
 * Return: 0 or -ENOMEM. */
int mst_options_init(struct mst_options *o, const struct mst_option *table, void *fields);
void mst_options_free(struct mst_options *o);

/* Reads flags up to the first operand or "--". @operand: index of the first argument that is not an
 * option (argc: there is none). --help and --version are ordinary FLAG rows of the program. The
 * first flag of a list empties it. So flags replace what a file said, and a command line may be
 * read twice: first for the name of the file, then again after the file.
 * Return: 0; -EINVAL: for an unknown option @o->why names the nearest known one. */
int mst_options_argv(struct mst_options *o, int argc, char **argv, int *operand);
/* Reads a libconfig file. One that is empty, or that begins as a printed one and lacks its last
 * line, has been cut off, and is refused.
 * Return: 0; -ENOENT and so on: it cannot be read; -EINVAL: @o->why names file and line. */
int mst_options_file(struct mst_options *o, const char *path);
/* Sets one option by its name. */
int mst_options_set(struct mst_options *o, const char *name, const char *value);

/* "  --lease DURATION   ... (default 5s)", wrapped to 100 columns. */
void mst_options_help(const struct mst_option *table, FILE *out);
/* Prints a libconfig file that gives the present fields. An option that is not set and has no
 * default is printed as a comment. The first line says what the last one is, so that a file that
 * was cut off, as by a full disk, is known by its reader. */
void mst_options_print(const struct mst_options *o, FILE *out);
/* The OPTIONS section of a man page, in roff. */
void mst_options_man(const struct mst_option *table, FILE *out);

/* Parse single values. The whole text must be used. @out is written on success only.
 * Return: 0 or -EINVAL. */
int mst_parse_u64(const char *text, uint64_t *out);
int mst_parse_real(const char *text, double *out);
int mst_parse_size(const char *text, uint64_t *out);
int mst_parse_duration(const char *text, uint64_t *out);

/* The name nearest to @word by edit distance; NULL: none is near. @names ends with NULL. */
const char *mst_nearest(const char *word, const char *const *names);

#endif
