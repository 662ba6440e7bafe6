/* SPDX-License-Identifier: MIT */
/* The write test, over shared memory, and what is said of its result. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "tests/ut.h"
#include "tools/doctor/lane.h"
#include "tools/doctor/try.h"

static struct mst_write_side side = { .transport = &mst_shm,
				      .fabric = MST_FABRIC_DEFAULT,
				      .card = { "here", "rxe0/1", 4096 } };
static struct mst_write_report report;

#define LONG_NS (60 * MST_SECOND)
static struct mst_findings found;

static void a_loopback_tells_its_figures(void)
{
	CU_ASSERT_EQUAL(mst_write_loopback(&side, LONG_NS, &report), 0);
	CU_ASSERT_STRING_EQUAL(report.why.text, "");
	CU_ASSERT_EQUAL(report.wrong_bytes, 0);
	CU_ASSERT_TRUE(report.latency_ns > 0 && report.latency_ns < LONG_NS);
	CU_ASSERT_TRUE(report.bytes_per_s > 1e4);
	CU_ASSERT_STRING_EQUAL(report.peer.host, "here");
	CU_ASSERT_EQUAL(report.peer.mtu, 4096);
}

static struct {
	uint32_t count;
	uint64_t wrong;
	char host[MST_WRITE_NAME_LEN];
} seen;

static void see(void *ctx, const struct mst_write_card *who, uint64_t wrong_bytes)
{
	(void)ctx;
	seen.count++;
	seen.wrong = wrong_bytes;
	memcpy(seen.host, who->host, sizeof(seen.host));
}

static void *serve(void *peer)
{
	mst_write_peer_serve(peer, MST_NEVER, see, NULL);
	return NULL;
}

static struct mst_write_peer *peer;
static pthread_t thread;

static void begin_peer(void)
{
	CU_ASSERT_EQUAL_FATAL(mst_write_peer_open(&side, &peer, UT_UNREAD), 0);
	memset(&seen, 0, sizeof(seen)); /* which is the thread's from then on */
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, serve, peer), 0);
}

static void end_peer(void)
{
	mst_write_peer_stop(peer);
	CU_ASSERT_EQUAL(pthread_join(thread, NULL), 0);
	mst_write_peer_close(peer);
}

static void a_peer_sees_who_wrote(void)
{
	begin_peer();
	for (int i = 0; i < 2; i++)
		CU_ASSERT_EQUAL(
			mst_write_test(&side, mst_write_peer_address(peer), LONG_NS, &report), 0);
	end_peer();
	CU_ASSERT_EQUAL(seen.count, 2);
	CU_ASSERT_EQUAL(seen.wrong, 0);
	CU_ASSERT_STRING_EQUAL(seen.host, "here");
}

static void a_peer_stays_as_long_as_it_is_told_to(void)
{
	uint64_t begin = mst_now_ns();

	CU_ASSERT_EQUAL_FATAL(mst_write_peer_open(&side, &peer, UT_UNREAD), 0);
	mst_write_peer_serve(peer, begin + 50 * MST_MS, NULL, NULL);
	CU_ASSERT_TRUE(mst_now_ns() - begin >= 50 * MST_MS);
	mst_write_peer_close(peer);
	mst_write_peer_close(NULL);
}

static void wrong_bytes_are_counted(void)
{
	uint8_t *data = malloc(MST_WRITE_BYTES);

	CU_ASSERT_PTR_NOT_NULL_FATAL(data);
	mst_write_fill(data, 7);
	CU_ASSERT_EQUAL(mst_write_count_wrong(data, 7), 0);
	data[0] ^= 1;
	data[4095] ^= 0x80;
	data[MST_WRITE_BYTES - 1] ^= 0xff;
	CU_ASSERT_EQUAL(mst_write_count_wrong(data, 7), 3);
	CU_ASSERT_TRUE(mst_write_count_wrong(data, 8) > MST_WRITE_BYTES / 2);
	free(data);
}

/* A connector that does as it likes. */
static struct mst_net *net;

static int dial(const char *token, struct mst_link **link)
{
	struct mst_dial how = { .address = mst_write_peer_address(peer),
				.lanes = mst_write_lanes(),
				.timeout_ns = LONG_NS };

	memcpy(how.token, token, sizeof(how.token));
	return mst_shm.dial(net, &how, link, UT_UNREAD);
}

static void a_stranger_is_sent_away(void)
{
	struct mst_link *link = NULL;

	begin_peer();
	CU_ASSERT_EQUAL_FATAL(mst_write_net(&side, 1, &net, UT_UNREAD), 0);
	CU_ASSERT_EQUAL(dial("not the token...", &link), -EACCES);
	mst_shm.net_close(net);
	end_peer();
}

static void a_peer_counts_what_came_wrong_and_closes_over_a_link(void)
{
	struct mst_write_record record = { .magic = MST_WRITE_MAGIC, .seed = 3 };
	struct mst_put put = {
		.src = &record, .bytes = sizeof(record), .notify = true, .imm = MST_WRITE_LOOK
	};
	struct mst_net_event ev;
	struct mst_link *link = NULL;

	begin_peer();
	CU_ASSERT_EQUAL_FATAL(mst_write_net(&side, 1, &net, UT_UNREAD), 0);
	CU_ASSERT_EQUAL_FATAL(dial(MST_WRITE_TOKEN, &link), 0);
	mst_write_fill((uint8_t *)link->remote_mapping + MST_WRITE_DATA_AT, 3);
	((uint8_t *)link->remote_mapping)[MST_WRITE_DATA_AT + 9] ^= 1;
	CU_ASSERT_EQUAL(mst_shm.put(link, &put), 1);
	while (mst_shm.poll(net, &ev, 1) == 0)
		mst_shm.wait(net, MST_SECOND);
	CU_ASSERT_EQUAL(ev.kind, MST_ARRIVED);
	memcpy(&record, link->inbound, sizeof(record));
	CU_ASSERT_EQUAL(record.wrong, 1);
	end_peer();
	CU_ASSERT_EQUAL(seen.wrong, 1);
	mst_shm.detach(link);
	mst_shm.link_free(link);
	mst_shm.net_close(net);
}

