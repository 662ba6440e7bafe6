/* SPDX-License-Identifier: MIT */
#include "common/transport/tls/credentials.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/transport/tls/context.h"

#define FILE_BYTES_MAX (1u << 20)
#define FILES 3u
#define CLAUSE_LEN 300u

/* What stat() says of a file. If it has changed, the file was replaced. */
struct stamp {
	dev_t device;
	ino_t inode;
	off_t size;
	struct timespec changed;
};

struct mst_credentials {
	char *path[FILES];
	struct mst_tls_files files; /* the paths again */
	struct mst_principal principal;
	pthread_mutex_t lock; /* protects the members below */
	SSL_CTX *ctx;
	struct stamp seen[FILES];
};

static __attribute__((format(printf, 2, 3))) int invalid(struct mst_reason *why, const char *fmt,
							 ...)
{
	va_list args;

	va_start(args, fmt);
	mst_reason_vset(why, fmt, args);
	va_end(args);
	ERR_clear_error();
	return -EINVAL;
}

/* ---- files ---- */

struct tls_file {
	const char *path;
	bool secret;
	char *text;
	size_t len, room;
};

static void content_free(struct tls_file *c)
{
	if (c->text != NULL)
		OPENSSL_cleanse(c->text, c->room);
	free(c->text);
	c->text = NULL;
}

/* A key of the superuser may be read by a group, as secrets are laid that a service manager or a
 * container gives to a process of another user. */
static bool others_may_read(const struct stat *st)
{
	mode_t open = S_IRWXG | S_IRWXO;

	if (st->st_uid == 0 && geteuid() != 0)
		open &= ~(mode_t)S_IRGRP;
	return (st->st_mode & open) != 0;
}

static int check_file(const struct tls_file *c, const struct stat *st, struct mst_reason *why)
{
	if (!S_ISREG(st->st_mode))
		return invalid(why, "%s is no regular file; a file in PEM format is wanted",
			       c->path);
	if (st->st_size == 0)
		return invalid(why, "%s is empty; a file in PEM format is wanted", c->path);
	if (st->st_size > (off_t)FILE_BYTES_MAX)
		return invalid(why, "%s has %lld bytes, which is no certificate or key", c->path,
			       (long long)st->st_size);
	if (c->secret && others_may_read(st))
		return invalid(
			why,
			"others may read the key in %s (its mode is %04o): chmod 600 %s, and "
			"if anybody may have read it, make a new one",
			c->path, (unsigned)(st->st_mode & 07777), c->path);
	return 0;
}

static int read_all(int fd, struct tls_file *c)
{
	ssize_t got = 1;

	while (got > 0 && c->len < c->room - 1) {
		got = read(fd, c->text + c->len, c->room - 1 - c->len);
		c->len += got > 0 ? (size_t)got : 0;
	}
	c->text[c->len] = '\0';
	return got < 0 ? -errno : 0;
}

/* The content is to be freed either way. */
static int read_file(struct tls_file *c, struct mst_reason *why)
{
	int fd = open(c->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc;
	struct stat st;

	if (fd < 0)
		return invalid(why, "cannot read %s: %s", c->path, strerror(errno));
	rc = fstat(fd, &st) == 0 ? check_file(c, &st, why)
				 : invalid(why, "cannot read %s: %s", c->path, strerror(errno));
	if (rc == 0) {
		c->room = (size_t)st.st_size + 1;
		c->text = malloc(c->room);
		rc = c->text == NULL ? -ENOMEM : read_all(fd, c);
		if (rc != 0)
			(void)invalid(why, "cannot read %s: %s", c->path, strerror(-rc));
	}
	close(fd);
	if (rc == 0 && strstr(c->text, "-----BEGIN ") == NULL)
		return invalid(why,
			       "%s is not in PEM format, which is text with a line that begins "
			       "with -----BEGIN; openssl x509 and openssl pkey convert",
			       c->path);
	return rc != 0 ? -EINVAL : 0;
}

static const char *library_says(void)
{
	const char *reason = ERR_reason_error_string(ERR_peek_last_error());

	return reason != NULL ? reason : "no reason is known";
}

/* ---- each file ---- */

static int use_authority(SSL_CTX *ctx, const struct tls_file *file, struct mst_reason *why)
{
	X509_STORE *store = SSL_CTX_get_cert_store(ctx);
	BIO *bio = BIO_new_mem_buf(file->text, (int)file->len);
	X509 *cert;
	int count = 0;

	while (bio != NULL &&
	       (cert = PEM_read_bio_X509(bio, NULL, mst_tls_no_passphrase, NULL)) != NULL) {
		count += X509_STORE_add_cert(store, cert);
		X509_free(cert);
	}
	BIO_free(bio);
	ERR_clear_error(); /* of the search for one more */
	/* An authority between a root and the certificates may be the one that is believed. */
	(void)X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN);
	if (count == 0)
		return invalid(why, "%s holds no certificate; --tls-ca wants the authority's",
			       file->path);
	return 0;
}

