/* SPDX-License-Identifier: MIT */
/* Which peers are believed over TLS, what both ends are told if they are not, and what files are
 * refused. */
#include <errno.h>
#include <fcntl.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/transport/stream.h"
#include "common/transport/tls/context.h"
#include "common/transport/tls/handshakes.h"
#include "tests/transport/tls/place.h"
#include "tests/ut.h"

#define LONG_NS (60 * MST_SECOND)

static struct tls_place home, abroad; /* two authorities */

struct ends {
	struct mst_credentials *server, *caller;
	struct mst_listener *listener;
	struct mst_stream *answerer, *call; /* NULL: not there */
	struct mst_proof proof;
	char bound[64], peer[64];
};

static void await(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	CU_ASSERT_EQUAL_FATAL(poll(&p, 1, 60000), 1);
}

static void ends_open(struct ends *e, const char *server, const struct tls_place *from,
		      const char *caller)
{
	memset(e, 0, sizeof(*e));
	e->server = tls_place_load(&home, server);
	e->caller = tls_place_load(from, caller);
	e->proof.own = e->caller;
	CU_ASSERT_EQUAL_FATAL(
		mst_tls.listen("127.0.0.1:0", e->server, &e->listener, e->bound, sizeof(e->bound)),
		0);
}

static int ends_call(struct ends *e)
{
	return mst_tls.connect(e->bound, LONG_NS, &e->proof, &e->call);
}

static void ends_meet(struct ends *e)
{
	CU_ASSERT_EQUAL_FATAL(ends_call(e), 0);
	await(mst_tls.listener_fd(e->listener));
	CU_ASSERT_EQUAL_FATAL(mst_tls.accept(e->listener, &e->answerer, e->peer, sizeof(e->peer)),
			      0);
}

static void ends_close(struct ends *e)
{
	mst_tls.close(e->call);
	mst_tls.close(e->answerer);
	mst_tls.unlisten(e->listener);
	mst_credentials_free(e->caller);
	mst_credentials_free(e->server);
}

/* What the stream gives at last. */
static ssize_t receive_at_last(const struct mst_stream_ops *ops, struct mst_stream *s, char *out,
			       size_t len)
{
	ssize_t got;

	while ((got = ops->receive(s, out, len)) == -EAGAIN)
		await(ops->stream_fd(s));
	return got;
}

static void expect_words(const char *said, const char *word)
{
	CU_ASSERT_PTR_NOT_NULL_FATAL(said);
	if (strstr(said, word) == NULL)
		printf("\"%s\" lacks \"%s\"\n", said, word);
	CU_ASSERT_PTR_NOT_NULL(strstr(said, word));
}

/* ---- who is believed ---- */

static void both_ends_learn_who_the_other_is(void)
{
	struct mst_principal who;
	struct ends e;

	ends_open(&e, "server", &home, "observer");
	ends_meet(&e);
	mst_tls.principal(e.answerer, &who);
	CU_ASSERT(who.proven);
	CU_ASSERT_EQUAL(who.roles, MST_ROLE_OBSERVER);
	CU_ASSERT_STRING_EQUAL(who.name, "test observer");
	mst_tls.principal(e.call, &who);
	CU_ASSERT_EQUAL(who.roles, MST_ROLE_SERVER);
	ends_close(&e);
}

/* The server's port, with a certificate that the caller's authority has not made. */
static void a_server_of_another_authority_is_refused(void)
{
	struct ends e;

	ends_open(&e, "server", &abroad, "worker");
	CU_ASSERT_EQUAL(ends_call(&e), -EACCES);
	expect_words(e.proof.why.text, "not from the authority in");
	expect_words(e.proof.why.text, e.bound);
	ends_close(&e);
}

static void a_worker_s_certificate_makes_no_server(void)
{
	struct ends e;

	ends_open(&e, "worker", &home, "worker");
	CU_ASSERT_EQUAL(ends_call(&e), -EACCES);
	CU_ASSERT_PTR_NULL(e.call);
	expect_words(e.proof.why.text, "extended key usage");
	ends_close(&e);
}

