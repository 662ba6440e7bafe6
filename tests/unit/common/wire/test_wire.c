/* SPDX-License-Identifier: MIT */
/* The wire: frames survive the way there and back. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/wire/message.h"
#include "tests/ut.h"

#define ROOM (MST_FRAME_HEADER + MST_FRAME_BODY_MAX)

static uint8_t frame[ROOM], again[ROOM];
static struct mst_message sent, got;
static uint8_t piece[1000];

/* ---- a full message of every kind ---- */

static const struct mst_origins two_origins = {
	2, { { { 0xfd, [15] = 1 } }, { { [10] = 0xff, 0xff, 10, 0, 0, 2 } } }
};

static void make_hello(void)
{
	sent.hello = (struct mst_hello){ .job = "mnist",
					 .rank = -1,
					 .elems = 79510,
					 .type = MUSTER_BF16,
					 .result_type = MUSTER_F32,
					 .owner = 1,
					 .pid = 4711,
					 .comes_back = 1,
					 .table = { 6, 2, 99, 1, UINT64_MAX, 5 },
					 .origins = two_origins };
}

static void make_welcome(void)
{
	sent.welcome = (struct mst_welcome){
		.job = "mnist",
		.policy = "backup:4",
		.rank = 3,
		.incarnation = 2,
		.workers = 5,
		.slots = 2,
		.elems = 79510,
		.owner = MUSTER_WORKERS_OWN,
		.buffers = 20,
		.lease_ns = 5000000000,
		.server_lease_ns = 15000000000,
		.patience_ns = 300000000000,
		.state_max = UINT64_C(1) << 33,
		.server_count = 2,
		.server = { { "/muster-1-abc", { 1, 2, 3, [15] = 4 }, 0, 65536 },
			    { "verbs:10.0.0.1:4791", { 9, [15] = 0xff }, 65536, 13974 } },
		.path = { .ack_timeout = 16,
			  .retries = 3,
			  .traffic_class = 106,
			  .service_level = 5,
			  .pkey = -1 },
		.fate_count = 2,
		.fate = { { 7, 2, MUSTER_COUNTED, 6 }, { 8, 2, MUSTER_CANCELLED, 0 } },
	};
}

static void make_status(void)
{
	sent.status = (struct mst_status){
		.job = "mnist",
		.policy = "bsp",
		.state = MST_JOB_FINISHED,
		.workers = 5,
		.live = 4,
		.version = 100,
		.samples = 32000,
		.loss = 0.25,
		.elapsed_ns = 1,
		.step_mean_ns = 2,
		.step_p50_ns = 3,
		.step_p99_ns = 4,
		.step_max_ns = 5,
		.recent_step_ns = 7,
		.norm_limit = 10,
		.norm_median = 0.5,
		.saved_told = 1,
		.saved_ns = 6,
		.state_max = 1000,
		.state_too_large = 1001,
		.state_of = 4,
		.why = "100 commits",
		.policy_now = "ksync:3",
		.policy_why = "loss 2.3 -> 0.57, 4 live workers",
		.next_policy = "async",
		.next_since = 102,
		.policy_count = 2,
		.under = { { "kasync:3", 1, 40, 8, 9, 10, 11, 12, 13, 14, 15, 0 },
			   { "backup:4", 41, 60, 1, 2, 3, 4, 5, 6, 7, 8, 9 } },
		.server_count = 2,
		.server = { { MST_SERVER_READY, 0, 4096, "/muster-1-abc" },
			    { MST_SERVER_GONE, 4096, 77, "" } },
		.metric_count = 2,
		.metric = { { { "accuracy", 0.975, 90 }, 0, 9 },
			    { { "test_loss", 0.125, 80 }, 3, 1 } },
		.rank_count = 2
	};
}

