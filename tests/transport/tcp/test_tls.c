/* SPDX-License-Identifier: MIT */
/*
 * Links over TCP that are encrypted: who does not prove itself, who speaks something else, and what
 * somebody on the path can do.
 *
 *   test_transport_tcp_tls [IO_THREADS]
 */
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/transport/tls/handoff.h"
#include "common/transport/tls/stream.h"
#include "tests/transport/tcp/attack.h"
#include "tests/transport/tcp/relay.h"
#include "tests/transport/tls/place.h"

#define BYTES ((size_t)1 << 20)
/* Places at which connections are cut: all, or with a sanitizer some. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STRIDE 211u
#else
#define STRIDE 13u
#endif

static struct tls_place home, abroad;
static uint32_t io_threads;
static uint64_t patience_ns = PATIENCE_NS; /* of dials */
static const struct mst_lanes lanes = { BYTES, BYTES, 8, 8 };

/* ---- two ends ---- */

/* A listener, and a dial to it on a thread of its own. */
struct encounter {
	struct mst_credentials *own[2]; /* of the acceptor, of the connector; NULL: plain */
	struct mst_net *net[2];
	struct mst_link *link[2];
	struct mst_link_listener *listener;
	char address[MST_ADDRESS_LEN];
	struct mst_reason why;
	int rc;
	atomic_bool over;
	pthread_t thread;
};

static struct mst_net *net_of(struct mst_credentials *own)
{
	struct mst_fabric fabric = MST_FABRIC_DEFAULT;
	struct mst_net_cfg cfg = { .fabric = &fabric,
				   .links_max = 4,
				   .channels = mst_channels_of(own) };
	struct mst_net *net;

	fabric.addresses = "127.0.0.1";
	fabric.encrypted = own != NULL;
	fabric.io_threads = io_threads;
	CU_ASSERT_EQUAL_FATAL(mst_tcp.net_open(&cfg, &net, UT_UNREAD), 0);
	return net;
}

static void encounter_open(struct encounter *e, struct mst_credentials *acceptor,
			   struct mst_credentials *connector)
{
	memset(e, 0, sizeof(*e));
	e->own[0] = acceptor;
	e->own[1] = connector;
	for (int i = 0; i < 2; i++)
		e->net[i] = net_of(e->own[i]);
	CU_ASSERT_EQUAL_FATAL(mst_tcp_listener.open(e->net[0], &e->listener, UT_UNREAD), 0);
	memcpy(e->address, e->listener->address, sizeof(e->address));
}

static void encounter_close(struct encounter *e)
{
	for (int i = 0; i < 2; i++) {
		if (e->link[i] != NULL)
			mst_tcp.detach(e->link[i]);
		mst_tcp.link_free(e->link[i]);
	}
	mst_tcp_listener.close(e->listener);
	for (int i = 0; i < 2; i++) {
		mst_tcp.net_close(e->net[i]);
		mst_credentials_free(e->own[i]);
	}
}

static void *dial(void *arg)
{
	struct encounter *e = arg;
	struct mst_dial how = { .address = e->address, .lanes = lanes, .timeout_ns = patience_ns };

	memset(how.token, 7, sizeof(how.token));
	e->rc = mst_tcp.dial(e->net[1], &how, &e->link[1], &e->why);
	e->over = true;
	return NULL;
}

/* Lets in who asks, until the dial has ended. Return: what it gave. */
static int meet(struct encounter *e)
{
	struct mst_link_request request;
	struct pollfd p = { .fd = mst_tcp_listener.fd(e->listener), .events = POLLIN };

	e->over = false;
	CU_ASSERT_EQUAL_FATAL(pthread_create(&e->thread, NULL, dial, e), 0);
	while (!e->over) {
		(void)poll(&p, 1, 10);
		if (mst_tcp_listener.next_request(e->listener, &request, UT_UNREAD) == 0 &&
		    mst_tcp_listener.answer(e->listener, &request, &e->link[0], UT_UNREAD) == 0)
			CU_ASSERT_EQUAL(mst_tcp.attach(e->net[0], e->link[0], UT_UNREAD), 0);
	}
	pthread_join(e->thread, NULL);
	return e->rc;
}

