/* SPDX-License-Identifier: MIT */
#include "common/transport/tls/bio.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

static BIO_METHOD *method;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static int wire_read(BIO *bio, char *data, int len)
{
	struct mst_tls_wire *w = BIO_get_data(bio);
	size_t most = (size_t)len < w->allowed ? (size_t)len : (size_t)w->allowed;

	BIO_clear_retry_flags(bio);
	if (most == 0) {
		w->error = -EMSGSIZE;
		return -1;
	}
	ssize_t got = mst_plain.receive(w->below, data, most);
	w->starved = got == -EAGAIN;
	if (got == -EAGAIN) {
		BIO_set_retry_read(bio);
		return -1;
	}
	if (got < 0) {
		w->error = (int)got;
		return -1;
	}
	w->ended = got == 0;
	if (got > 0 && !w->began)
		w->first = (unsigned char)data[0];
	w->began |= got > 0;
	w->allowed -= (uint64_t)got;
	return (int)got;
}

int mst_tls_wire_flush(struct mst_tls_wire *w)
{
	while (w->out_at < w->out_end) {
		ssize_t done = mst_plain.send(w->below, w->out + w->out_at, w->out_end - w->out_at);
		if (done < 0)
			return (int)done;
		w->out_at += (size_t)done;
	}
	w->out_at = w->out_end = 0;
	return 0;
}

/* All or nothing: whoever encrypts has looked for room. */
static ssize_t keep(struct mst_tls_wire *w, const char *data, size_t len)
{
	if (len > MST_TLS_OUT_BYTES - w->out_end)
		return -EAGAIN;
	memcpy(w->out + w->out_end, data, len);
	w->out_end += len;
	return (ssize_t)len;
}

static int wire_write(BIO *bio, const char *data, int len)
{
	struct mst_tls_wire *w = BIO_get_data(bio);
	ssize_t done = w->out != NULL ? keep(w, data, (size_t)len)
				      : mst_plain.send(w->below, data, (size_t)len);

	BIO_clear_retry_flags(bio);
	if (done == -EAGAIN)
		BIO_set_retry_write(bio);
	else if (done < 0)
		w->error = (int)done;
	return done < 0 ? -1 : (int)done;
}

static long wire_ctrl(BIO *bio, int command, long number, void *data)
{
	const struct mst_tls_wire *w = BIO_get_data(bio);

	(void)number, (void)data;
	if (command == BIO_CTRL_EOF)
		return w->ended;
	return command == BIO_CTRL_FLUSH; /* nothing is held back */
}

static int wire_create(BIO *bio)
{
	BIO_set_init(bio, 1);
	return 1;
}

static void make_method(void)
{
	BIO_METHOD *m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "muster");

	if (m != NULL && BIO_meth_set_read(m, wire_read) == 1 &&
	    BIO_meth_set_write(m, wire_write) == 1 && BIO_meth_set_ctrl(m, wire_ctrl) == 1 &&
	    BIO_meth_set_create(m, wire_create) == 1)
		method = m;
}

BIO *mst_tls_bio_new(struct mst_tls_wire *wire)
{
	(void)pthread_once(&once, make_method);
	BIO *bio = method != NULL ? BIO_new(method) : NULL;
	if (bio != NULL)
		BIO_set_data(bio, wire);
	return bio;
}
