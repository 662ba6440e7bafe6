/* SPDX-License-Identifier: MIT */
#include "common/transport/tls/stream.h"

#include <assert.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/sslerr.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/reason.h"
#include "common/transport/channel.h"
#include "common/transport/tls/failure.h"

struct mst_stream {
	struct mst_tls_state tls;
};

/* How many records in a row may have nothing for the reader. OpenSSL sends none, an honest peer of
 * another library few. */
#define IDLE_RECORDS_MAX 16u

/* What a channel reads at a time; the library adds its own overhead. */
#define READ_BYTES ((size_t)64 << 10)
static_assert(READ_BYTES + 2 * MST_TLS_RECORD_BYTES <= MST_CHANNEL_AHEAD_MAX,
	      "what is read ahead, and a record that is open");
/* AES-128 is the cheapest where processors have it, which they mostly do; this end's list counts
 * where it calls. */
#define CHANNEL_CIPHERS "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"

/* ---- beginning and end ---- */

struct mst_tls_state *mst_tls_state_of(struct mst_stream *s)
{
	return &s->tls;
}

/* Buffers stay, and an end that nobody has told is told apart. */
static int make_bulk(struct mst_stream *s)
{
	s->tls.bulk = calloc(1, sizeof(*s->tls.bulk));
	if (s->tls.bulk == NULL)
		return -ENOMEM;
	s->tls.wire.out = s->tls.bulk->out;
	(void)SSL_clear_mode(s->tls.ssl, SSL_MODE_RELEASE_BUFFERS);
	(void)SSL_clear_options(s->tls.ssl, SSL_OP_IGNORE_UNEXPECTED_EOF);
	SSL_set_read_ahead(s->tls.ssl, 1);
	SSL_set_default_read_buffer_len(s->tls.ssl, READ_BYTES);
	mst_tls_channel_begin(&s->tls);
	return SSL_set_ciphersuites(s->tls.ssl, CHANNEL_CIPHERS) == 1 ? 0 : -ENOMEM;
}

static uint32_t roles_believed(const struct mst_tls_begin *begin)
{
	if (!begin->serves)
		return MST_ROLE_SERVER;
	return begin->channel ? (uint32_t)(MST_ROLE_WORKER | MST_ROLE_SERVER) : MST_ROLES_ALL;
}

int mst_tls_stream_new(const struct mst_tls_begin *begin, struct mst_stream **out)
{
	struct mst_stream *s = calloc(1, sizeof(*s));
	SSL_CTX *ctx = mst_credentials_context(begin->own);
	BIO *bio = NULL;

	if (s != NULL) {
		s->tls.wire = (struct mst_tls_wire){ .below = begin->below,
						     .allowed = MST_TLS_HANDSHAKE_BYTES };
		s->tls.ssl = SSL_new(ctx);
		bio = mst_tls_bio_new(&s->tls.wire);
	}
	SSL_CTX_free(ctx);
	if (s == NULL || s->tls.ssl == NULL || bio == NULL ||
	    (begin->channel && make_bulk(s) != 0)) {
		BIO_free(bio);
		if (s != NULL) {
			SSL_free(s->tls.ssl);
			free(s->tls.bulk);
		}
		free(s);
		mst_plain.close(begin->below);
		ERR_clear_error();
		return -ENOMEM;
	}
	SSL_set_bio(s->tls.ssl, bio, bio);
	SSL_set_app_data(s->tls.ssl, &s->tls.who);
	if (begin->serves)
		SSL_set_accept_state(s->tls.ssl);
	else
		SSL_set_connect_state(s->tls.ssl);
	s->tls.own = begin->own;
	s->tls.serves = begin->serves;
	s->tls.who.believed = roles_believed(begin);
	s->tls.owner = getpid();
	(void)snprintf(s->tls.peer, sizeof(s->tls.peer), "%s", begin->peer);
	*out = s;
	return 0;
}

void mst_tls_stream_close(struct mst_stream *s)
{
	if (s == NULL)
		return;
	/* A child of fork() has no word in it: what it sent would be the parent's. */
	if (s->tls.bulk != NULL)
		mst_tls_channel_end(s);
	else if (s->tls.shaken && s->tls.broken == 0 && !s->tls.mute && s->tls.owner == getpid())
		(void)SSL_shutdown(s->tls.ssl);
	SSL_free(s->tls.ssl);
	ERR_clear_error();
	mst_plain.close(s->tls.wire.below);
	free(s->tls.bulk);
	free(s);
}

/* ---- failures ---- */

static bool has_just_ended(const struct mst_stream *s)
{
	return s->tls.wire.ended &&
	       ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
}

/* Has any of what the library says that reason? */
static bool is_for_memory(void)
{
	unsigned long one;
	bool found = false;

	while ((one = ERR_get_error()) != 0)
		found |= ERR_GET_REASON(one) == ERR_R_MALLOC_FAILURE;
	return found;
}

/* Notes why nothing goes any more.
 * Return: what is broken. */