static void make_ranks(void)
{
	sent.ranks.count = 2;
	sent.ranks.row[0] = (struct mst_status_rank){ .rank = 0, .counted = 9, .ready_mean_ns = 1 };
	sent.ranks.row[1] = (struct mst_status_rank){ .rank = 1,
						      .incarnation = 3,
						      .state = MST_RANK_LOST,
						      .awaited = 1,
						      .rests = 1,
						      .held = 1,
						      .counted = 2,
						      .late = 3,
						      .stale = 4,
						      .cancelled = 5,
						      .refused = 6,
						      .outliers = 12,
						      .damaged = 13,
						      .samples_counted = 20,
						      .samples_pushed = 450.5,
						      .norm = 1.5,
						      .norm_max = 2.5,
						      .given_up = 7,
						      .ready_mean_ns = 8,
						      .ready_max_ns = 9,
						      .behind_mean_ns = 10,
						      .staleness_mean = 0.5,
						      .staleness_p99 = 11,
						      .recent_came = 12,
						      .recent_missed = 13,
						      .recent_given_up = 14,
						      .recent_ready_ns = 15,
						      .recent_behind_ns = 16,
						      .busy_ns = 17,
						      .waiting_ns = 18,
						      .heard_ns = 19,
						      .handed_in_ns = UINT64_MAX,
						      .behind_by = 20 };
}

static void make_appoint(void)
{
	sent.appoint = (struct mst_appoint){
		.job = "mnist",
		.index = 2,
		.servers = MST_SERVERS_MAX,
		.elems = 79510,
		.first = 8192,
		.count = 4096,
		.type = MUSTER_BF16,
		.result_type = MUSTER_F16,
		.owner = MUSTER_WORKERS_OWN,
		.workers = 5,
		.slots = 2,
		.buffers = 20,
		.entries = 15,
		.group = 8,
		.partials = 3,
		.repeats = 1,
		.optimizer = "sgd",
		.averages = 1,
		.distances = 1,
		.parameter_count = 2,
		.parameter = { 0.125, 0.5 },
		.table = { 6, 2, 99, 1, 4, UINT64_MAX },
	};
	struct mst_appoint *a = &sent.appoint;

	a->lease_ns = 1, a->patience_ns = 2;
	a->server_lease_ns = 3;
	a->path = (struct mst_path){ 31, 6, 104, 15, -1 };
	a->token[15] = 8;
	memcpy(a->address, "/muster-1-abc", sizeof("/muster-1-abc"));
}

static void make_between_servers(enum mst_message_kind kind)
{
	if (kind == MST_MSG_SERVE)
		sent.serve = (struct mst_serve){ "mnist", "shm", 4711, two_origins };
	else if (kind == MST_MSG_APPOINT)
		make_appoint();
	else if (kind == MST_MSG_READY)
		memcpy(sent.listener, "/muster-2-def", sizeof("/muster-2-def"));
	else if (kind == MST_MSG_EXPECT)
		sent.expect = (struct mst_expect){ 3, 2, { 1, [15] = 2 }, two_origins };
	else if (kind == MST_MSG_FORGET)
		sent.expect = (struct mst_expect){ .rank = 3, .incarnation = 2 };
	else if (kind == MST_MSG_RELINK)
		sent.token[15] = 0xff;
	else if (kind == MST_MSG_TENSORS)
		sent.piece = (struct mst_tensor_piece){
			7, 9, 2, { { "fc1.weight", 4, 1, 0.5f }, { "", 9, 0, 1 } }
		};
	else if (kind == MST_MSG_BEAT)
		sent.beat = (struct mst_beat){ 2, { { 12345 }, { UINT64_MAX } } };
}