static void refused(struct mst_credentials *acceptor, struct mst_credentials *connector, int error,
		    const char *words)
{
	struct encounter e;

	encounter_open(&e, acceptor, connector);
	CU_ASSERT_EQUAL(meet(&e), error);
	if (strstr(e.why.text, words) == NULL)
		(void)fprintf(stderr, "it said: %s\n", e.why.text);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.why.text, words));
	CU_ASSERT_PTR_NOT_NULL(strstr(e.why.text, "127.0.0.1:"));
	encounter_close(&e);
}

static struct mst_credentials *server(void)
{
	return tls_place_load(&home, "server");
}

static struct mst_credentials *worker(void)
{
	return tls_place_load(&home, "worker");
}

/* ---- who comes ---- */

static void a_caller_in_the_clear_is_told_to_use_tls(void)
{
	refused(server(), NULL, -EACCES, "wants TLS, and this end sends plain bytes");
}

static void a_caller_by_tls_is_told_that_the_port_is_plain(void)
{
	refused(NULL, worker(), -EPROTO, "does not speak TLS on its data port");
}

static void certificates_of_another_authority_are_not_believed(void)
{
	refused(tls_place_load(&abroad, "server"), worker(), -EACCES,
		"is not from the authority in");
}

static void an_acceptor_has_to_be_a_server(void)
{
	refused(worker(), worker(), -EACCES, "extended key usage forbids this");
}

static void a_connector_has_to_be_a_worker_or_a_server(void)
{
	refused(server(), tls_place_load(&home, "observer"), -EACCES, "muster:worker");
	refused(server(), tls_place_load(&home, "operator"), -EACCES, "muster:worker");
	struct encounter e;
	encounter_open(&e, server(), server()); /* a follower's link */
	CU_ASSERT_EQUAL(meet(&e), 0);
	encounter_close(&e);
}

static void a_net_without_certificates_is_not_opened_for_encrypted_links(void)
{
	struct mst_fabric fabric = MST_FABRIC_DEFAULT;
	struct mst_net_cfg cfg = { .fabric = &fabric, .links_max = 1 };
	struct mst_reason why;
	struct mst_net *net;

	fabric.encrypted = true;
	CU_ASSERT_EQUAL(mst_tcp.net_open(&cfg, &net, &why), -EACCES);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "MUSTER_TLS_CERT"));
}

static void the_silent_keep_nobody_out(void)
{
	struct encounter e;
	struct tcp_target target;
	int silent[3 * MST_CHANNEL_CALLERS_MAX], before = descriptors();

	encounter_open(&e, server(), worker());
	target = (struct tcp_target){ e.net[0], e.listener };
	for (size_t i = 0; i < sizeof(silent) / sizeof(silent[0]); i++) {
		silent[i] = call(&target);
		say(silent[i], "\x16\x03\x01\x02", i % 5); /* the beginning of a handshake */
	}
	if (meet(&e) != 0)
		(void)fprintf(stderr, "it said: %s\n", e.why.text);
	CU_ASSERT_EQUAL(e.rc, 0);
	int held = descriptors() - before - (int)(sizeof(silent) / sizeof(silent[0]));
	CU_ASSERT(held <
		  (int)(mst_tcp_listener_descriptors(&(struct mst_fabric){ .encrypted = true }) +
			32));
	for (size_t i = 0; i < sizeof(silent) / sizeof(silent[0]); i++)
		close(silent[i]);
	encounter_close(&e);
}

/* ---- a listener without room ---- */

int __real_mst_handoff_give(struct mst_handoff *h, struct mst_stream *stream, const char *peer);
int __wrap_mst_handoff_give(struct mst_handoff *h, struct mst_stream *stream, const char *peer);

static atomic_int without_room; /* so many callers more find no room after their proof */

int __wrap_mst_handoff_give(struct mst_handoff *h, struct mst_stream *stream, const char *peer)
{
	if (atomic_load(&without_room) == 0)
		return __real_mst_handoff_give(h, stream, peer);
	atomic_fetch_sub(&without_room, 1);
	return -ENOBUFS;
}