/* The caller believes the server's authority, and shows a certificate of another. */
static void a_caller_of_another_authority_is_told_and_never_accepted(void)
{
	struct mst_tls_files mixed = { tls_place_path(&abroad, "both.pem"),
				       tls_place_path(&abroad, "worker.pem"),
				       tls_place_path(&abroad, "worker.key") };
	char command[1200], got;
	struct mst_reason why;
	struct ends e;

	(void)snprintf(command, sizeof(command), "cat %s %s > %s", tls_place_path(&home, "ca.pem"),
		       tls_place_path(&abroad, "ca.pem"), mixed.ca);
	CU_ASSERT_EQUAL_FATAL(system(command), 0);
	ends_open(&e, "server", &home, "worker");
	mst_credentials_free(e.caller);
	CU_ASSERT_EQUAL_FATAL(mst_credentials_load(&mixed, &e.caller, &why), 0);
	e.proof.own = e.caller;
	/* The handshake of TLS 1.3 ends at the caller before the server has judged. */
	CU_ASSERT_EQUAL_FATAL(ends_call(&e), 0);
	CU_ASSERT_EQUAL(receive_at_last(&mst_tls, e.call, &got, 1), -EACCES);
	expect_words(mst_tls.why(e.call), "believes another authority");
	expect_words(mst_tls.why(e.call), "worker.pem");
	CU_ASSERT_EQUAL(mst_tls.accept(e.listener, &e.answerer, e.peer, sizeof(e.peer)), -EAGAIN);
	ends_close(&e);
}

/* ---- plain text and TLS ---- */

static void plain_text_to_a_port_of_tls_is_answered_in_plain_words(void)
{
	char got[1024] = "";
	size_t have = 0;
	ssize_t more;
	struct ends e;

	ends_open(&e, "server", &home, "worker");
	CU_ASSERT_EQUAL_FATAL(mst_plain.connect(e.bound, LONG_NS, NULL, &e.call), 0);
	CU_ASSERT_EQUAL(mst_plain.send(e.call, "hello", 5), 5);
	while (have < sizeof(got) - 1 &&
	       (more = receive_at_last(&mst_plain, e.call, got + have, sizeof(got) - 1 - have)) > 0)
		have += (size_t)more;
	CU_ASSERT(have > 0);
	CU_ASSERT_PTR_NOT_NULL(memmem(got, have, "MUSTER_TLS_CERT", 15));
	mst_plain.close(e.call);
	e.call = NULL;
	CU_ASSERT_EQUAL(mst_tls.accept(e.listener, &e.answerer, e.peer, sizeof(e.peer)), -EAGAIN);
	ends_close(&e);
}

/* A child plays the server that knows no TLS. */
static void tls_to_a_plain_port_is_explained(void)
{
	struct mst_credentials *own = tls_place_load(&home, "worker");
	struct mst_proof proof = { .own = own };
	struct mst_stream *s = NULL;
	struct mst_listener *l;
	char bound[64], peer[64];
	int status;

	CU_ASSERT_EQUAL_FATAL(mst_plain.listen("127.0.0.1:0", NULL, &l, bound, sizeof(bound)), 0);
	pid_t child = fork();
	if (child == 0) {
		struct pollfd p = { .fd = mst_plain.listener_fd(l), .events = POLLIN };
		(void)poll(&p, 1, 60000);
		if (mst_plain.accept(l, &s, peer, sizeof(peer)) == 0)
			(void)mst_plain.send(s, "MSTR, and more that is no TLS", 29);
		_exit(0);
	}
	CU_ASSERT_EQUAL(mst_tls.connect(bound, LONG_NS, &proof, &s), -EPROTO);
	expect_words(proof.why.text, "does not speak TLS");
	CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
	mst_plain.unlisten(l);
	mst_credentials_free(own);
}

/* ---- a peer that stops ---- */

/* Takes a whole handshake of TLS apart: what a caller sends first. */
static size_t first_words(unsigned char *out, size_t len)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	SSL *ssl = SSL_new(ctx);
	BIO *to = BIO_new(BIO_s_mem()), *from = BIO_new(BIO_s_mem());

	SSL_set_bio(ssl, from, to);
	(void)SSL_connect(ssl);
	int have = BIO_read(to, out, (int)len);
	SSL_free(ssl);
	SSL_CTX_free(ctx);
	return have > 0 ? (size_t)have : 0;
}