static void make(enum mst_message_kind kind)
{
	memset(&sent, 0, sizeof(sent));
	sent.kind = kind;
	if (kind == MST_MSG_HELLO)
		make_hello();
	else if (kind == MST_MSG_WELCOME)
		make_welcome();
	else if (kind == MST_MSG_ERROR)
		sent.error = (struct mst_error_message){ -ENOSPC, "all 5 ranks are taken" };
	else if (kind == MST_MSG_START)
		sent.offers = 1;
	else if (kind == MST_MSG_SEND_STATE)
		sent.wanted = (struct mst_wanted){ 1, 1 };
	else if (kind == MST_MSG_STATE)
		sent.state = (struct mst_state_piece){ 4096, 8192, sizeof(piece), piece };
	else if (kind == MST_MSG_LEAVE)
		sent.seq = UINT64_C(0x123456789abcdef);
	else if (kind == MST_MSG_FINISH || kind == MST_MSG_FINISHED || kind == MST_MSG_DONE ||
		 kind == MST_MSG_END_JOB)
		memcpy(sent.why, "accuracy reached", sizeof("accuracy reached"));
	else if (kind == MST_MSG_POLICY)
		sent.change = (struct mst_policy_change){ "backup:4", 1 };
	else if (kind == MST_MSG_REST)
		sent.rest = (struct mst_rest){ 3, 1 };
	else if (kind == MST_MSG_EVICT)
		sent.evicted = 3;
	else if (kind == MST_MSG_REPORT)
		sent.metric = (struct mst_metric){ "accuracy", -0.5, UINT64_MAX };
	else if (kind == MST_MSG_BEHIND || kind == MST_MSG_STATE_WANTED || kind == MST_MSG_TOOK ||
		 kind == MST_MSG_ASK_AVERAGE)
		sent.number = UINT64_C(0xfedcba9876543210);
	else if (kind == MST_MSG_GIVE || kind == MST_MSG_TAKE || kind == MST_MSG_AVERAGE)
		sent.handed = (struct mst_handed){ { 4096, 8192, sizeof(piece), piece }, 3, 17, 5 };
	else if (kind == MST_MSG_FETCH)
		sent.fetch = (struct mst_fetch){ 3, 4096, UINT64_C(1) << 33 };
	else if (kind == MST_MSG_ASK_STATUS)
		sent.watch = 1;
	else if (kind == MST_MSG_STATUS)
		make_status();
	else if (kind == MST_MSG_STATUS_RANKS)
		make_ranks();
	else
		make_between_servers(kind);
}

static size_t encode(enum mst_message_kind kind)
{
	make(kind);
	int64_t length = mst_message_encode(&sent, frame, sizeof(frame));
	CU_ASSERT_FATAL(length >= MST_FRAME_HEADER);
	return (size_t)length;
}

static int decode(size_t length)
{
	memset(&got, 0, sizeof(got));
	return mst_message_decode(frame, length, &got);
}

#define EACH_KIND(kind)                                                                            \
	enum mst_message_kind kind = MST_MSG_HELLO;                                                \
	kind <= MST_MSG_FETCH;                                                                     \
	kind++

/* ---- promises ---- */

static void every_kind_comes_back(void)
{
	for (EACH_KIND(kind)) {
		size_t length = encode(kind);
		CU_ASSERT_EQUAL(mst_frame_length(frame, length, NULL), (int64_t)length);
		CU_ASSERT_EQUAL(decode(length), 0);
		CU_ASSERT_EQUAL(got.kind, kind);
		if (kind == MST_MSG_STATE) {
			CU_ASSERT_EQUAL(memcmp(got.state.data, piece, sizeof(piece)), 0);
			got.state.data = piece;
		}
		if (kind == MST_MSG_GIVE || kind == MST_MSG_TAKE || kind == MST_MSG_AVERAGE) {
			CU_ASSERT_EQUAL(memcmp(got.handed.piece.data, piece, sizeof(piece)), 0);
			got.handed.piece.data = piece;
		}
		CU_ASSERT_EQUAL(memcmp(&got, &sent, sizeof(sent)), 0);
	}
}

static void every_truncation_is_refused(void)
{
	for (EACH_KIND(kind)) {
		size_t length = encode(kind);
		for (size_t cut = 0; cut < length; cut++) {
			/* Cut as it comes, and cut with a header that agrees with the cut. */
			uint8_t *exact = malloc(cut > 0 ? cut : 1); /* ASan looks behind it */
			memcpy(exact, frame, cut);
			CU_ASSERT_EQUAL(mst_message_decode(exact, cut, &got), -EPROTO);
			if (cut >= MST_FRAME_HEADER) {
				uint32_t body = (uint32_t)(cut - MST_FRAME_HEADER);
				memcpy(exact + 8, &body, sizeof(body));
				CU_ASSERT_EQUAL(mst_message_decode(exact, cut, &got), -EPROTO);
			}
			free(exact);
		}
	}
}

static void a_byte_too_many_is_refused(void)
{
	for (EACH_KIND(kind)) {
		size_t length = encode(kind);
		uint32_t body = (uint32_t)(length + 1 - MST_FRAME_HEADER);
		CU_ASSERT_EQUAL(mst_message_decode(frame, length + 1, &got), -EPROTO);
		memcpy(frame + 8, &body, sizeof(body));
		frame[length] = 0;
		CU_ASSERT_EQUAL(mst_message_decode(frame, length + 1, &got), -EPROTO);
	}
}

