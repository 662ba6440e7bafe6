/* SPDX-License-Identifier: MIT */
/* muster_open() against servers that are not there, say nothing, or say the wrong thing: it comes
 * back in time, with an error that is documented and a sentence. */
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "tests/unit/client/client_case.h"
#include "tests/ut.h"

static int reopen(const struct muster_options *opt)
{
	client_handle = NULL;
	int rc = muster_open(opt, &client_handle);
	CU_ASSERT_PTR_NULL(client_handle);
	CU_ASSERT(strlen(muster_error(NULL)) > 10);
	return rc;
}

/* ---- the sentence ---- */

void __real_mst_handle_free(struct muster *gone);
void __wrap_mst_handle_free(struct muster *gone);
static bool opens_another; /* while a handle is freed */

/* Several workers may share a thread, as simulated ones do. */
void __wrap_mst_handle_free(struct muster *gone)
{
	struct muster *other;
	bool now = opens_another;

	opens_another = false;
	if (now)
		CU_ASSERT_EQUAL(muster_open(NULL, &other), -EINVAL);
	__real_mst_handle_free(gone);
}

static void the_reason_is_that_of_the_call_that_returned_last(void)
{
	struct muster_options opt = client_options_for("nowhere:x", 1);

	opens_another = true;
	CU_ASSERT_EQUAL(reopen(&opt), -EINVAL);
	CU_ASSERT(client_says(muster_error(NULL), "nowhere"));
}

/* ---- options ---- */

static void wrong_options_are_einval(void)
{
	struct muster_options good = client_options_for("127.0.0.1:1", 1), opt;
	const struct muster_tensor tensor = { "w", FAKE_ELEMS - 1, 2, 1, 1 };

	opt = good, opt.size = 0;
	CU_ASSERT_EQUAL(reopen(&opt), -EINVAL);
	CU_ASSERT(client_says(muster_error(NULL), "options.size"));
	opt = good, opt.elems = 0;
	CU_ASSERT_EQUAL(reopen(&opt), -EINVAL);
	opt = good, opt.elems = UINT64_MAX;
	CU_ASSERT_EQUAL(reopen(&opt), -EINVAL);
	opt = good, opt.type = (enum muster_type)9;
	CU_ASSERT_EQUAL(reopen(&opt), -EINVAL);
	opt = good, opt.owner = (enum muster_owner)9;
	CU_ASSERT_EQUAL(reopen(&opt), -EINVAL);
	opt = good, opt.rank = -2;
	CU_ASSERT_EQUAL(reopen(&opt), -EINVAL);
	opt = good, opt.server = "nowhere:x";
	CU_ASSERT_EQUAL(reopen(&opt), -EINVAL);
	CU_ASSERT(client_says(muster_error(NULL), "HOST:PORT"));
	opt = good, opt.tensors = &tensor, opt.tensor_count = 1;
	CU_ASSERT_EQUAL(reopen(&opt), -EINVAL);
	CU_ASSERT(client_says(muster_error(NULL), "options.tensors: tensor \"w\" has 2 elements"));
	CU_ASSERT_EQUAL(reopen(NULL), -EINVAL);
	CU_ASSERT_EQUAL(muster_open(&good, NULL), -EINVAL);
}

/* As a program does that was compiled when the options ended with the number of tensors. What its
 * memory holds after them is not the library's to read. */
static void older_options_are_as_good(void)
{
	struct muster_options old = client_options_for("127.0.0.1:1", 1);

	old.size = offsetof(struct muster_options, join_ms);
	old.join_ms = old.wait_ms = UINT32_MAX;
	old.elems = 0;
	CU_ASSERT_EQUAL(reopen(&old), -EINVAL);
	CU_ASSERT(client_says(muster_error(NULL), "options.elems"));
	old.size = offsetof(struct muster_options, elems); /* it lacks what nobody can do without */
	old.elems = FAKE_ELEMS;
	CU_ASSERT_EQUAL(reopen(&old), -EINVAL);
	CU_ASSERT(client_says(muster_error(NULL), "options.elems is 0"));
}

static void newer_options_that_are_unset_are_as_good(void)
{
	struct {
		struct muster_options known;
		uint64_t newer;
	} opt = { client_options_for("127.0.0.1:1", 1), 0 };

	opt.known.size = sizeof(opt);
	opt.known.elems = 0;
	CU_ASSERT_EQUAL(reopen(&opt.known), -EINVAL);
	CU_ASSERT(client_says(muster_error(NULL), "options.elems"));
	opt.newer = 1;
	CU_ASSERT_EQUAL(reopen(&opt.known), -EINVAL);
	CU_ASSERT(client_says(muster_error(NULL), "newer libmuster"));
}

