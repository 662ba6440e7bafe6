/* SPDX-License-Identifier: MIT */
#include "tests/unit/common/config/option_case.h"

#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fixtures.h"

#define FIELD(name) .offset = offsetof(struct option_case, name)

const struct mst_option option_case_table[] = {
	{ .name = "config",
	  .letter = 'c',
	  .kind = MST_OPTION_STRING,
	  FIELD(config),
	  .value = "FILE",
	  .typed_only = true,
	  .help = "read this file" },
	{ .name = "job",
	  .kind = MST_OPTION_STRING,
	  FIELD(job),
	  .fallback = "default",
	  .help = "the job's name" },
	{ .name = "log", .kind = MST_OPTION_STRING, FIELD(log), .help = "where lines go" },
	{ .name = "workers",
	  .letter = 'n',
	  .kind = MST_OPTION_U32,
	  FIELD(workers),
	  .fallback = "4",
	  .min = 1,
	  .max = 64,
	  .help = "how many workers" },
	{ .name = "owner",
	  .kind = MST_OPTION_CHOICE,
	  FIELD(owner),
	  .fallback = "servers",
	  .choices = "servers|workers",
	  .help = "who owns" },
	{ .name = "slots",
	  .kind = MST_OPTION_U32,
	  FIELD(slots),
	  .fallback = "auto",
	  .min = 1,
	  .max = 4,
	  .automatic = "auto",
	  .help = "slots of a worker" },
	{ .name = "seed", .kind = MST_OPTION_U32, FIELD(seed), .help = "where chance begins" },
	{ .name = "max-commits", .kind = MST_OPTION_U64, FIELD(commits), .help = "where it ends" },
	{ .name = "memory",
	  .kind = MST_OPTION_SIZE,
	  FIELD(memory),
	  .fallback = "128K",
	  .help = "how much memory" },
	{ .name = "lease",
	  .kind = MST_OPTION_DURATION,
	  FIELD(lease_ns),
	  .fallback = "5s",
	  .min = 1e6,
	  .max = 3600e9,
	  .help = "how long silence may last, which is a sentence so long that help has to go on"
		  " in a second line below its first" },
	{ .name = "samples",
	  .kind = MST_OPTION_REAL,
	  FIELD(samples),
	  .fallback = "0.5",
	  .max = 1e18,
	  .help = "how many samples" },
	{ .name = "bias", .kind = MST_OPTION_REAL, FIELD(bias), .help = "any number" },
	{ .name = "force", .kind = MST_OPTION_FLAG, FIELD(force), .help = "mean it" },
	{ .name = "delay",
	  .kind = MST_OPTION_LIST,
	  FIELD(delay),
	  .value = "MODEL",
	  .help = ".nonsense is no request here, and \\e[0m no escape, as in `3:const:5'" },
	{ .name = "help",
	  .letter = 'h',
	  .kind = MST_OPTION_FLAG,
	  FIELD(help),
	  .typed_only = true,
	  .help = "print this" },
	{ .name = NULL },
};

void option_world_init(struct option_world *w)
{
	memset(&w->fields, 0x5a, sizeof(w->fields)); /* defaults have to be written */
	CU_ASSERT_FATAL(mst_options_init(&w->options, option_case_table, &w->fields) == 0);
}

void option_world_fini(struct option_world *w)
{
	mst_options_free(&w->options);
}

int option_world_flags(struct option_world *w, const char *const *argv, int *operand)
{
	char *args[32] = { "program" };
	int ignored, argc = 1;

	for (; argv[argc - 1] != NULL; argc++)
		args[argc] = (char *)(uintptr_t)argv[argc - 1];
	return mst_options_argv(&w->options, argc, args, operand != NULL ? operand : &ignored);
}

int option_world_text(struct option_world *w, const char *text, size_t len)
{
	struct fix_folder folder;
	char path[80];

	fix_folder_new(&folder);
	fix_folder_put_bytes(&folder, "/config", text, len);
	(void)snprintf(path, sizeof(path), "%s/config", folder.root);
	int rc = mst_options_file(&w->options, path);
	fix_folder_free(&folder);
	return rc;
}

bool option_world_says(const struct option_world *w, const char *part)
{
	if (strstr(w->options.why.text, part) != NULL)
		return true;
	fprintf(stderr, "\"%s\" is not in: %s\n", part, w->options.why.text);
	return false;
}