static void too_small_a_buffer_is_refused(void)
{
	for (EACH_KIND(kind)) {
		size_t length = encode(kind);
		for (size_t room = 0; room < length; room++)
			CU_ASSERT_EQUAL(mst_message_encode(&sent, again, room), -ENOSPC);
		CU_ASSERT_EQUAL(mst_message_encode(&sent, again, length), (int64_t)length);
		CU_ASSERT_EQUAL(memcmp(frame, again, length), 0);
	}
}

static void a_stranger_is_known_by_the_first_byte(void)
{
	uint32_t protocol = 99;

	CU_ASSERT_EQUAL(mst_frame_length("HTTP/1.1 400 Bad", 1, &protocol), -EPROTO);
	CU_ASSERT_EQUAL(protocol, 0);
	CU_ASSERT_EQUAL(mst_frame_length("mst", 3, &protocol), 0);
	CU_ASSERT_EQUAL(mst_frame_length("msT", 3, &protocol), -EPROTO);
}

static void another_protocol_is_named(void)
{
	uint32_t protocol = 0;
	size_t length = encode(MST_MSG_HEARTBEAT);

	frame[4] = 99;
	CU_ASSERT_EQUAL(mst_frame_length(frame, length, &protocol), -EPROTO);
	CU_ASSERT_EQUAL(protocol, 99);
	CU_ASSERT_EQUAL(decode(length), -EPROTO);
}

static void a_frame_too_long_is_refused(void)
{
	uint32_t body = MST_FRAME_BODY_MAX;

	encode(MST_MSG_HEARTBEAT);
	memcpy(frame + 8, &body, sizeof(body));
	CU_ASSERT_EQUAL(mst_frame_length(frame, 12, NULL), (int64_t)ROOM);
	body++;
	memcpy(frame + 8, &body, sizeof(body));
	CU_ASSERT_EQUAL(mst_frame_length(frame, 12, NULL), -EMSGSIZE);
}

static void a_length_is_told_from_the_header_alone(void)
{
	size_t length = encode(MST_MSG_WELCOME);

	CU_ASSERT_EQUAL(mst_frame_length(frame, MST_FRAME_HEADER - 1, NULL), 0);
	CU_ASSERT_EQUAL(mst_frame_length(frame, MST_FRAME_HEADER, NULL), (int64_t)length);
}

static void an_unknown_kind_is_refused(void)
{
	size_t length = encode(MST_MSG_HEARTBEAT);

	frame[6] = 0;
	CU_ASSERT_EQUAL(decode(length), -EPROTO);
	frame[6] = MST_MSG_FETCH + 1;
	CU_ASSERT_EQUAL(decode(length), -EPROTO);
	frame[7] = 0xff;
	CU_ASSERT_EQUAL(decode(length), -EPROTO);
}

/* In hello, what follows the job's name: rank, elems, then the enums. */
static size_t hello_enum(unsigned which)
{
	return MST_FRAME_HEADER + 2 + strlen("mnist") + 4 + 8 + 4 * which;
}

static void an_enum_out_of_range_is_refused(void)
{
	static const uint8_t past[] = { MUSTER_F16 + 1, MUSTER_F16 + 1, MUSTER_WORKERS_OWN + 1 };

	for (unsigned i = 0; i < 3; i++) {
		size_t length = encode(MST_MSG_HELLO);
		frame[hello_enum(i)] = past[i];
		CU_ASSERT_EQUAL(decode(length), -EPROTO);
		frame[hello_enum(i)] = 0;
		frame[hello_enum(i) + 3] = 0x80;
		CU_ASSERT_EQUAL(decode(length), -EPROTO);
	}
}

/* In the welcome, behind the last server's token, whose last byte is the only 0xff before them, and
 * its part. */
static uint8_t *welcome_fabric(void)
{
	encode(MST_MSG_WELCOME);
	return (uint8_t *)memchr(frame + MST_FRAME_HEADER, 0xff, ROOM - MST_FRAME_HEADER) + 1 + 16;
}