static void wrong_variables_are_einval(void)
{
	static const char *const wrong[][2] = {
		{ "MUSTER_RANK", "3x" },          { "MUSTER_RANK", "99999999999" },
		{ "MUSTER_TRANSPORT", "pigeon" }, { "MUSTER_GID_INDEX", "-1" },
		{ "MUSTER_GID_INDEX", "0x" },     { "MUSTER_LOG", "loud" }
	};
	struct muster_options opt = client_options_for("127.0.0.1:1", 1);

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		setenv(wrong[i][0], wrong[i][1], 1);
		CU_ASSERT_EQUAL(reopen(&opt), -EINVAL);
		CU_ASSERT(client_says(muster_error(NULL), wrong[i][1]));
		unsetenv(wrong[i][0]);
	}
}

/* musterd would read another name than was meant. */
static void a_job_whose_name_is_no_text_is_einval(void)
{
	struct muster_options opt = client_options_for("127.0.0.1:1", 1);

	opt.job = "caf\xe9";
	CU_ASSERT_EQUAL(reopen(&opt), -EINVAL);
	CU_ASSERT(client_says(muster_error(NULL), "the job's name is not UTF-8"));
}

static void variables_too_long_are_einval(void)
{
	static const char *const name[] = { "MUSTER_DEVICE", "MUSTER_DATA_ADDRESS" };
	struct muster_options opt = client_options_for("127.0.0.1:1", 1);
	char text[1000];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	for (size_t i = 0; i < sizeof(name) / sizeof(name[0]); i++) {
		setenv(name[i], text, 1);
		CU_ASSERT_EQUAL(reopen(&opt), -EINVAL);
		CU_ASSERT(client_says(muster_error(NULL), name[i]));
		unsetenv(name[i]);
	}
}

/* ---- finding the leader ---- */

/* A port that nobody listens at, on an address of this process: no other test takes the port. */
static void find_port(char *address, size_t len)
{
	unsigned pid = (unsigned)getpid();
	struct mst_listener *l;
	char any[64];

	(void)snprintf(any, sizeof(any), "127.%u.%u.%u:0", 100 + (pid >> 16 & 63), pid >> 8 & 255,
		       pid & 255);
	CU_ASSERT_EQUAL_FATAL(mst_plain.listen(any, NULL, &l, address, len), 0);
	mst_plain.unlisten(l);
}

static void nobody_there_is_etimedout_in_time(void)
{
	char address[64];

	find_port(address, sizeof(address));
	struct muster_options opt = client_options_for(address, CLIENT_SHORT_MS);
	CU_ASSERT_EQUAL(reopen(&opt), -ETIMEDOUT);
	CU_ASSERT(client_took_ms() >= CLIENT_SHORT_MS - 10 && client_took_ms() < CLIENT_LATE_MS);
	CU_ASSERT(client_says(muster_error(NULL), address));
}

static bool say_nothing(struct fake_leader *f)
{
	return fake_stay(f);
}

static void silence_is_etimedout_in_time(void)
{
	CU_ASSERT_EQUAL(client_open(say_nothing, CLIENT_SHORT_MS), -ETIMEDOUT);
	CU_ASSERT(client_took_ms() >= CLIENT_SHORT_MS - 10 && client_took_ms() < CLIENT_LATE_MS);
	CU_ASSERT(client_says(muster_error(NULL), client_fake.address));
	CU_ASSERT(client_says(muster_error(NULL), "took the connection"));
	client_close();
}

static uint32_t calls;

static bool hang_up_always(struct fake_leader *f)
{
	for (calls = 1; fake_next(f);)
		calls++;
	return false;
}

static void a_leader_that_always_hangs_up_is_enotconn(void)
{
	CU_ASSERT_EQUAL(client_open(hang_up_always, CLIENT_LONG_MS), -ENOTCONN);
	CU_ASSERT(client_says(muster_error(NULL), "without a word"));
	client_close();
	CU_ASSERT_EQUAL(calls, 10);
}

static bool end(struct fake_leader *f)
{
	mst_plain.unlisten(f->listen_fd);
	f->listen_fd = NULL;
	return false;
}

/* Another one may take its place. */
static void a_leader_that_ends_before_it_answers_is_waited_for(void)
{
	CU_ASSERT_EQUAL(client_open(end, CLIENT_SHORT_MS), -ETIMEDOUT);
	CU_ASSERT(client_says(muster_error(NULL), "since then no server answered"));
	client_close();
}

/* As a server does that must make room among many strangers. */
static bool hang_up_thrice(struct fake_leader *f)
{
	for (int i = 0; i < 3; i++) {
		if (!fake_next(f))
			return false;
	}
	return fake_refuse(f, -ENOSPC, "heard at last");
}