/* It has shaken hands, and learns only then that there was no room. */
static void a_caller_that_found_no_room_after_its_proof_calls_again(void)
{
	struct encounter e;

	encounter_open(&e, server(), worker());
	atomic_store(&without_room, 2);
	if (meet(&e) != 0)
		(void)fprintf(stderr, "it said: %s\n", e.why.text);
	CU_ASSERT_EQUAL(e.rc, 0);
	CU_ASSERT_EQUAL(atomic_load(&without_room), 0);
	CU_ASSERT_STRING_EQUAL(e.why.text, "");
	atomic_store(&without_room, 0);
	encounter_close(&e);
}

/* ---- who is on the path ---- */

static struct relay path;

static size_t relayed(struct encounter *e, enum relay_way way, size_t at)
{
	encounter_open(e, server(), worker());
	path.way = way;
	path.at = at;
	relay_open(&path, e->listener->address);
	memcpy(e->address, path.address, sizeof(e->address));
	(void)meet(e);
	return path.passed[way];
}

static void relayed_end(struct encounter *e)
{
	encounter_close(e);
	relay_close(&path);
}

/* Neither end has a link that the other has not, or waits to the end of its time. */
static void disturb_the_beginning(enum relay_way way)
{
	struct encounter e;
	size_t all = relayed(&e, way, SIZE_MAX);

	CU_ASSERT_EQUAL(e.rc, 0);
	relayed_end(&e);
	/* A signature has 70 to 72 bytes, so the last places may be beyond the end. */
	for (size_t at = 0; at + 16 < all; at += STRIDE) {
		(void)relayed(&e, way, at);
		CU_ASSERT(e.rc < 0);
		CU_ASSERT(e.rc != -ETIMEDOUT || path.changes);
		CU_ASSERT(strlen(e.why.text) > 0);
		relayed_end(&e);
	}
}

static void a_beginning_that_is_cut_gives_no_link(void)
{
	path.changes = false;
	disturb_the_beginning(RELAY_DOWN);
	disturb_the_beginning(RELAY_UP);
}

/* A record that seems longer than it is is waited for. */
static void a_beginning_that_is_changed_gives_no_link(void)
{
	path.changes = true;
	patience_ns = PATIENCE_NS / 60;
	disturb_the_beginning(RELAY_DOWN);
	patience_ns = PATIENCE_NS;
}

static struct mst_net_event next_event(struct mst_net *net)
{
	struct mst_net_event ev = { .kind = MST_SENT };

	CU_ASSERT_EQUAL(poll_for(net, &ev, 1, PATIENCE_NS), 1);
	return ev;
}

/* Puts from the connector until the link is lost. Return: what the acceptor's link says. */
static const char *put_until_lost(struct encounter *e)
{
	static uint8_t bytes[BYTES];
	struct mst_put put = { .src = bytes, .bytes = sizeof(bytes), .notify = true };
	uint64_t until_ns = mst_deadline_ns(PATIENCE_NS);
	struct mst_net_event ev[8];

	memset(bytes, 0x5a, sizeof(bytes));
	while (mst_left_ns(until_ns) > 0) {
		(void)mst_tcp.put(e->link[1], &put);
		(void)mst_tcp.poll(e->net[1], ev, 8);
		int n = mst_tcp.poll(e->net[0], ev, 8);
		if (n > 0 && ev[n - 1].kind == MST_LOST) {
			CU_ASSERT_EQUAL(ev[n - 1].error, -EPIPE);
			return e->link[0]->why.text;
		}
		mst_tcp.wait(e->net[0], MST_MS);
	}
	return "";
}