/* Were one of them accepted, or did one end the thread, the honest caller at the end would fail. */
static void callers_that_stop_at_any_byte_keep_nobody_out(void)
{
	unsigned char words[1024];
	size_t len = first_words(words, sizeof(words));
	struct mst_stream *half;
	struct ends e;

	CU_ASSERT(len > 100);
	ends_open(&e, "server", &home, "worker");
	for (size_t cut = 0; cut <= len; cut++) {
		CU_ASSERT_EQUAL_FATAL(mst_plain.connect(e.bound, LONG_NS, NULL, &half), 0);
		CU_ASSERT_EQUAL(mst_plain.send(half, words, cut), (ssize_t)cut);
		mst_plain.close(half);
	}
	CU_ASSERT_EQUAL(mst_tls.accept(e.listener, &e.answerer, e.peer, sizeof(e.peer)), -EAGAIN);
	ends_meet(&e);
	ends_close(&e);
}

static void a_peer_that_shakes_no_hands_is_given_up_in_time(void)
{
	struct mst_credentials *own = tls_place_load(&home, "worker");
	struct mst_proof proof = { .own = own };
	struct mst_stream *s = NULL;
	struct mst_listener *l;
	char bound[64];

	CU_ASSERT_EQUAL_FATAL(mst_plain.listen("127.0.0.1:0", NULL, &l, bound, sizeof(bound)), 0);
	CU_ASSERT_EQUAL(mst_tls.connect(bound, 200 * MST_MS, &proof, &s), -ETIMEDOUT);
	expect_words(proof.why.text, "in time");
	mst_plain.unlisten(l);
	mst_credentials_free(own);
}

/* ---- limits of a handshake ---- */

#define HELLO_BYTES (128u << 10) /* of a hello that is twice as long as a handshake may be */
#define RECORD_BYTES (16u << 10)
#define RECORD_HEADER 5u

static char logged[4096]; /* by the listener's thread: to be read when that has ended */

static void note_line(enum mst_log_level level, const char *line, size_t len)
{
	size_t have = strlen(logged);

	(void)level;
	(void)snprintf(logged + have, sizeof(logged) - have, "%.*s", (int)len, line);
}

static void ends_open_logged(struct ends *e)
{
	logged[0] = '\0';
	mst_log_divert(note_line);
	ends_open(e, "server", &home, "worker");
}

/* Nobody was accepted.
 * Return: how often the listener has said this. */
static unsigned ends_close_logged(struct ends *e, const char *sentence)
{
	unsigned found = 0;

	CU_ASSERT_EQUAL(mst_tls.accept(e->listener, &e->answerer, e->peer, sizeof(e->peer)),
			-EAGAIN);
	ends_close(e);
	mst_log_divert(NULL);
	for (const char *at = logged; (at = strstr(at, sentence)) != NULL; at++)
		found++;
	return found;
}

/* Sends all of it, if the peer does not close before. */
static void send_on(struct mst_stream *s, const unsigned char *data, size_t len)
{
	struct pollfd p = { .fd = mst_plain.stream_fd(s), .events = POLLOUT };

	for (ssize_t done = 0; len > 0 && (done >= 0 || done == -EAGAIN);) {
		CU_ASSERT_EQUAL_FATAL(poll(&p, 1, 60000), 1);
		done = mst_plain.send(s, data, len);
		data += done > 0 ? done : 0;
		len -= done > 0 ? (size_t)done : 0;
	}
}