static void a_hello_that_was_not_heard_is_said_again(void)
{
	CU_ASSERT_EQUAL(client_open(hang_up_thrice, CLIENT_LONG_MS), -ENOSPC);
	CU_ASSERT(client_says(muster_error(NULL), "heard at last"));
	client_close();
}

static bool be_busy_thrice(struct fake_leader *f)
{
	for (int i = 0; i < 3; i++) {
		if (!fake_hear(f, MST_MSG_HELLO) || !fake_refuse(f, -EBUSY, "not now") ||
		    !fake_next(f))
			return false;
	}
	return fake_hear(f, MST_MSG_HELLO) && fake_refuse(f, -ENOSPC, "heard at last");
}

static void a_server_that_is_busy_is_asked_again(void)
{
	CU_ASSERT_EQUAL(client_open(be_busy_thrice, CLIENT_LONG_MS), -ENOSPC);
	CU_ASSERT(client_says(muster_error(NULL), "heard at last"));
	client_close();
}

static bool be_busy(struct fake_leader *f)
{
	while (fake_hear(f, MST_MSG_HELLO) && fake_refuse(f, -EBUSY, "not now") && fake_next(f))
		;
	return true;
}

/* The join timeout is short, and the last hello of it may not have been answered. */
static void a_server_that_stays_busy_is_ebusy(void)
{
	int rc = client_open(be_busy, 1000);

	CU_ASSERT(rc == -EBUSY || rc == -ETIMEDOUT);
	CU_ASSERT(rc != -EBUSY || client_says(muster_error(NULL), "not now"));
	client_close();
}

static bool speak_http(struct fake_leader *f)
{
	static const char text[] = "HTTP/1.1 400 Bad Request\r\n\r\n";

	return fake_say_bytes(f, text, strlen(text)) && fake_stay(f);
}

static void garbage_is_eproto(void)
{
	CU_ASSERT_EQUAL(client_open(speak_http, CLIENT_LONG_MS), -EPROTO);
	CU_ASSERT(client_took_ms() < CLIENT_LATE_MS);
	CU_ASSERT(client_says(muster_error(NULL), "no muster server"));
	client_close();
}

static bool speak_protocol_99(struct fake_leader *f)
{
	static const uint8_t frame[] = {
		'm', 's', 't', 'r', 99, 0, MST_MSG_WELCOME, 0, 0, 0, 0, 0
	};

	return fake_say_bytes(f, frame, sizeof(frame)) && fake_stay(f);
}

static void another_protocol_is_eproto_and_named(void)
{
	CU_ASSERT_EQUAL(client_open(speak_protocol_99, CLIENT_LONG_MS), -EPROTO);
	CU_ASSERT(client_says(muster_error(NULL), "protocol 99"));
	client_close();
}

/* HEARTBEAT, with a field that is known to this server and must be to its peer. */
static bool speak_of_a_field(struct fake_leader *f)
{
	static const uint8_t frame[] = {
		'm', 's', 't', 'r', MST_PROTOCOL, 0, MST_MSG_HEARTBEAT, 0, 6, 0, 0, 0, 77, 0x80,
		0,   0,   0,   0
	};

	return fake_say_bytes(f, frame, sizeof(frame)) && fake_stay(f);
}

static void a_field_that_must_be_known_is_eproto_and_named(void)
{
	CU_ASSERT_EQUAL(client_open(speak_of_a_field, CLIENT_LONG_MS), -EPROTO);
	CU_ASSERT(client_says(muster_error(NULL), "sent a message HEARTBEAT with field 77"));
	CU_ASSERT(client_says(muster_error(NULL), "use one release on both sides, or a newer"));
	client_close();
}

static bool promise_a_megabyte(struct fake_leader *f)
{
	static const uint8_t frame[] = {
		'm', 's', 't', 'r', 1, 0, MST_MSG_WELCOME, 0, 0, 0, 16, 0
	};

	return fake_say_bytes(f, frame, sizeof(frame)) && fake_stay(f);
}

static void a_frame_beyond_reason_is_eproto(void)
{
	CU_ASSERT_EQUAL(client_open(promise_a_megabyte, CLIENT_LONG_MS), -EPROTO);
	CU_ASSERT(client_took_ms() < CLIENT_LATE_MS);
	client_close();
}

static bool refuse(struct fake_leader *f)
{
	return fake_hear(f, MST_MSG_HELLO) && fake_refuse(f, -EEXIST, "rank 1 is taken");
}

