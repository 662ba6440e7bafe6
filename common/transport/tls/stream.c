/* SPDX-License-Identifier: MIT */
#include "common/transport/tls/stream.h"

#include <errno.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/reason.h"
#include "common/transport/tls/failure.h"

/* How many records in a row may have nothing for the reader. OpenSSL sends none, an honest peer of
 * another library few. */
#define IDLE_RECORDS_MAX 16u
#define PEER_LEN 280u

struct mst_stream {
	SSL *ssl;
	struct mst_tls_wire wire;
	struct mst_tls_peer who;
	struct mst_credentials *own;
	bool serves, shaken, wants_room;
	bool mute;     /* a send has failed: SSL_shutdown() is not for such a stream */
	unsigned idle; /* records in a row that had nothing for the reader */
	int broken;    /* what each call gives from now on; 0: all is well */
	pid_t owner;   /* who may say to the peer that the stream is closed */
	char peer[PEER_LEN];
	struct mst_reason why;
};

/* ---- beginning and end ---- */

int mst_tls_stream_new(const struct mst_tls_begin *begin, struct mst_stream **out)
{
	struct mst_stream *s = calloc(1, sizeof(*s));
	SSL_CTX *ctx = mst_credentials_context(begin->own);
	BIO *bio = NULL;

	if (s != NULL) {
		s->wire = (struct mst_tls_wire){ .below = begin->below,
						 .allowed = MST_TLS_HANDSHAKE_BYTES };
		s->ssl = SSL_new(ctx);
		bio = mst_tls_bio_new(&s->wire);
	}
	SSL_CTX_free(ctx);
	if (s == NULL || s->ssl == NULL || bio == NULL) {
		BIO_free(bio);
		if (s != NULL)
			SSL_free(s->ssl);
		free(s);
		mst_plain.close(begin->below);
		ERR_clear_error();
		return -ENOMEM;
	}
	SSL_set_bio(s->ssl, bio, bio);
	SSL_set_app_data(s->ssl, &s->who);
	if (begin->serves)
		SSL_set_accept_state(s->ssl);
	else
		SSL_set_connect_state(s->ssl);
	s->own = begin->own;
	s->serves = begin->serves;
	s->who.must_serve = !begin->serves;
	s->owner = getpid();
	(void)snprintf(s->peer, sizeof(s->peer), "%s", begin->peer);
	*out = s;
	return 0;
}

void mst_tls_stream_close(struct mst_stream *s)
{
	if (s == NULL)
		return;
	/* A child of fork() has no word in it: what it sent would be the parent's. */
	if (s->shaken && s->broken == 0 && !s->mute && s->owner == getpid())
		(void)SSL_shutdown(s->ssl);
	SSL_free(s->ssl);
	ERR_clear_error();
	mst_plain.close(s->wire.below);
	free(s);
}

/* ---- failures ---- */

/* Notes why nothing goes any more.
 * Return: what is broken. */
static int fail(struct mst_stream *s)
{
	struct mst_tls_failure f = { .peer = s->peer,
				     .serves = s->serves,
				     .shaking = !s->shaken,
				     .files = mst_credentials_files(s->own),
				     .who = &s->who,
				     .wire = &s->wire,
				     .reason = ERR_peek_error() };

	s->broken = mst_tls_explain(&f, &s->why);
	ERR_clear_error();
	return s->broken;
}

/* ---- the handshake ---- */

int mst_tls_stream_shake(struct mst_stream *s)
{
	if (s->broken != 0)
		return s->broken;
	ERR_clear_error();
	int done = SSL_do_handshake(s->ssl);
	if (done == 1) {
		s->shaken = true;
		s->wire.allowed = UINT64_MAX;
		return 0;
	}
	int want = SSL_get_error(s->ssl, done);
	s->wants_room = want == SSL_ERROR_WANT_WRITE;
	if (want == SSL_ERROR_WANT_READ || want == SSL_ERROR_WANT_WRITE)
		return -EAGAIN;
	return fail(s);
}

bool mst_tls_stream_wants_room(const struct mst_stream *s)
{
	return s->wants_room;
}

/* ---- bytes ---- */

ssize_t mst_tls_stream_send(struct mst_stream *s, const void *data, size_t len)
{
	size_t done = 0;

	if (s->broken != 0)
		return -EPIPE;
	if (len == 0)
		return 0;
	ERR_clear_error();
	int rc = SSL_write_ex(s->ssl, data, len, &done);
	if (rc == 1)
		return (ssize_t)done;
	if (SSL_get_error(s->ssl, rc) == SSL_ERROR_WANT_WRITE)
		return -EAGAIN;
	/* The peer may have said why before: receive() still reads that. */
	ERR_clear_error();
	s->mute = true;
	return -EPIPE;
}

/* Nothing was read: is that the end, or only a record that is not the reader's?
 * Return: 1: it is, read again. */
static ssize_t read_nothing(struct mst_stream *s, int rc)
{
	switch (SSL_get_error(s->ssl, rc)) {
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	case SSL_ERROR_WANT_READ:
		return s->wire.starved ? -EAGAIN : 1;
	case SSL_ERROR_WANT_WRITE:
		return -EAGAIN;
	case SSL_ERROR_SYSCALL:
		if (s->wire.ended && ERR_peek_error() == 0)
			return 0;
		return fail(s);
	default:
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

	if (s->broken != 0)
		return s->broken;
	for (; s->idle < IDLE_RECORDS_MAX; s->idle++) {
		ERR_clear_error();
		s->wire.starved = false;
		int rc = SSL_read_ex(s->ssl, data, len, &got);
		if (rc == 1) {
			s->idle = 0;
			return (ssize_t)got;
		}
		ssize_t nothing = read_nothing(s, rc);
		if (nothing != 1)
			return nothing;
	}
	mst_reason_set(&s->why, "%s%s sent %u records of TLS in a row that hold no message",
		       s->serves ? "" : "the server at ", s->peer, IDLE_RECORDS_MAX);
	s->broken = -EPROTO;
	return s->broken;
}

bool mst_tls_stream_buffered(const struct mst_stream *s)
{
	return s->broken == 0 && SSL_pending(s->ssl) > 0;
}

const char *mst_tls_stream_why(const struct mst_stream *s)
{
	return s->why.text[0] != '\0' ? s->why.text : NULL;
}

void mst_tls_stream_principal(const struct mst_stream *s, struct mst_principal *out)
{
	*out = s->who.principal;
}

int mst_tls_stream_fd(const struct mst_stream *s)
{
	return mst_plain.stream_fd(s->wire.below);
}