static void callers_that_say_no_more_are_closed_when_their_time_is_over(void)
{
	static const size_t said[] = { 0, 1, 100 };
	unsigned char words[1024];
	uint64_t before_ns = mst_tls_handshake_ns;
	struct mst_stream *half[3];
	struct ends e;
	char got;

	CU_ASSERT_FATAL(first_words(words, sizeof(words)) > 100);
	mst_tls_handshake_ns = 200 * MST_MS;
	ends_open_logged(&e);
	for (int i = 0; i < 3; i++) {
		CU_ASSERT_EQUAL_FATAL(mst_plain.connect(e.bound, LONG_NS, NULL, &half[i]), 0);
		send_on(half[i], words, said[i]);
	}
	for (int i = 0; i < 3; i++) {
		CU_ASSERT(receive_at_last(&mst_plain, half[i], &got, 1) <= 0);
		mst_plain.close(half[i]);
	}
	CU_ASSERT_EQUAL(ends_close_logged(&e, "has not proven who it is within"), 3);
	mst_tls_handshake_ns = before_ns;
}

/* It is in order but for its length, so that only the limit can end it. */
static void a_caller_that_sends_too_much_before_its_proof_is_refused(void)
{
	static unsigned char record[RECORD_HEADER + RECORD_BYTES] = { 22, 3, 1, RECORD_BYTES >> 8 };
	static const unsigned char hello[] = { 1, 1, 255, 252 }; /* its type and its length */
	struct mst_stream *caller;
	struct ends e;
	char got;

	ends_open_logged(&e);
	CU_ASSERT_EQUAL_FATAL(mst_plain.connect(e.bound, LONG_NS, NULL, &caller), 0);
	for (unsigned sent = 0; sent < HELLO_BYTES; sent += RECORD_BYTES) {
		memset(record + RECORD_HEADER, 0, sizeof(hello));
		if (sent == 0)
			memcpy(record + RECORD_HEADER, hello, sizeof(hello));
		send_on(caller, record, sizeof(record));
	}
	CU_ASSERT(receive_at_last(&mst_plain, caller, &got, 1) <= 0);
	mst_plain.close(caller);
	CU_ASSERT_EQUAL(ends_close_logged(&e, "sent more than 65536 bytes without a proof"), 1);
}

/* ---- bytes ---- */

static void small_reads_say_that_more_is_buffered(void)
{
	char got[8];
	struct ends e;

	ends_open(&e, "server", &home, "worker");
	ends_meet(&e);
	CU_ASSERT_FALSE(mst_tls.buffered(e.answerer));
	CU_ASSERT_EQUAL(mst_tls.send(e.call, "abcdefgh", 8), 8);
	CU_ASSERT_EQUAL(receive_at_last(&mst_tls, e.answerer, got, 3), 3);
	CU_ASSERT(mst_tls.buffered(e.answerer));
	CU_ASSERT_EQUAL(receive_at_last(&mst_tls, e.answerer, got, 8), 5);
	CU_ASSERT_FALSE(mst_tls.buffered(e.answerer));
	ends_close(&e);
}

/* Sends so many records that hold no byte for the reader. */
static void send_key_updates(SSL *ssl, int count)
{
	for (int i = 0; i < count; i++) {
		CU_ASSERT_EQUAL_FATAL(SSL_key_update(ssl, SSL_KEY_UPDATE_NOT_REQUESTED), 1);
		CU_ASSERT_EQUAL_FATAL(SSL_do_handshake(ssl), 1);
	}
}

/* A read that went on while they come would never end. */
static void key_updates_without_end_are_not_read_for_ever(void)
{
	struct mst_tls_peer who = { .believed = MST_ROLE_SERVER };
	struct mst_stream *below;
	char got[8];
	struct ends e;

	ends_open(&e, "server", &home, "worker");
	CU_ASSERT_EQUAL_FATAL(mst_plain.connect(e.bound, LONG_NS, NULL, &below), 0);
	int fd = mst_plain.stream_fd(below);
	CU_ASSERT_EQUAL_FATAL(fcntl(fd, F_SETFL, 0), 0); /* it blocks */
	SSL_CTX *ctx = mst_credentials_context(e.caller);
	SSL *ssl = SSL_new(ctx);
	CU_ASSERT_PTR_NOT_NULL_FATAL(ssl);
	SSL_set_app_data(ssl, &who);
	CU_ASSERT_EQUAL_FATAL(SSL_set_fd(ssl, fd), 1);
	CU_ASSERT_EQUAL_FATAL(SSL_connect(ssl), 1);
	await(mst_tls.listener_fd(e.listener));
	CU_ASSERT_EQUAL_FATAL(mst_tls.accept(e.listener, &e.answerer, e.peer, sizeof(e.peer)), 0);
	for (int i = 0; i < 3; i++) { /* a few amid bytes are in order */
		send_key_updates(ssl, 10);
		CU_ASSERT_EQUAL(SSL_write(ssl, "a", 1), 1);
		CU_ASSERT_EQUAL(receive_at_last(&mst_tls, e.answerer, got, sizeof(got)), 1);
	}
	send_key_updates(ssl, 16);
	CU_ASSERT_EQUAL(receive_at_last(&mst_tls, e.answerer, got, sizeof(got)), -EPROTO);
	expect_words(mst_tls.why(e.answerer), "16 records of TLS in a row that hold no message");
	SSL_free(ssl);
	SSL_CTX_free(ctx);
	mst_plain.close(below);
	ends_close(&e);
}

