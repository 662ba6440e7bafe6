/* SPDX-License-Identifier: MIT */
/* What a handle is opened with where the options leave it unset: the user's variables first, then
 * those of the launcher that is nearest to the process. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/local/settings.h"
#include "tests/ut.h"

static struct mst_settings settings;
static struct mst_reason why;

static const char *const all[] = { "MUSTER_SERVER", "MUSTER_JOB",           "MUSTER_RANK",
				   "RANK",          "OMPI_COMM_WORLD_RANK", "PMIX_RANK",
				   "PMI_RANK",      "SLURM_PROCID",         "WORLD_SIZE",
				   "MASTER_ADDR",   "MASTER_PORT",          "MUSTER_CLIP" };

static void clear(void)
{
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		unsetenv(all[i]);
}

static int read_with(int32_t rank, const char *server)
{
	struct muster_options opt = MUSTER_OPTIONS;

	opt.elems = 10;
	opt.rank = rank;
	opt.server = server;
	why.text[0] = '\0';
	return mst_settings_read(&opt, &settings, &why);
}

static int read_unset(void)
{
	return read_with(-1, NULL);
}

static void rank_is(int32_t rank, const char *from)
{
	CU_ASSERT_EQUAL(read_unset(), 0);
	CU_ASSERT_EQUAL(settings.rank, rank);
	if (from == NULL || settings.rank_from == NULL)
		CU_ASSERT_PTR_EQUAL(settings.rank_from, from)
	else
		CU_ASSERT_STRING_EQUAL(settings.rank_from, from);
}

/* ---- ranks ---- */

static void nobody_says_a_rank(void)
{
	clear();
	rank_is(-1, NULL);
}

static void each_launcher_is_understood(void)
{
	static const char *const variables[] = { "MUSTER_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK",
						 "PMI_RANK",    "SLURM_PROCID",         "RANK" };

	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		clear();
		setenv(variables[i], "7", 1);
		rank_is(7, variables[i]);
		setenv(variables[i], "0", 1);
		rank_is(0, variables[i]);
	}
	clear();
}

static void the_first_that_is_set_counts(void)
{
	/* From the last to the first. */
	static const struct {
		const char *name, *text, *from;
		int32_t rank;
	} steps[] = {
		{ "RANK", "1", "RANK", 1 },
		{ "SLURM_PROCID", "2", "SLURM_PROCID", 2 },
		{ "PMI_RANK", "3", "PMI_RANK", 3 },
		{ "PMIX_RANK", "4", "PMIX_RANK", 4 },
		{ "OMPI_COMM_WORLD_RANK", "5", "OMPI_COMM_WORLD_RANK", 5 },
		{ "WORLD_SIZE", "8", "RANK", 1 }, /* now RANK is torchrun's */
		{ "MUSTER_RANK", "6", "MUSTER_RANK", 6 },
	};

	clear();
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		setenv(steps[i].name, steps[i].text, 1);
		rank_is(steps[i].rank, steps[i].from);
	}
	setenv("MUSTER_RANK", "", 1);
	rank_is(1, "RANK");
	setenv("MUSTER_RANK", "-1", 1);
	rank_is(-1, "MUSTER_RANK");
	CU_ASSERT_EQUAL(read_with(9, NULL), 0);
	CU_ASSERT(settings.rank == 9 && settings.rank_from == NULL);
	clear();
}

static void a_size_without_a_rank_is_nobodys(void)
{
	clear();
	setenv("WORLD_SIZE", "8", 1);
	setenv("SLURM_PROCID", "2", 1);
	rank_is(2, "SLURM_PROCID");
	clear();
}

