/* SPDX-License-Identifier: MIT */
/*
 * Lines are flags, then comes a file. Whatever they are, they are refused in a sentence or give
 * fields that are printed as a file which is read back to the same.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/config/option.h"
#include "tests/fuzz/text.h"

struct fields {
	bool flag;
	uint32_t u32, choice;
	uint64_t u64, size, duration;
	double real;
	const char *string;
	struct mst_option_list list;
};

#define FIELD(name) .offset = offsetof(struct fields, name), .help = #name

static const struct mst_option table[] = {
	{ .name = "flag", .letter = 'f', .kind = MST_OPTION_FLAG, FIELD(flag) },
	{ .name = "u32", .letter = 'u', .kind = MST_OPTION_U32, FIELD(u32), .automatic = "auto" },
	{ .name = "u64", .kind = MST_OPTION_U64, FIELD(u64) },
	{ .name = "real", .kind = MST_OPTION_REAL, FIELD(real), .fallback = "0.5" },
	{ .name = "a-size", .kind = MST_OPTION_SIZE, FIELD(size), .fallback = "128K" },
	{ .name = "duration", .kind = MST_OPTION_DURATION, FIELD(duration), .fallback = "5s" },
	{ .name = "string", .kind = MST_OPTION_STRING, FIELD(string) },
	{ .name = "choice", .kind = MST_OPTION_CHOICE, FIELD(choice), .choices = "one|two|three" },
	{ .name = "list", .kind = MST_OPTION_LIST, FIELD(list) },
	{ .name = NULL },
};

static bool same_text(const char *a, const char *b)
{
	return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool same_fields(const struct fields *a, const struct fields *b)
{
	bool same = a->flag == b->flag && a->u32 == b->u32 && a->u64 == b->u64 &&
		    a->real == b->real && a->size == b->size && a->duration == b->duration &&
		    a->choice == b->choice && same_text(a->string, b->string) &&
		    a->list.count == b->list.count;

	for (uint32_t i = 0; same && i < a->list.count; i++)
		same = same_text(a->list.item[i], b->list.item[i]);
	return same;
}

/* 0, or a refusal with its sentence. */
static bool accepted(const struct mst_options *o, int rc)
{
	MST_ASSERT(rc == 0 || rc == -EINVAL);
	MST_ASSERT(rc == 0 || o->why.text[0] != '\0');
	return rc == 0;
}

static void print_and_read(const struct mst_options *o, struct fuzz_text *t)
{
	struct mst_options again;
	struct fields fields;
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	MST_ASSERT(f != NULL);
	mst_options_print(o, f);
	fclose(f);
	fuzz_text_write(t, text, len);
	MST_ASSERT(mst_options_init(&again, table, &fields) == 0);
	MST_ASSERT(mst_options_file(&again, t->path) == 0);
	MST_ASSERT(same_fields(o->fields, &fields));
	mst_options_free(&again);
	free(text);
}

/* libconfig 1.5 forgets the string it was at when the text breaks off; that leak is not ours. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libconfig.so";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *argv[FUZZ_LINES_MAX + 1] = { "program" };
	struct mst_options o;
	struct fields fields;
	struct fuzz_text t;
	int operand;

	fuzz_text_init(&t, data, size);
	memcpy(argv + 1, t.line, t.line_count * sizeof(argv[0]));
	int argc = 1 + (int)t.line_count;
	MST_ASSERT(mst_options_init(&o, table, &fields) == 0);
	/* an empty file is refused, and flags may stand alone */
	if ((fuzz_text_is_empty(&t) || accepted(&o, mst_options_file(&o, t.path))) &&
	    accepted(&o, mst_options_argv(&o, argc, argv, &operand))) {
		MST_ASSERT(operand >= 1 && operand <= argc);
		print_and_read(&o, &t);
	}
	mst_options_free(&o);
	fuzz_text_fini(&t);
	return 0;
}