/* Were the child's close told to the peer, the next bytes could not be read. */
static void a_forked_child_closes_without_a_word(void)
{
	char got[8];
	int status;
	struct ends e;

	ends_open(&e, "server", &home, "worker");
	ends_meet(&e);
	pid_t child = fork();
	if (child == 0) {
		mst_tls.close(e.call);
		_exit(0);
	}
	CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
	CU_ASSERT_EQUAL(status, 0);
	CU_ASSERT_EQUAL(mst_tls.send(e.call, "alive", 5), 5);
	CU_ASSERT_EQUAL(receive_at_last(&mst_tls, e.answerer, got, sizeof(got)), 5);
	ends_close(&e);
}

/* ---- files ---- */

static void write_file(const char *path, const char *text)
{
	FILE *out = fopen(path, "w");

	CU_ASSERT_PTR_NOT_NULL_FATAL(out);
	(void)fputs(text, out);
	(void)fclose(out);
	(void)chmod(path, 0600);
}

static void expect_refusal(const char *ca, const char *cert, const char *key, const char *word)
{
	struct mst_tls_files files = { ca, cert, key };
	struct mst_credentials *c = NULL;
	struct mst_reason why = { "" };

	CU_ASSERT_EQUAL(mst_credentials_load(&files, &c, &why), -EINVAL);
	CU_ASSERT_PTR_NULL(c);
	expect_words(why.text, word);
}