static void a_peer_that_is_gone_is_told(void)
{
	char address[MST_ADDRESS_LEN];

	CU_ASSERT_EQUAL_FATAL(mst_write_peer_open(&side, &peer, UT_UNREAD), 0);
	memcpy(address, mst_write_peer_address(peer), sizeof(address));
	mst_write_peer_close(peer);
	CU_ASSERT_EQUAL(mst_write_test(&side, address, LONG_NS, &report), -ECONNREFUSED);
	CU_ASSERT_STRING_NOT_EQUAL(report.why.text, "");
}

static void a_peer_that_is_silent_is_not_waited_for(void)
{
	uint64_t begin = mst_now_ns();

	CU_ASSERT_EQUAL_FATAL(mst_write_peer_open(&side, &peer, UT_UNREAD), 0);
	CU_ASSERT_EQUAL(mst_write_test(&side, mst_write_peer_address(peer), 100 * MST_MS, &report),
			-ETIMEDOUT);
	CU_ASSERT_TRUE(mst_now_ns() - begin < LONG_NS);
	CU_ASSERT_STRING_NOT_EQUAL(report.why.text, "");
	mst_write_peer_close(peer);
}

/* What is said of a test. */
static const struct mst_finding *say(const struct mst_doctor_try *t)
{
	memset(&found, 0, sizeof(found));
	mst_doctor_judge_try(t, &found);
	return &found.item[0];
}

static void a_test_that_went_well_tells_its_figures(void)
{
	struct mst_doctor_try t = { .check = "peer", .subject = "verbs:10.0.0.2:4000" };

	t.report = (struct mst_write_report){ .latency_ns = 2500, .bytes_per_s = 1048576.0 * 500 };
	t.report.peer = (struct mst_write_card){ "there", "mlx5_0/1", 4096 };
	t.own = side.card;
	const struct mst_finding *f = say(&t);
	CU_ASSERT_EQUAL(found.count, 1);
	CU_ASSERT_EQUAL(f->level, MST_FINDING_OK);
	CU_ASSERT_STRING_EQUAL(f->subject, "verbs:10.0.0.2:4000");
	CU_ASSERT_STRING_EQUAL(f->found, "wrote 1.00 MiB to there mlx5_0/1: every byte right, "
					 "2.50 us one way, 500 MiB/s");
}

static void mtus_that_differ_warn(void)
{
	struct mst_doctor_try t = { .check = "peer", .subject = "x" };

	t.own = side.card;
	t.report.peer = (struct mst_write_card){ "there", "mlx5_0/1", 1024 };
	(void)say(&t);
	CU_ASSERT_EQUAL_FATAL(found.count, 2);
	CU_ASSERT_EQUAL(found.item[1].level, MST_FINDING_WARNING);
	CU_ASSERT_STRING_EQUAL(found.item[1].found,
			       "4096 bytes at rxe0/1 here, 1024 at mlx5_0/1 of there");
	CU_ASSERT_STRING_NOT_EQUAL(found.item[1].fix, "");
	t.report.peer.mtu = 0; /* not told */
	(void)say(&t);
	CU_ASSERT_EQUAL(found.count, 1);
}

static void a_test_that_failed_says_why_and_what_to_do(void)
{
	static const struct {
		const char *check;
		int error;
		const char *fix;
	} row[] = {
		{ "shm", -ENOMEM, "--shm-size" },    { "write", -EIO, "ibv_devinfo -d rxe0" },
		{ "write", -ENOMEM, "memlock" },     { "peer", -ETIMEDOUT, "UDP port 4791" },
		{ "peer", -EBADMSG, "no gradient" },
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct mst_doctor_try t = { .check = row[i].check,
					    .subject = "rxe0/1",
					    .error = row[i].error,
					    .report = { .why = { "the reason" } } };
		const struct mst_finding *f = say(&t);
		CU_ASSERT_EQUAL(f->level, MST_FINDING_FAIL);
		CU_ASSERT_STRING_EQUAL(f->cause, "the reason");
		CU_ASSERT_PTR_NOT_NULL(strstr(f->fix, row[i].fix));
	}
}

static CU_TestInfo cases[] = {
	{ "a loopback tells its figures", a_loopback_tells_its_figures },
	{ "a peer sees who wrote", a_peer_sees_who_wrote },
	{ "a peer stays as long as it is told to", a_peer_stays_as_long_as_it_is_told_to },
	{ "wrong bytes are counted", wrong_bytes_are_counted },
	{ "a stranger is sent away", a_stranger_is_sent_away },
	{ "a peer counts what came wrong, and closes over a link",
	  a_peer_counts_what_came_wrong_and_closes_over_a_link },
	{ "a peer that is gone is told", a_peer_that_is_gone_is_told },
	{ "a peer that is silent is not waited for", a_peer_that_is_silent_is_not_waited_for },
	{ "a test that went well tells its figures", a_test_that_went_well_tells_its_figures },
	{ "MTUs that differ warn", mtus_that_differ_warn },
	{ "a test that failed says why and what to do",
	  a_test_that_failed_says_why_and_what_to_do },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("doctor_write", cases);
}