static void disturb_a_put(bool changes, const char *words)
{
	struct encounter e;

	path.changes = changes;
	(void)relayed(&e, RELAY_UP, SIZE_MAX);
	CU_ASSERT_EQUAL_FATAL(e.rc, 0);
	path.at = path.passed[RELAY_UP] + 3 * BYTES / 2;
	const char *said = put_until_lost(&e);
	/* Where the path has not read all that this end sent, it resets the connection. */
	bool told = strstr(said, words) != NULL ||
		    (!changes && strstr(said, "is gone: Connection reset by peer") != NULL);
	if (!told)
		(void)fprintf(stderr, "it said: %s\n", said);
	CU_ASSERT_TRUE(told);
	/* What has been let in is what was sent, and nothing else. */
	const uint8_t *in = e.link[0]->inbound;
	for (size_t i = 0; i < BYTES; i++)
		CU_ASSERT_FATAL(in[i] == 0x5a || in[i] == 0);
	relayed_end(&e);
}

static void a_bit_that_is_changed_ends_the_link_before_it_is_let_in(void)
{
	disturb_a_put(true, "broke TLS");
}

static void a_connection_that_is_cut_on_the_path_is_told_from_one_that_was_ended(void)
{
	disturb_a_put(false, "without the word of TLS that ends one");
}

static void a_link_that_is_detached_ends_with_that_word(void)
{
	struct encounter e;

	encounter_open(&e, server(), worker());
	CU_ASSERT_EQUAL_FATAL(meet(&e), 0);
	mst_tcp.detach(e.link[1]);
	mst_tcp.link_free(e.link[1]);
	e.link[1] = NULL;
	CU_ASSERT_EQUAL(next_event(e.net[0]).kind, MST_LOST);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.link[0]->why.text, "has ended the connection"));
	encounter_close(&e);
}

static void keys_are_changed_under_way(void)
{
	static uint8_t bytes[BYTES];
	struct encounter e;

	mst_tls_records_of_key = 40; /* of the 65 and more that a put takes */
	encounter_open(&e, server(), worker());
	CU_ASSERT_EQUAL_FATAL(meet(&e), 0);
	for (uint32_t i = 0; i < 8; i++) {
		struct mst_put put = { .src = bytes, .bytes = BYTES, .notify = true, .imm = i };
		memset(bytes, (int)i + 1, sizeof(bytes));
		CU_ASSERT(mst_tcp.put(e.link[1], &put) >= 0);
		struct mst_net_event ev = { 0 };
		while (poll_for(e.net[0], &ev, 1, MST_MS) == 0)
			(void)poll_for(e.net[1], &ev, 1, MST_MS);
		CU_ASSERT(ev.kind == MST_ARRIVED && ev.imm == i);
		CU_ASSERT_EQUAL(memcmp(e.link[0]->inbound, bytes, BYTES), 0);
	}
	/* Each change is a record that holds nothing; the last one may be under way. */
	struct mst_stream *in = ((struct mst_tcp_link *)e.link[0])->conn.stream;
	CU_ASSERT(mst_tls_state_of(in)->bulk->idle >= 8 * 64 / 40 - 1);
	encounter_close(&e);
	mst_tls_records_of_key = UINT64_C(1) << 24;
}

/* ---- streams that are cut ---- */

#define STREAM_BYTES (2 * MST_TCP_FRAME_BYTES + 8)

/* A word of equal bytes at 8, and a notice. */
static void compose(uint8_t byte, uint8_t out[STREAM_BYTES])
{
	struct mst_tcp_frame word = { .kind = MST_TCP_WRITE, .offset = 8, .length = 8 };
	struct mst_tcp_frame notice = { .kind = MST_TCP_NOTIFY, .imm = byte };

	mst_tcp_frame_encode(&word, out);
	memset(out + MST_TCP_FRAME_BYTES, byte, 8);
	mst_tcp_frame_encode(&notice, out + MST_TCP_FRAME_BYTES + 8);
}

static uint64_t word_of(const struct mst_link *link)
{
	/* Relaxed: nothing is read besides. */
	return atomic_load_explicit((_Atomic uint64_t *)link->inbound + 1, memory_order_relaxed);
}

static uint64_t word_from(size_t byte)
{
	return byte % 256 * UINT64_C(0x0101010101010101);
}

