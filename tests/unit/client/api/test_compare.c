/* SPDX-License-Identifier: MIT */
/* muster_compare() and muster_difference(): what goes to the leader, what does not, and what it
 * says. */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "common/base/clock.h"
#include "tests/unit/client/client_case.h"
#include "tests/ut.h"

static struct mst_comparison parts, tensors; /* that the leader has heard */
static _Atomic bool is_heard;

static const struct muster_part rate = { .name = "lr", .value = "0.1", .digest = 5 };
static const uint64_t digests[] = { 11, 12, 13 };

static bool owned(struct fake_leader *f)
{
	f->welcome.owner = MUSTER_WORKERS_OWN;
	return fake_begin(f);
}

static bool stay(struct fake_leader *f)
{
	return owned(f) && fake_stay(f);
}

static bool hear_both(struct fake_leader *f)
{
	if (!owned(f) || !fake_hear(f, MST_MSG_COMPARE))
		return false;
	parts = f->message.comparison;
	if (!fake_hear(f, MST_MSG_COMPARE))
		return false;
	tensors = f->message.comparison;
	atomic_store(&is_heard, true);
	return fake_stay(f);
}

static bool say_that_it_differs(struct fake_leader *f)
{
	struct mst_message msg = { .kind = MST_MSG_DIFFERS };

	msg.differs = (struct mst_differs){
		.version = 16, .from = 2, .kernels = 1, .why = "lr: 0.1, and 0.2"
	};
	return owned(f) && fake_say(f, &msg) && fake_stay(f);
}

static bool stay_of_servers(struct fake_leader *f)
{
	return fake_begin(f) && fake_stay(f);
}

static void begin(bool (*script)(struct fake_leader *))
{
	fake_open(&client_fake, script);
	struct muster_options opt = client_options_for(client_fake.address, CLIENT_LONG_MS);
	opt.owner = MUSTER_WORKERS_OWN;
	client_handle = NULL;
	CU_ASSERT_EQUAL_FATAL(muster_open(&opt, &client_handle), 0);
	CU_ASSERT_EQUAL_FATAL(client_start(NULL, &client_outcome), 0);
}

static struct muster_comparison comparison(void)
{
	struct muster_comparison mine = MUSTER_COMPARISON;

	mine.parts = &rate;
	mine.part_count = 1;
	mine.tensors = digests;
	mine.tensor_count = 3;
	return mine;
}

static void parts_and_tensors_go_each_in_a_message(void)
{
	struct muster_comparison mine = comparison();

	mine.first = 7;
	mine.each = 2;
	mine.section = 4;
	mine.takes = mine.last = true;
	begin(hear_both);
	CU_ASSERT_EQUAL(muster_compare(client_handle, &mine), 0);
	for (unsigned ms = 0; !atomic_load(&is_heard) && ms < CLIENT_LATE_MS; ms++)
		mst_sleep_ns(MST_MS);
	client_close();
	CU_ASSERT(parts.part_count == 1 && parts.count == 0 && parts.version == 0);
	CU_ASSERT_STRING_EQUAL(parts.part[0].name, "lr");
	CU_ASSERT_STRING_EQUAL(parts.part[0].value, "0.1");
	CU_ASSERT_EQUAL(parts.part[0].digest, 5);
	CU_ASSERT(tensors.part_count == 0 && tensors.first == 7 && tensors.each == 2);
	CU_ASSERT_EQUAL(tensors.section, 4);
	CU_ASSERT_EQUAL(tensors.count, 3);
	CU_ASSERT_EQUAL(memcmp(tensors.digest, digests, sizeof(digests)), 0);
	CU_ASSERT(parts.takes && parts.last && tensors.takes && tensors.last);
}

static bool is_refused(const struct muster_comparison *mine, const char *word)
{
	return muster_compare(client_handle, mine) == -EINVAL &&
	       client_says(muster_error(client_handle), word);
}

static void what_cannot_be_compared_is_refused(void)
{
	struct muster_part unnamed = { .name = "" };
	struct muster_comparison mine = comparison();

	begin(stay);
	CU_ASSERT(is_refused(NULL, "needs a comparison"));
	mine.each = 0;
	CU_ASSERT(is_refused(&mine, "of 0 from number 0"));
	mine = comparison();
	mine.tensor_count = MUSTER_COMPARE_MAX + 1;
	CU_ASSERT(is_refused(&mine, "at most 128 digests"));
	mine = comparison();
	mine.tensors = NULL;
	CU_ASSERT(is_refused(&mine, "at most 128 digests"));
	mine = comparison();
	mine.parts = &unnamed;
	CU_ASSERT(is_refused(&mine, "part 0 needs a name"));
	mine.part_count = MUSTER_PARTS_MAX + 1;
	CU_ASSERT(is_refused(&mine, "at most 24 parts"));
	mine = comparison();
	mine.size = 4;
	CU_ASSERT(is_refused(&mine, "MUSTER_COMPARISON"));
	client_close();
}

static void nothing_is_compared_where_servers_own(void)
{
	struct muster_comparison mine = comparison();

	client_begin(stay_of_servers);
	CU_ASSERT(is_refused(&mine, "--owner workers"));
	client_close();
}

static void a_difference_is_told_once(void)
{
	struct muster_difference out = MUSTER_DIFFERENCE;
	int rc = 0;

	begin(say_that_it_differs);
	for (unsigned ms = 0; rc == 0 && ms < CLIENT_LATE_MS; ms++) {
		rc = muster_difference(client_handle, &out);
		mst_sleep_ns(rc == 0 ? MST_MS : 0);
	}
	CU_ASSERT_EQUAL(rc, 1);
	CU_ASSERT(out.version == 16 && out.from == 2 && out.kernels_differ);
	CU_ASSERT_STRING_EQUAL(out.why, "lr: 0.1, and 0.2");
	CU_ASSERT_EQUAL(muster_difference(client_handle, &out), 0);
	CU_ASSERT_EQUAL(muster_difference(client_handle, NULL), -EINVAL);
	client_close();
}

/* RFC 3720, appendix B.4: 32 bytes of zeroes. */
static void a_digest_is_that_of_all_that_came(void)
{
	static const char zeroes[32];

	CU_ASSERT_EQUAL(muster_digest(0, zeroes, 32), 0x8a9136aa);
	CU_ASSERT_EQUAL(muster_digest(muster_digest(0, zeroes, 20), zeroes, 12), 0x8a9136aa);
	CU_ASSERT_EQUAL(muster_digest(0, NULL, 0), 0);
}

static CU_TestInfo cases[] = {
	{ "parts and tensors go each in a message", parts_and_tensors_go_each_in_a_message },
	{ "what cannot be compared is refused", what_cannot_be_compared_is_refused },
	{ "nothing is compared where servers own", nothing_is_compared_where_servers_own },
	{ "a difference is told once", a_difference_is_told_once },
	{ "a digest is that of all that came", a_digest_is_that_of_all_that_came },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("client_compare", cases);
}