static int use_certificate(SSL_CTX *ctx, const struct tls_file *file, struct mst_reason *why)
{
	BIO *bio = BIO_new_mem_buf(file->text, (int)file->len);
	X509 *cert = bio != NULL ? PEM_read_bio_X509(bio, NULL, mst_tls_no_passphrase, NULL) : NULL;
	int rc = 0;

	if (cert == NULL)
		rc = invalid(why, "%s holds no certificate (%s)", file->path, library_says());
	else if (SSL_CTX_use_certificate(ctx, cert) != 1)
		rc = invalid(why, "the certificate in %s cannot be used: %s", file->path,
			     library_says());
	X509_free(cert);
	while (rc == 0 &&
	       (cert = PEM_read_bio_X509(bio, NULL, mst_tls_no_passphrase, NULL)) != NULL) {
		if (SSL_CTX_add0_chain_cert(ctx, cert) != 1) {
			X509_free(cert);
			rc = invalid(why, "a certificate in %s cannot be used: %s", file->path,
				     library_says());
		}
	}
	BIO_free(bio);
	ERR_clear_error();
	return rc;
}

static int use_key(SSL_CTX *ctx, const struct tls_file *file, const char *cert_path,
		   struct mst_reason *why)
{
	BIO *bio = BIO_new_mem_buf(file->text, (int)file->len);
	EVP_PKEY *key = bio != NULL
				? PEM_read_bio_PrivateKey(bio, NULL, mst_tls_no_passphrase, NULL)
				: NULL;
	int rc = 0;

	BIO_free(bio);
	if (key == NULL && strstr(file->text, "ENCRYPTED") != NULL)
		rc = invalid(why,
			     "the key in %s has a passphrase, and nobody is there to type it: "
			     "openssl pkey -in %s -out FILE takes it off",
			     file->path, file->path);
	else if (key == NULL)
		rc = invalid(why, "%s holds no key (%s)", file->path, library_says());
	else if (X509_check_private_key(SSL_CTX_get0_certificate(ctx), key) != 1)
		rc = invalid(why, "the key in %s does not belong to the certificate in %s",
			     file->path, cert_path);
	else if (SSL_CTX_use_PrivateKey(ctx, key) != 1)
		rc = invalid(why, "the key in %s cannot be used: %s", file->path, library_says());
	EVP_PKEY_free(key);
	return rc;
}

/* Would a peer of the same authority believe the own certificate? */
static int check_own(SSL_CTX *ctx, const struct mst_tls_files *files, struct mst_reason *why)
{
	X509 *own = SSL_CTX_get0_certificate(ctx);
	X509_STORE_CTX *chain = X509_STORE_CTX_new();
	STACK_OF(X509) *between = NULL;
	struct mst_principal who;
	int rc = 0;

	(void)SSL_CTX_get0_chain_certs(ctx, &between);
	if (chain == NULL ||
	    X509_STORE_CTX_init(chain, SSL_CTX_get_cert_store(ctx), own, between) != 1) {
		rc = invalid(why, "no memory to check %s", files->cert);
	} else if (X509_verify_cert(chain) != 1) {
		mst_tls_verify_clause(X509_STORE_CTX_get_error(chain), files->ca, why);
		rc = invalid(why, "%s holds a certificate %s", files->cert, why->text);
	}
	X509_STORE_CTX_free(chain);
	mst_tls_principal(own, &who);
	if (rc == 0 && who.roles == 0)
		rc = invalid(why,
			     "the certificate in %s has no role: a subjectAltName URI or an OU has "
			     "to be muster:worker, muster:server, muster:operator or "
			     "muster:observer",
			     files->cert);
	return rc;
}

/* Finds once what is between the own certificate and the authority. Else OpenSSL would look for it
 * in every handshake, check its signatures each time, and send the authority's certificate too,
 * which the peer has. */
static void complete_chain(SSL_CTX *ctx)
{
	STACK_OF(X509) *between = NULL;
	bool given = SSL_CTX_get0_chain_certs(ctx, &between) == 1 && sk_X509_num(between) > 0;

	if (given || SSL_CTX_build_cert_chain(ctx, SSL_BUILD_CHAIN_FLAG_NO_ROOT) == 1)
		(void)SSL_CTX_set_mode(ctx, SSL_MODE_NO_AUTO_CHAIN);
	ERR_clear_error();
}

static int use_files(SSL_CTX *ctx, const struct mst_tls_files *files, struct mst_reason *why)
{
	struct tls_file ca = { .path = files->ca }, cert = { .path = files->cert };
	struct tls_file key = { .path = files->key, .secret = true };
	int rc = read_file(&ca, why);

	if (rc == 0)
		rc = use_authority(ctx, &ca, why);
	if (rc == 0)
		rc = read_file(&cert, why);
	if (rc == 0)
		rc = use_certificate(ctx, &cert, why);
	if (rc == 0)
		rc = read_file(&key, why);
	if (rc == 0)
		rc = use_key(ctx, &key, files->cert, why);
	if (rc == 0)
		rc = check_own(ctx, files, why);
	if (rc == 0)
		complete_chain(ctx);
	content_free(&ca);
	content_free(&cert);
	content_free(&key);
	return rc;
}