static void bad_files_are_refused_by_name(void)
{
	char ca[512], cert[512], key[512], bad[512];

	(void)snprintf(ca, sizeof(ca), "%s", tls_place_path(&home, "ca.pem"));
	(void)snprintf(cert, sizeof(cert), "%s", tls_place_path(&home, "worker.pem"));
	(void)snprintf(key, sizeof(key), "%s", tls_place_path(&home, "worker.key"));
	(void)snprintf(bad, sizeof(bad), "%s", tls_place_path(&home, "bad"));
	expect_refusal(ca, cert, NULL, "--tls-key is missing");
	expect_refusal("", cert, key, "--tls-ca is missing");
	expect_refusal(ca, cert, bad, "cannot read");
	write_file(bad, "");
	expect_refusal(ca, cert, bad, "is empty");
	expect_refusal(bad, cert, key, "is empty");
	write_file(bad, "0\202\001\n");
	expect_refusal(ca, bad, key, "not in PEM format");
	write_file(bad, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
	expect_refusal(bad, cert, key, "holds no certificate");
	expect_refusal(ca, key, key, "holds no certificate");
	expect_refusal(ca, cert, tls_place_path(&home, "observer.key"), "does not belong to");
	expect_refusal(tls_place_path(&abroad, "ca.pem"), cert, key, "not from the authority");
	expect_refusal(ca, tls_place_path(&home, "ca.pem"), tls_place_path(&home, "ca.key"),
		       "no role");
	expect_refusal(ca, "/dev/null", key, "no regular file");
	CU_ASSERT_EQUAL(chmod(key, 0640), 0);
	expect_refusal(ca, cert, key, "chmod 600");
	CU_ASSERT_EQUAL(chmod(key, 0600), 0);
}

static void dates_are_kept(void)
{
	struct tls_place past, future;

	tls_place_make(&past, -2 * 86400);
	tls_place_make(&future, 86400);
	expect_refusal(tls_place_path(&past, "ca.pem"), tls_place_path(&past, "worker.pem"),
		       tls_place_path(&past, "worker.key"), "has expired");
	expect_refusal(tls_place_path(&future, "ca.pem"), tls_place_path(&future, "worker.pem"),
		       tls_place_path(&future, "worker.key"), "not valid yet");
	tls_place_remove(&past);
	tls_place_remove(&future);
}

static void copy(const struct tls_place *from, const struct tls_place *to, const char *name)
{
	char command[1200];

	(void)snprintf(command, sizeof(command), "cp %s %s.new && mv %s.new %s",
		       tls_place_path(from, name), tls_place_path(to, name),
		       tls_place_path(to, name), tls_place_path(to, name));
	CU_ASSERT_EQUAL_FATAL(system(command), 0);
}

/* The server's files become those of another authority, one after the other. */
static void replaced_files_count_once_they_are_valid(void)
{
	struct tls_place moving;
	struct ends e;

	tls_place_make(&moving, 0);
	copy(&home, &moving, "server.pem");
	copy(&home, &moving, "server.key");
	copy(&home, &moving, "ca.pem");
	ends_open(&e, "server", &home, "worker");
	mst_tls.unlisten(e.listener);
	mst_credentials_free(e.server);
	e.server = tls_place_load(&moving, "server");
	CU_ASSERT_EQUAL_FATAL(
		mst_tls.listen("127.0.0.1:0", e.server, &e.listener, e.bound, sizeof(e.bound)), 0);
	copy(&abroad, &moving, "server.pem");
	ends_meet(&e); /* the old ones go on */
	mst_tls.close(e.answerer);
	mst_tls.close(e.call);
	e.answerer = e.call = NULL;
	copy(&abroad, &moving, "server.key");
	copy(&abroad, &moving, "ca.pem");
	CU_ASSERT_EQUAL(ends_call(&e), -EACCES);
	mst_credentials_free(e.caller);
	e.caller = e.proof.own = tls_place_load(&abroad, "worker");
	ends_meet(&e);
	ends_close(&e);
	tls_place_remove(&moving);
}

static CU_TestInfo cases[] = {
	{ "both ends learn who the other is", both_ends_learn_who_the_other_is },
	{ "a server of another authority is refused", a_server_of_another_authority_is_refused },
	{ "a worker's certificate makes no server", a_worker_s_certificate_makes_no_server },
	{ "a caller of another authority is told, and never accepted",
	  a_caller_of_another_authority_is_told_and_never_accepted },
	{ "plain text to a port of TLS is answered in plain words",
	  plain_text_to_a_port_of_tls_is_answered_in_plain_words },
	{ "TLS to a plain port is explained", tls_to_a_plain_port_is_explained },
	{ "callers that stop at any byte keep nobody out",
	  callers_that_stop_at_any_byte_keep_nobody_out },
	{ "a peer that shakes no hands is given up in time",
	  a_peer_that_shakes_no_hands_is_given_up_in_time },
	{ "callers that say no more are closed when their time is over",
	  callers_that_say_no_more_are_closed_when_their_time_is_over },
	{ "a caller that sends too much before its proof is refused",
	  a_caller_that_sends_too_much_before_its_proof_is_refused },
	{ "small reads say that more is buffered", small_reads_say_that_more_is_buffered },
	{ "key updates without end are not read for ever",
	  key_updates_without_end_are_not_read_for_ever },
	{ "a forked child closes without a word", a_forked_child_closes_without_a_word },
	{ "bad files are refused by name", bad_files_are_refused_by_name },
	{ "expired and early certificates are refused", dates_are_kept },
	{ "replaced files count once they are valid", replaced_files_count_once_they_are_valid },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	tls_place_make(&home, 0);
	tls_place_make(&abroad, 0);
	int failed = ut_main("tls", cases);
	tls_place_remove(&home);
	tls_place_remove(&abroad);
	return failed;
}
