/* SPDX-License-Identifier: MIT */
/* muster checkpoint: which checkpoints a directory has, and whether they are in order. */
#include <errno.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/reason.h"
#include "tools/checkpoint/options.h"
#include "tools/checkpoint/stock.h"
#include "tools/command.h"
#include "tools/report.h"

static int print_help(void)
{
	(void)puts(
		"usage: muster checkpoint DIR [options]\n\n"
		"Lists the checkpoints that a job has written to a directory, the newest first,\n"
		"and says which of them are in order. Changes nothing.\n\nOptions:");
	mst_options_help(mst_checkpoint_table, stdout);
	return MST_EXIT_DONE;
}

static int write_json(const struct mst_stock *s, const char *path)
{
	json_t *doc = mst_stock_json(s);
	int rc = mst_report_write(doc, path);

	json_decref(doc);
	return rc;
}

static int tell(const struct mst_stock *s, const struct mst_checkpoint_options *o)
{
	int rc = 0;

	if (o->json == NULL || strcmp(o->json, "-") != 0)
		mst_stock_print(s, stdout);
	if (o->json != NULL)
		rc = write_json(s, o->json);
	return rc;
}

/* What is wrong is in the list, and then in one line. */
static int judge(const struct mst_stock *s)
{
	if (s->rows == 0)
		mst_error("there is no checkpoint in %s", s->dir);
	else if (s->fine < s->rows)
		mst_error("%u of the %u checkpoints in %s cannot be used", s->rows - s->fine,
			  s->rows, s->dir);
	return s->rows > 0 && s->fine == s->rows ? MST_EXIT_DONE : MST_EXIT_FAILED;
}

static int list(const char *dir, const struct mst_checkpoint_options *o)
{
	struct mst_reason why;
	struct mst_stock stock;

	if (mst_stock_take(dir, o->verify, o->tensors, &stock, &why) != 0) {
		mst_error("%s", why.text);
		return MST_EXIT_FAILED;
	}
	int rc = tell(&stock, o);
	int exit_status = judge(&stock);
	if (rc != 0)
		exit_status = mst_exit_incomplete(exit_status);
	mst_stock_free(&stock);
	return exit_status;
}

static int check_and_list(const struct mst_checkpoint_options *o,
			  const struct mst_operands *operands)
{
	struct mst_reason why;

	if (o->help)
		return print_help();
	if (operands->count == 0)
		return mst_refuse("checkpoint", "which directory? muster checkpoint DIR says it");
	if (operands->count > 1)
		return mst_refuse("checkpoint", "what is \"%.60s\"? one directory is enough",
				  operands->text[1]);
	if (mst_report_check("json", o->json, &why) != 0)
		return mst_refuse("checkpoint", "%s", why.text);
	return list(operands->text[0], o);
}

int mst_checkpoint_command(int argc, char **argv)
{
	struct mst_checkpoint_options options;
	struct mst_operands operands;
	struct mst_options parsed;

	if (mst_options_init(&parsed, mst_checkpoint_table, &options) < 0)
		return MST_EXIT_FAILED;
	int rc = mst_operands_read(&parsed, argc, argv, &operands);
	int exit_status = rc < 0 ? mst_refuse("checkpoint", "%s", parsed.why.text)
				 : check_and_list(&options, &operands);
	mst_options_free(&parsed);
	return exit_status;
}