static void a_fabric_that_cannot_be_is_refused(void)
{
	static const uint32_t past[] = { 32, 7, 256, 16 };

	for (unsigned i = 0; i < sizeof(past) / sizeof(past[0]); i++) {
		size_t length = encode(MST_MSG_WELCOME);
		memcpy(welcome_fabric() + 4 * i, &past[i], sizeof(past[i]));
		CU_ASSERT_EQUAL(decode(length), -EPROTO);
		uint32_t most = past[i] - 1;
		memcpy(welcome_fabric() + 4 * i, &most, sizeof(most));
		CU_ASSERT_EQUAL(decode(length), 0);
	}
}

static void a_text_with_a_nul_is_refused(void)
{
	size_t length = encode(MST_MSG_HELLO);

	frame[MST_FRAME_HEADER + 2 + 1] = 0;
	CU_ASSERT_EQUAL(decode(length), -EPROTO);
}

/* A FINISH whose text has @text_len bytes. Return: the frame's length. */
static size_t finish_of(uint16_t text_len)
{
	uint32_t body = 2u + text_len;

	encode(MST_MSG_FINISH);
	memcpy(frame + 8, &body, sizeof(body));
	memcpy(frame + MST_FRAME_HEADER, &text_len, sizeof(text_len));
	memset(frame + MST_FRAME_HEADER + 2, 'x', text_len);
	return MST_FRAME_HEADER + body;
}

static void a_text_without_room_for_its_nul_is_refused(void)
{
	CU_ASSERT_EQUAL(decode(finish_of(MST_REASON_LEN - 1)), 0);
	CU_ASSERT_EQUAL(strlen(got.why), MST_REASON_LEN - 1);
	CU_ASSERT_EQUAL(decode(finish_of(MST_REASON_LEN)), -EPROTO);
	CU_ASSERT_EQUAL(decode(finish_of(UINT16_MAX)), -EPROTO);
}

/* Each kind's texts in `got`; NULL ends them. */
static void texts_of(enum mst_message_kind kind, char *text[10])
{
	memset(text, 0, 10 * sizeof(text[0]));
	if (kind == MST_MSG_HELLO)
		text[0] = got.hello.job;
	else if (kind == MST_MSG_WELCOME)
		text[0] = got.welcome.job, text[1] = got.welcome.policy,
		text[2] = got.welcome.server[0].address, text[3] = got.welcome.server[1].address;
	else if (kind == MST_MSG_ERROR)
		text[0] = got.error.reason;
	else if (kind == MST_MSG_FINISH || kind == MST_MSG_FINISHED || kind == MST_MSG_DONE)
		text[0] = got.why;
	else if (kind == MST_MSG_POLICY)
		text[0] = got.change.policy;
	else if (kind == MST_MSG_REPORT)
		text[0] = got.metric.name;
	else if (kind == MST_MSG_STATUS)
		text[0] = got.status.job, text[1] = got.status.policy, text[2] = got.status.why,
		text[3] = got.status.server[0].listener, text[4] = got.status.next_policy,
		text[5] = got.status.under[0].policy, text[6] = got.status.policy_now,
		text[7] = got.status.policy_why, text[8] = got.status.metric[1].newest.name;
	else if (kind == MST_MSG_SERVE)
		text[0] = got.serve.job, text[1] = got.serve.scheme;
	else if (kind == MST_MSG_APPOINT)
		text[0] = got.appoint.job, text[1] = got.appoint.address;
	else if (kind == MST_MSG_READY)
		text[0] = got.listener;
}

/* A frame of @kind in which the text that reads @was begins with bytes that are not clean. */
static size_t encode_spoilt(enum mst_message_kind kind, const char *was)
{
	size_t length = encode(kind);
	uint8_t *at = memmem(frame + MST_FRAME_HEADER, length - MST_FRAME_HEADER, was, strlen(was));

	CU_ASSERT_FATAL(at != NULL && strlen(was) >= 3);
	memcpy(at, "\033\xff\n", 3);
	return length;
}

static void every_text_is_clean_when_decoded(void)
{
	char *text[10];

	for (EACH_KIND(kind)) {
		CU_ASSERT_EQUAL(decode(encode(kind)), 0);
		texts_of(kind, text);
		for (int i = 0; text[i] != NULL; i++) {
			CU_ASSERT_EQUAL(decode(encode_spoilt(kind, text[i])), 0);
			CU_ASSERT_EQUAL(strncmp(text[i], "???", 3), 0);
			CU_ASSERT_EQUAL(decode(encode(kind)), 0);
		}
	}
}