static int load_context(const struct mst_tls_files *files, SSL_CTX **out, struct mst_reason *why)
{
	SSL_CTX *ctx = mst_tls_context_new();

	if (ctx == NULL)
		return invalid(why, "OpenSSL offers no TLS 1.3 here: %s", library_says());
	int rc = use_files(ctx, files, why);
	if (rc != 0) {
		SSL_CTX_free(ctx);
		return rc;
	}
	*out = ctx;
	return 0;
}

/* ---- beginning and end ---- */

static bool is_given(const char *path)
{
	return path != NULL && path[0] != '\0';
}

static const char *choose(const char *given, const char *variable)
{
	return is_given(given) ? given : getenv(variable);
}

void mst_tls_files_environment(struct mst_tls_files *files)
{
	files->ca = choose(files->ca, "MUSTER_TLS_CA");
	files->cert = choose(files->cert, "MUSTER_TLS_CERT");
	files->key = choose(files->key, "MUSTER_TLS_KEY");
}

static int check_given(const struct mst_tls_files *f, struct mst_reason *why)
{
	static const char *const option[FILES] = { "--tls-ca", "--tls-cert", "--tls-key" };
	const char *const path[FILES] = { f->ca, f->cert, f->key };
	uint32_t given = 0, missing = FILES;

	for (uint32_t i = 0; i < FILES; i++) {
		given += is_given(path[i]);
		if (!is_given(path[i]))
			missing = i;
	}
	if (given == 0 || given == FILES)
		return (int)given;
	return invalid(why,
		       "%s is missing: TLS needs --tls-ca, --tls-cert and --tls-key; or "
		       "MUSTER_TLS_CA, MUSTER_TLS_CERT and MUSTER_TLS_KEY",
		       option[missing]);
}

static void look(const struct mst_credentials *c, struct stamp seen[FILES])
{
	struct stat st;

	for (uint32_t i = 0; i < FILES; i++) {
		memset(&seen[i], 0, sizeof(seen[i])); /* with what lies between its members */
		if (stat(c->path[i], &st) != 0)
			continue;
		seen[i].device = st.st_dev;
		seen[i].inode = st.st_ino;
		seen[i].size = st.st_size;
		seen[i].changed = st.st_ctim;
	}
}

int mst_credentials_load(const struct mst_tls_files *files, struct mst_credentials **out,
			 struct mst_reason *why)
{
	int rc = check_given(files, why);

	*out = NULL;
	if (rc <= 0)
		return rc;
	struct mst_credentials *c = calloc(1, sizeof(*c));
	if (c == NULL)
		return mst_reason_fail(why, -ENOMEM, "no memory for certificates");
	pthread_mutex_init(&c->lock, NULL);
	c->path[0] = strdup(files->ca);
	c->path[1] = strdup(files->cert);
	c->path[2] = strdup(files->key);
	c->files = (struct mst_tls_files){ c->path[0], c->path[1], c->path[2] };
	look(c, c->seen);
	if (c->path[0] == NULL || c->path[1] == NULL || c->path[2] == NULL)
		rc = invalid(why, "no memory for the names of three files");
	else
		rc = load_context(&c->files, &c->ctx, why);
	if (rc != 0) {
		mst_credentials_free(c);
		return rc;
	}
	mst_tls_principal(SSL_CTX_get0_certificate(c->ctx), &c->principal);
	*out = c;
	return 0;
}

void mst_credentials_free(struct mst_credentials *c)
{
	if (c == NULL)
		return;
	SSL_CTX_free(c->ctx); /* wipes the key, as soon as no stream uses it */
	for (uint32_t i = 0; i < FILES; i++)
		free(c->path[i]);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

void mst_credentials_principal(const struct mst_credentials *c, struct mst_principal *out)
{
	*out = c->principal;
}

const struct mst_tls_files *mst_credentials_files(const struct mst_credentials *c)
{
	return &c->files;
}

/* ---- files that are replaced ---- */

/* Under the lock. */
static void renew(struct mst_credentials *c)
{
	struct stamp now[FILES];
	struct mst_reason why;
	SSL_CTX *fresh;

	look(c, now);
	if (memcmp(now, c->seen, sizeof(now)) == 0)
		return;
	memcpy(c->seen, now, sizeof(now));
	if (load_context(&c->files, &fresh, &why) != 0) {
		mst_warn("the files of TLS have changed and are not taken: %s; the ones before "
			 "stay in use until the files change again",
			 why.text);
		return;
	}
	SSL_CTX_free(c->ctx);
	c->ctx = fresh;
	mst_info("the files of TLS have changed: new connections use what is in %s", c->files.cert);
}

SSL_CTX *mst_credentials_context(struct mst_credentials *c)
{
	pthread_mutex_lock(&c->lock);
	renew(c);
	SSL_CTX *ctx = c->ctx;
	SSL_CTX_up_ref(ctx);
	pthread_mutex_unlock(&c->lock);
	return ctx;
}