static void what_is_no_rank_names_its_variable(void)
{
	static const char *const wrong[] = { "-1", "gold", "3x", "99999999999", " " };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		clear();
		setenv("PMIX_RANK", wrong[i], 1);
		setenv("SLURM_PROCID", "2", 1);
		CU_ASSERT_EQUAL(read_unset(), -EINVAL);
		CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "PMIX_RANK is \""));
		CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "set MUSTER_RANK"));
		setenv("MUSTER_RANK", "1", 1);
		rank_is(1, "MUSTER_RANK");
	}
	clear();
}

/* ---- addresses ---- */

static void server_is(const char *server, const char *from)
{
	CU_ASSERT_EQUAL(read_unset(), 0);
	CU_ASSERT_STRING_EQUAL(settings.server, server);
	if (from == NULL || settings.server_from == NULL)
		CU_ASSERT_PTR_EQUAL(settings.server_from, from)
	else
		CU_ASSERT_STRING_EQUAL(settings.server_from, from);
}

static void the_server_is_where_torchrun_says_unless_told(void)
{
	clear();
	server_is("127.0.0.1:17077", NULL);
	setenv("MASTER_ADDR", "node7", 1);
	setenv("MASTER_PORT", "29500", 1); /* of torch's own store */
	server_is("node7:17077", "MASTER_ADDR");
	setenv("MASTER_ADDR", "fe80::1", 1);
	server_is("[fe80::1]:17077", "MASTER_ADDR");
	setenv("MASTER_ADDR", "[fe80::1]", 1);
	server_is("[fe80::1]:17077", "MASTER_ADDR");
	setenv("MUSTER_SERVER", "10.1.0.1:5", 1);
	server_is("10.1.0.1:5", NULL);
	CU_ASSERT_EQUAL(read_with(-1, "here:1"), 0);
	CU_ASSERT_STRING_EQUAL(settings.server, "here:1");
	clear();
}

static void too_long_a_name_is_refused(void)
{
	char name[2 * MST_SERVER_LEN];

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	clear();
	setenv("MASTER_ADDR", name, 1);
	CU_ASSERT_EQUAL(read_unset(), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "MASTER_ADDR"));
	clear();
}

static void clip_is(double clip, const char *variable)
{
	setenv("MUSTER_CLIP", variable, 1);
	CU_ASSERT_EQUAL(read_unset(), 0);
	CU_ASSERT_EQUAL(settings.clip, clip);
}

static void clip_is_wrong(const char *variable)
{
	setenv("MUSTER_CLIP", variable, 1);
	CU_ASSERT_EQUAL(read_unset(), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "MUSTER_CLIP is"));
}

static void a_limit_of_the_norm_is_a_number(void)
{
	struct muster_options opt = MUSTER_OPTIONS;
	static const char *const wrong[] = { "-1", "inf", "nan", "5x", "big" };

	clear();
	clip_is(0, "");
	clip_is(0, "0");
	clip_is(2.5, "2.5");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		clip_is_wrong(wrong[i]);
	opt.elems = 10;
	opt.clip = 4; /* the option counts, whatever the variable is */
	CU_ASSERT_EQUAL(mst_settings_read(&opt, &settings, &why), 0);
	CU_ASSERT_EQUAL(settings.clip, 4);
	opt.clip = -4;
	CU_ASSERT_EQUAL(mst_settings_read(&opt, &settings, &why), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "options.clip is -4"));
	clear();
}

static CU_TestInfo cases[] = {
	{ "where nobody says a rank any will do", nobody_says_a_rank },
	{ "each launcher's variable is understood", each_launcher_is_understood },
	{ "of several the first counts, the user's before all", the_first_that_is_set_counts },
	{ "WORLD_SIZE without RANK changes nothing", a_size_without_a_rank_is_nobodys },
	{ "what is no rank is an error that names the variable",
	  what_is_no_rank_names_its_variable },
	{ "the server is where torchrun says unless the user says it",
	  the_server_is_where_torchrun_says_unless_told },
	{ "a limit of the norm is a number", a_limit_of_the_norm_is_a_number },
	{ "too long an address is refused", too_long_a_name_is_refused },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("settings", cases);
}