static void an_error_is_always_a_negative_errno(void)
{
	static const int32_t bad[] = { 0, 1, EINVAL, -4096, INT32_MIN };
	size_t length = encode(MST_MSG_ERROR);

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		memcpy(frame + MST_FRAME_HEADER, &bad[i], sizeof(bad[i]));
		CU_ASSERT_EQUAL(decode(length), -EPROTO);
	}
}

static void more_rows_than_there_is_room_for_are_refused(void)
{
	size_t length = encode(MST_MSG_STATUS_RANKS);
	uint32_t count = MST_STATUS_RANKS + 1;

	memcpy(frame + MST_FRAME_HEADER, &count, sizeof(count));
	CU_ASSERT_EQUAL(decode(length), -EPROTO);
	count = UINT32_MAX;
	memcpy(frame + MST_FRAME_HEADER, &count, sizeof(count));
	CU_ASSERT_EQUAL(decode(length), -EPROTO);
}

/* Whole in all but their number. */
static void one_row_more_than_there_is_room_for_is_refused(void)
{
	make(MST_MSG_STATUS_RANKS);
	sent.ranks.count = MST_STATUS_RANKS;
	int64_t full = mst_message_encode(&sent, frame, sizeof(frame));
	size_t rows = (size_t)full - MST_FRAME_HEADER - sizeof(uint32_t);
	size_t length = (size_t)full + rows / MST_STATUS_RANKS;
	uint32_t count = MST_STATUS_RANKS + 1, body = (uint32_t)(length - MST_FRAME_HEADER);

	memset(frame + full, 0, rows / MST_STATUS_RANKS);
	memcpy(frame + 8, &body, sizeof(body));
	memcpy(frame + MST_FRAME_HEADER, &count, sizeof(count));
	CU_ASSERT_EQUAL(decode(length), -EPROTO);
}

static void as_many_rows_as_fit_come_back(void)
{
	make(MST_MSG_STATUS_RANKS);
	sent.ranks.count = MST_STATUS_RANKS;
	sent.ranks.row[MST_STATUS_RANKS - 1].counted = 77;
	int64_t length = mst_message_encode(&sent, frame, sizeof(frame));

	CU_ASSERT_FATAL(length > 0);
	CU_ASSERT_EQUAL(decode((size_t)length), 0);
	CU_ASSERT_EQUAL(got.ranks.row[MST_STATUS_RANKS - 1].counted, 77);
}

/* The last field of those who announce addresses. */
static void more_addresses_than_fit_are_refused(void)
{
	static const enum mst_message_kind kinds[] = { MST_MSG_HELLO, MST_MSG_SERVE,
						       MST_MSG_EXPECT };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		size_t at = encode(kinds[i]) - 2 * sizeof(struct mst_origin) - sizeof(uint32_t);
		for (uint32_t count = MST_ORIGINS_MAX + 1; count >= MST_ORIGINS_MAX; count--) {
			size_t rows = count * sizeof(struct mst_origin);
			uint32_t body = (uint32_t)(at + sizeof(count) + rows - MST_FRAME_HEADER);
			memcpy(frame + 8, &body, sizeof(body));
			memcpy(frame + at, &count, sizeof(count));
			memset(frame + at + sizeof(count), 7, rows);
			CU_ASSERT_EQUAL(decode(MST_FRAME_HEADER + body),
					count > MST_ORIGINS_MAX ? -EPROTO : 0);
		}
	}
	CU_ASSERT_EQUAL(got.expect.origins.at[MST_ORIGINS_MAX - 1].address[15], 7);
}

static int decode_piece(uint64_t offset, uint64_t total)
{
	size_t length = encode(MST_MSG_STATE);

	memcpy(frame + MST_FRAME_HEADER, &offset, sizeof(offset));
	memcpy(frame + MST_FRAME_HEADER + 8, &total, sizeof(total));
	return decode(length);
}

static void a_piece_outside_its_whole_is_refused(void)
{
	CU_ASSERT_EQUAL(decode_piece(0, sizeof(piece)), 0);
	CU_ASSERT_EQUAL(decode_piece(1, sizeof(piece)), -EPROTO);
	CU_ASSERT_EQUAL(decode_piece(0, sizeof(piece) - 1), -EPROTO);
	CU_ASSERT_EQUAL(decode_piece(UINT64_MAX, UINT64_MAX), -EPROTO);
	CU_ASSERT_EQUAL(decode_piece(UINT64_MAX - 500, 8192), -EPROTO);
}