/* The word is that of before, or the new one, which ends with so many bytes of the stream. */
static void look_at_word(struct encounter *e, size_t byte, size_t has)
{
	struct mst_net_event ev;
	bool whole = has >= MST_TCP_FRAME_BYTES + 8;

	for (int i = 0; i < 2; i++) /* some have not been read before the second */
		CU_ASSERT_EQUAL(poll_for(e->net[0], &ev, 1, MST_MS / 4), 0);
	uint64_t seen = word_of(e->link[0]);
	CU_ASSERT(seen == word_from(byte - 1) || (whole && seen == word_from(byte)));
}

static void look_at_the_end(struct encounter *e, size_t byte)
{
	struct mst_net_event ev = next_event(e->net[0]);

	CU_ASSERT(ev.kind == MST_ARRIVED && ev.imm == byte % 256);
	CU_ASSERT_EQUAL(word_of(e->link[0]), word_from(byte));
}

static void encrypt(struct mst_tls_state *s, const uint8_t *from, size_t bytes)
{
	size_t done;

	CU_ASSERT_EQUAL(SSL_write_ex(s->ssl, from, bytes, &done), 1);
	CU_ASSERT_EQUAL(done, bytes);
}

/* Records end anywhere in the stream, and what comes to the other end ends anywhere in a record. */
static void a_stream_that_pauses_anywhere_shows_no_torn_word(void)
{
	uint8_t text[STREAM_BYTES];
	struct encounter e;
	size_t byte = 0;

	if (io_threads > 0) /* whose stream it is then */
		return;
	encounter_open(&e, server(), worker());
	CU_ASSERT_EQUAL_FATAL(meet(&e), 0);
	struct mst_tls_state *s = mst_tls_state_of(((struct mst_tcp_link *)e.link[1])->conn.stream);
	for (size_t cut = 1; cut < sizeof(text); cut++) {
		compose((uint8_t)++byte, text);
		encrypt(s, text, cut);
		CU_ASSERT_EQUAL(mst_tls_wire_flush(&s->wire), 0);
		look_at_word(&e, byte, cut);
		encrypt(s, text + cut, sizeof(text) - cut);
		CU_ASSERT_EQUAL(mst_tls_wire_flush(&s->wire), 0);
		look_at_the_end(&e, byte);
	}
	for (size_t cut = 1, all = 2; cut < all; cut++) {
		compose((uint8_t)++byte, text);
		encrypt(s, text, sizeof(text));
		all = s->wire.out_end;
		CU_ASSERT_EQUAL(mst_plain.send(s->wire.below, s->wire.out, cut), (ssize_t)cut);
		s->wire.out_at = cut;
		look_at_word(&e, byte, 0);
		CU_ASSERT_EQUAL(mst_tls_wire_flush(&s->wire), 0);
		look_at_the_end(&e, byte);
	}
	encounter_close(&e);
}

/* The library has read it with the last bytes, so that the descriptor tells of nothing. */
static void an_end_that_comes_with_the_last_bytes_is_noticed(void)
{
	static const uint8_t bytes[100];
	struct mst_put put = { .src = bytes, .bytes = sizeof(bytes), .notify = true };
	struct encounter e;

	if (io_threads > 0) /* whose stream it is then */
		return;
	encounter_open(&e, server(), worker());
	CU_ASSERT_EQUAL_FATAL(meet(&e), 0);
	CU_ASSERT(mst_tcp.put(e.link[1], &put) >= 0);
	mst_tls_channel.end(((struct mst_tcp_link *)e.link[1])->conn.stream);
	CU_ASSERT_EQUAL(next_event(e.net[0]).kind, MST_ARRIVED);
	CU_ASSERT_EQUAL(next_event(e.net[0]).kind, MST_LOST);
	encounter_close(&e);
}