static void a_refusal_keeps_code_and_reason(void)
{
	CU_ASSERT_EQUAL(client_open(refuse, CLIENT_LONG_MS), -EEXIST);
	CU_ASSERT_STRING_EQUAL(muster_error(NULL), "rank 1 is taken");
	client_close();
}

static struct mst_origins announced;

static bool note_addresses(struct fake_leader *f)
{
	if (!fake_hear(f, MST_MSG_HELLO))
		return false;
	announced = f->message.hello.origins;
	return fake_refuse(f, -ENOSPC, "no place");
}

static void a_hello_names_the_addresses_that_links_are_dialled_from(void)
{
	static const struct mst_origin named[] = { { { [10] = 0xff, 0xff, 10, 9, 0, 1 } },
						   { { 0xfd, [15] = 9 } } };

	setenv("MUSTER_DATA_ADDRESS", "10.9.0.1,fd00::9", 1);
	CU_ASSERT_EQUAL(client_open(note_addresses, CLIENT_LONG_MS), -ENOSPC);
	unsetenv("MUSTER_DATA_ADDRESS");
	client_close();
	CU_ASSERT_EQUAL(announced.count, 2);
	CU_ASSERT_EQUAL(memcmp(announced.at, named, sizeof(named)), 0);
}

static bool ask_for_a_state(struct fake_leader *f)
{
	const struct mst_message msg = { .kind = MST_MSG_LEAVE };

	return fake_say(f, &msg) && fake_stay(f);
}

static void a_message_no_leader_sends_is_eproto(void)
{
	CU_ASSERT_EQUAL(client_open(ask_for_a_state, CLIENT_LONG_MS), -EPROTO);
	client_close();
}

static void *listen_later(void *address)
{
	static struct fake_leader late;
	char bound[64];

	mst_sleep_ns(200 * MST_MS);
	if (mst_plain.listen(address, NULL, &late.listen_fd, bound, sizeof(bound)) != 0)
		return NULL;
	if (fake_next(&late) && fake_hear(&late, MST_MSG_HELLO))
		(void)fake_refuse(&late, -ENOSPC, "late, but heard");
	if (late.stream != NULL)
		mst_plain.close(late.stream);
	mst_plain.unlisten(late.listen_fd);
	return NULL;
}

static void a_server_may_come_later(void)
{
	char address[64];
	pthread_t thread;

	find_port(address, sizeof(address));
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, listen_later, address), 0);
	struct muster_options opt = client_options_for(address, CLIENT_LONG_MS);
	CU_ASSERT_EQUAL(reopen(&opt), -ENOSPC);
	CU_ASSERT(client_says(muster_error(NULL), "late, but heard"));
	pthread_join(thread, NULL);
}

static CU_TestInfo cases[] = {
	{ "the sentence is that of the call that returned last",
	  the_reason_is_that_of_the_call_that_returned_last },
	{ "wrong options are -EINVAL", wrong_options_are_einval },
	{ "older options are as good", older_options_are_as_good },
	{ "newer options that are unset are as good", newer_options_that_are_unset_are_as_good },
	{ "wrong variables are -EINVAL, and quoted", wrong_variables_are_einval },
	{ "a job whose name is no text is -EINVAL", a_job_whose_name_is_no_text_is_einval },
	{ "nobody there is -ETIMEDOUT, in time", nobody_there_is_etimedout_in_time },
	{ "silence is -ETIMEDOUT, in time", silence_is_etimedout_in_time },
	{ "a leader that always hangs up is -ENOTCONN", a_leader_that_always_hangs_up_is_enotconn },
	{ "a leader that ends before it answers is waited for",
	  a_leader_that_ends_before_it_answers_is_waited_for },
	{ "a hello that was not heard is said again", a_hello_that_was_not_heard_is_said_again },
	{ "a server that is busy is asked again", a_server_that_is_busy_is_asked_again },
	{ "a server that stays busy is EBUSY", a_server_that_stays_busy_is_ebusy },
	{ "garbage is -EPROTO", garbage_is_eproto },
	{ "another protocol is -EPROTO, and named", another_protocol_is_eproto_and_named },
	{ "a field that must be known is -EPROTO, and named",
	  a_field_that_must_be_known_is_eproto_and_named },
	{ "a frame beyond reason is -EPROTO", a_frame_beyond_reason_is_eproto },
	{ "a refusal keeps its code and sentence", a_refusal_keeps_code_and_reason },
	{ "a hello names the addresses that links are dialled from",
	  a_hello_names_the_addresses_that_links_are_dialled_from },
	{ "a message that no leader sends is -EPROTO", a_message_no_leader_sends_is_eproto },
	{ "a server may come later than the worker", a_server_may_come_later },
	{ "variables that are too long are -EINVAL", variables_too_long_are_einval },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("client join", cases);
}