static void a_piece_is_no_longer_than_a_chunk(void)
{
	static char long_piece[MST_STATE_CHUNK + 1];
	uint32_t length = MST_STATE_CHUNK;

	make(MST_MSG_STATE);
	sent.state = (struct mst_state_piece){ 0, sizeof(long_piece), length, long_piece };
	CU_ASSERT_FATAL(mst_message_encode(&sent, frame, sizeof(frame)) > 0);
	CU_ASSERT_EQUAL(decode((size_t)mst_frame_length(frame, sizeof(frame), NULL)), 0);
	length++;
	memcpy(frame + MST_FRAME_HEADER + 16, &length, sizeof(length));
	length += 20; /* of the body: with offset, total and length */
	memcpy(frame + 8, &length, sizeof(length));
	CU_ASSERT_EQUAL(decode(MST_FRAME_HEADER + length), -EPROTO);
}

static void a_loss_nobody_told_stays_a_nan(void)
{
	make(MST_MSG_STATUS);
	sent.status.loss = NAN;
	int64_t length = mst_message_encode(&sent, frame, sizeof(frame));

	CU_ASSERT_EQUAL(decode((size_t)length), 0);
	CU_ASSERT(isnan(got.status.loss));
}

static CU_TestInfo cases[] = {
	{ "a message of every kind comes back as it was", every_kind_comes_back },
	{ "every truncation of every message is refused", every_truncation_is_refused },
	{ "a byte too many is refused", a_byte_too_many_is_refused },
	{ "a buffer that is too small is -ENOSPC, whatever is missing",
	  too_small_a_buffer_is_refused },
	{ "a stranger is known by the first wrong byte", a_stranger_is_known_by_the_first_byte },
	{ "another protocol is refused, and named", another_protocol_is_named },
	{ "a frame beyond the limit is -EMSGSIZE", a_frame_too_long_is_refused },
	{ "the header alone tells the length", a_length_is_told_from_the_header_alone },
	{ "an unknown kind is refused", an_unknown_kind_is_refused },
	{ "an enum out of range is refused", an_enum_out_of_range_is_refused },
	{ "a fabric's figures out of range are refused", a_fabric_that_cannot_be_is_refused },
	{ "a text with a NUL in it is refused", a_text_with_a_nul_is_refused },
	{ "a text that leaves no room for its NUL is refused",
	  a_text_without_room_for_its_nul_is_refused },
	{ "every text of every message is clean when it is decoded",
	  every_text_is_clean_when_decoded },
	{ "an error is a negative errno, else it is refused", an_error_is_always_a_negative_errno },
	{ "more rows than a message holds are refused",
	  more_rows_than_there_is_room_for_are_refused },
	{ "one row more than a message holds is refused",
	  one_row_more_than_there_is_room_for_is_refused },
	{ "more addresses than a message holds are refused", more_addresses_than_fit_are_refused },
	{ "as many rows as a message holds come back", as_many_rows_as_fit_come_back },
	{ "a piece that lies outside its whole is refused", a_piece_outside_its_whole_is_refused },
	{ "a piece is no longer than a chunk", a_piece_is_no_longer_than_a_chunk },
	{ "a loss that nobody told stays a NaN", a_loss_nobody_told_stays_a_nan },
	CU_TEST_INFO_NULL,
};

/* The first inputs of the fuzzer, tests/fuzz/corpus/message: one of every kind, by its number. */
static int write_inputs(const char *folder)
{
	for (int kind = MST_MSG_HELLO; kind <= MST_MSG_FETCH; kind++) {
		char path[4096];
		make((enum mst_message_kind)kind);
		int64_t length = mst_message_encode(&sent, frame, sizeof(frame));
		(void)snprintf(path, sizeof(path), "%s/%02d", folder, kind);
		FILE *f = fopen(path, "wb");
		if (f == NULL || fwrite(frame, 1, (size_t)length, f) != (size_t)length ||
		    fclose(f) != 0)
			return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(piece); i++)
		piece[i] = (uint8_t)(i * 7);
	return argc > 1 ? write_inputs(argv[1]) : ut_main("wire", cases);
}