static int fail(struct mst_stream *s)
{
	if (has_just_ended(s))
		ERR_clear_error(); /* the wire says it */
	struct mst_tls_failure f = { .peer = s->tls.peer,
				     .serves = s->tls.serves,
				     .channel = s->tls.bulk != NULL,
				     .shaking = !s->tls.shaken,
				     .files = mst_credentials_files(s->tls.own),
				     .who = &s->tls.who,
				     .wire = &s->tls.wire,
				     .reason = ERR_peek_error() };

	f.memory = is_for_memory();
	s->tls.broken = mst_tls_explain(&f, &s->tls.why);
	return s->tls.broken;
}

/* ---- the handshake ---- */

/* What the library has written is with the kernel before anything else is thought of. */
static int flush(struct mst_stream *s)
{
	int rc = mst_tls_wire_flush(&s->tls.wire);

	s->tls.wants_room = rc == -EAGAIN;
	if (rc < 0 && rc != -EAGAIN)
		s->tls.wire.error = rc;
	return rc;
}

int mst_tls_stream_shake(struct mst_stream *s)
{
	if (s->tls.broken != 0)
		return s->tls.broken;
	ERR_clear_error();
	int done = SSL_do_handshake(s->tls.ssl);
	int want = done == 1 ? SSL_ERROR_NONE : SSL_get_error(s->tls.ssl, done);
	int rc = flush(s);
	if (rc == -EAGAIN)
		return rc;
	if (done == 1 && rc == 0) {
		s->tls.shaken = true;
		s->tls.wire.allowed = UINT64_MAX;
		return 0;
	}
	s->tls.wants_room = want == SSL_ERROR_WANT_WRITE;
	if (rc == 0 && (want == SSL_ERROR_WANT_READ || want == SSL_ERROR_WANT_WRITE))
		return -EAGAIN;
	return fail(s);
}

bool mst_tls_stream_wants_room(const struct mst_stream *s)
{
	return s->tls.wants_room;
}

/* ---- bytes ---- */

ssize_t mst_tls_stream_send(struct mst_stream *s, const void *data, size_t len)
{
	size_t done = 0;

	if (s->tls.broken != 0)
		return -EPIPE;
	if (len == 0)
		return 0;
	ERR_clear_error();
	int rc = SSL_write_ex(s->tls.ssl, data, len, &done);
	if (rc == 1)
		return (ssize_t)done;
	if (SSL_get_error(s->tls.ssl, rc) == SSL_ERROR_WANT_WRITE)
		return -EAGAIN;
	/* The peer may have said why before: receive() still reads that. */
	ERR_clear_error();
	s->tls.mute = true;
	return -EPIPE;
}

ssize_t mst_tls_stream_read_nothing(struct mst_stream *s, int rc)
{
	switch (SSL_get_error(s->tls.ssl, rc)) {
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	case SSL_ERROR_WANT_READ:
		return s->tls.wire.starved ? -EAGAIN : 1;
	case SSL_ERROR_WANT_WRITE:
		return -EAGAIN;
	case SSL_ERROR_SYSCALL:
		if (s->tls.wire.ended && ERR_peek_error() == 0)
			return 0;
		return fail(s);
	default:
		if (has_just_ended(s))
			return 0;
		return fail(s);
	}
}

/* It may be called while a send() waits for room. A peer that asks for new keys then gets them with
 * the send() after that. One that asks a second time before has its stream broken by OpenSSL, whose
 * answer would have to go into the middle of what waits (3.0: "bad length"); no TLS library asks
 * again before it has the answer. */
ssize_t mst_tls_stream_receive(struct mst_stream *s, void *data, size_t len)
{
	size_t got = 0;

	if (s->tls.broken != 0)
		return s->tls.broken;
	for (; s->tls.idle < IDLE_RECORDS_MAX; s->tls.idle++) {
		ERR_clear_error();
		s->tls.wire.starved = false;
		int rc = SSL_read_ex(s->tls.ssl, data, len, &got);
		if (rc == 1) {
			s->tls.idle = 0;
			return (ssize_t)got;
		}
		ssize_t nothing = mst_tls_stream_read_nothing(s, rc);
		if (nothing != 1)
			return nothing;
	}
	mst_reason_set(&s->tls.why, "%s%s sent %u records of TLS in a row that hold no message",
		       s->tls.serves ? "" : "the server at ", s->tls.peer, IDLE_RECORDS_MAX);
	s->tls.broken = -EPROTO;
	return s->tls.broken;
}

bool mst_tls_stream_buffered(const struct mst_stream *s)
{
	return s->tls.broken == 0 && SSL_pending(s->tls.ssl) > 0;
}

const char *mst_tls_stream_why(const struct mst_stream *s)
{
	return s->tls.why.text[0] != '\0' ? s->tls.why.text : NULL;
}

void mst_tls_stream_principal(const struct mst_stream *s, struct mst_principal *out)
{
	*out = s->tls.who.principal;
}

int mst_tls_stream_fd(const struct mst_stream *s)
{
	return mst_plain.stream_fd(s->tls.wire.below);
}
