/* SPDX-License-Identifier: MIT */
/*
 * One table of options makes everything: it parses flags and the libconfig file, checks ranges,
 * prints --help, --print-config and the OPTIONS part of a manual page. Every program of muster has
 * such a table; a new option is one row and one field.
 *
 * A flag is --name VALUE or --name=VALUE; in a file the key is the name with '-' as '_'.
 * Defaults, then the file, then flags: later wins.
 */
#ifndef MST_CONFIG_OPTION_H
#define MST_CONFIG_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

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
	size_t offset;         /* of the field in the program's struct */
	const char *fallback;  /* default, as it would be typed; NULL: 0, false, NULL, empty */
	double min, max;       /* numbers, in the kind's unit; both 0: any */
	const char *automatic; /* word that stands for 0 ("auto"), or NULL */
	const char *choices;   /* CHOICE */
	const char *value;     /* what --help calls the value; NULL: from kind */
	const char *help;      /* one sentence without its full stop */
	bool typed_only; /* a flag only (--help): no key of a file, and never printed as one */
};

/* What a table is parsed into. */
struct mst_options {
	const struct mst_option *table;
	void *fields;  /* the program's struct */
	void *strings; /* owned: what string fields point to; mst_options_free() */
	char why[512]; /* after a failure: a sentence that names option, value, what is allowed */
};

/* Sets every field to its default. Return: 0 or -ENOMEM. A bad default is our mistake: asserted. */
int mst_options_init(struct mst_options *o, const struct mst_option *table, void *fields);
void mst_options_free(struct mst_options *o);

/* Reads flags up to the first operand or "--". @operand: index of the first argument that is not an
 * option (argc if none). --help and --version are ordinary FLAG rows of the program.
 * A list starts anew with its first flag, so that flags replace what a file said, and a command
 * line may be read twice: for the name of the file, and again after it.
 * Unknown: -EINVAL with the nearest known name. */
int mst_options_argv(struct mst_options *o, int argc, char **argv, int *operand);
/* Reads a libconfig file. -ENOENT and so on if it cannot be read; -EINVAL with file and line. */
int mst_options_file(struct mst_options *o, const char *path);
/* Sets one option by name from text. */
int mst_options_set(struct mst_options *o, const char *name, const char *value);

/* "  --lease DURATION   ... (default 5s)", wrapped to 100 columns. */
void mst_options_help(const struct mst_option *table, FILE *out);
/* A libconfig file that would give the present fields. What was never set and has no default stands
 * as a comment. */
void mst_options_print(const struct mst_options *o, FILE *out);
/* The OPTIONS section of a man page, in roff. */
void mst_options_man(const struct mst_option *table, FILE *out);

/* Single values, for whoever parses something of its own. @out written on success only.
 * Return: 0 or -EINVAL. The whole text must be eaten. */
int mst_parse_u64(const char *text, uint64_t *out);
int mst_parse_real(const char *text, double *out);
int mst_parse_size(const char *text, uint64_t *out);
int mst_parse_duration(const char *text, uint64_t *out);

/* The name nearest to @word by edit distance, or NULL if none is near. @names ends with NULL. */
const char *mst_nearest(const char *word, const char *const *names);

#endif