/* Else a peer that sends nothing else would keep this end's thread. */
static void key_changes_without_end_end_the_link(void)
{
	struct encounter e;
	struct mst_net_event ev = { 0 };

	if (io_threads > 0) /* whose stream it is then */
		return;
	encounter_open(&e, server(), worker());
	CU_ASSERT_EQUAL_FATAL(meet(&e), 0);
	struct mst_tls_state *s = mst_tls_state_of(((struct mst_tcp_link *)e.link[1])->conn.stream);
	for (int i = 0; i < 200; i++) {
		CU_ASSERT_EQUAL(SSL_key_update(s->ssl, SSL_KEY_UPDATE_NOT_REQUESTED), 1);
		CU_ASSERT_EQUAL(SSL_do_handshake(s->ssl), 1);
		(void)mst_tls_wire_flush(&s->wire);
	}
	ev = next_event(e.net[0]);
	CU_ASSERT_EQUAL(ev.kind, MST_LOST);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.link[0]->why.text, "that hold nothing"));
	encounter_close(&e);
}

static void put_one(struct encounter *e, uint32_t imm)
{
	struct mst_put put = { .src = &imm, .bytes = sizeof(imm), .notify = true, .imm = imm };

	CU_ASSERT(mst_tcp.put(e->link[1], &put) >= 0);
	struct mst_net_event ev = next_event(e->net[0]);
	CU_ASSERT(ev.kind == MST_ARRIVED && ev.imm == imm);
}

/* What a child sent would be the parent's, and end its channel. */
static void a_child_says_nothing_on_its_parent_s_link(void)
{
	struct encounter e;
	int status = -1;

	encounter_open(&e, server(), worker());
	CU_ASSERT_EQUAL_FATAL(meet(&e), 0);
	put_one(&e, 1);
	pid_t child = fork();
	if (child == 0) {
		mst_tcp.disown(e.net[1]);
		mst_tcp.link_free(e.link[1]);
		mst_tcp.net_close(e.net[1]);
		_exit(0);
	}
	CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
	CU_ASSERT_EQUAL(status, 0);
	put_one(&e, 2);
	encounter_close(&e);
}

static CU_TestInfo cases[] = {
	{ "a caller in the clear is told to use TLS", a_caller_in_the_clear_is_told_to_use_tls },
	{ "a caller by TLS is told that the port is plain",
	  a_caller_by_tls_is_told_that_the_port_is_plain },
	{ "certificates of another authority are not believed",
	  certificates_of_another_authority_are_not_believed },
	{ "an acceptor has to be a server", an_acceptor_has_to_be_a_server },
	{ "a connector has to be a worker or a server",
	  a_connector_has_to_be_a_worker_or_a_server },
	{ "a net without certificates is not opened for encrypted links",
	  a_net_without_certificates_is_not_opened_for_encrypted_links },
	{ "the silent keep nobody out", the_silent_keep_nobody_out },
	{ "a caller that found no room after its proof calls again",
	  a_caller_that_found_no_room_after_its_proof_calls_again },
	{ "a beginning that is cut gives no link", a_beginning_that_is_cut_gives_no_link },
	{ "a beginning that is changed gives no link", a_beginning_that_is_changed_gives_no_link },
	{ "a bit that is changed ends the link before it is let in",
	  a_bit_that_is_changed_ends_the_link_before_it_is_let_in },
	{ "a connection that is cut on the path is told from one that was ended",
	  a_connection_that_is_cut_on_the_path_is_told_from_one_that_was_ended },
	{ "a link that is detached ends with that word",
	  a_link_that_is_detached_ends_with_that_word },
	{ "keys are changed under way", keys_are_changed_under_way },
	{ "a stream that pauses anywhere shows no torn word",
	  a_stream_that_pauses_anywhere_shows_no_torn_word },
	{ "an end that comes with the last bytes is noticed",
	  an_end_that_comes_with_the_last_bytes_is_noticed },
	{ "key changes without end end the link", key_changes_without_end_end_the_link },
	{ "a child says nothing on its parent's link", a_child_says_nothing_on_its_parent_s_link },
	CU_TEST_INFO_NULL,
};

int main(int argc, char **argv)
{
	io_threads = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0;
	mst_log_open("test", MST_LOG_ERROR); /* strangers are many */
	tls_place_make(&home, 0);
	tls_place_make(&abroad, 0);
	int status = ut_main("encrypted links over TCP", cases);
	tls_place_remove(&home);
	tls_place_remove(&abroad);
	return status;
}
