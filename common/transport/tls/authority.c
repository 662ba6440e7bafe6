/* SPDX-License-Identifier: MIT */
#include "common/transport/tls/authority.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/rand.h"
#include "common/transport/tls/context.h"

#define VERSION_3 2l
#define SERIAL_BYTES 16
#define PEM_MODE 0600
/* Hosts whose clocks are a little late believe a new certificate, too. */
#define EARLY_S (-300l)
#define DAY_S 86400l
#define PATH_LEN 4096u

struct key_pair {
	EVP_PKEY *key;
	X509 *cert;
};

/* What is particular of one certificate. */
struct purpose {
	const char *word; /* the file's name, and the role */
	const char *usage, *extended, *constraints;
};

static const struct purpose authority = { "ca", "critical,keyCertSign,cRLSign", NULL,
					  "critical,CA:TRUE,pathlen:0" };
/* A server that joins another one is its client. */
static const struct purpose members[] = {
	{ "server", "critical,digitalSignature", "serverAuth,clientAuth", "critical,CA:FALSE" },
	{ "worker", "critical,digitalSignature", "clientAuth", "critical,CA:FALSE" },
	{ "operator", "critical,digitalSignature", "clientAuth", "critical,CA:FALSE" },
	{ "observer", "critical,digitalSignature", "clientAuth", "critical,CA:FALSE" },
};

static int library_failed(struct mst_reason *why, const char *what)
{
	const char *reason = ERR_reason_error_string(ERR_peek_last_error());

	mst_reason_set(why, "OpenSSL cannot make %s: %s", what,
		       reason != NULL ? reason : "no reason is known");
	ERR_clear_error();
	return -EIO;
}

/* ---- certificates ---- */

static void pair_free(struct key_pair *p)
{
	EVP_PKEY_free(p->key);
	X509_free(p->cert);
	*p = (struct key_pair){ 0 };
}

static bool extend(X509 *cert, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX ctx;

	if (value == NULL)
		return true;
	X509V3_set_ctx_nodb(&ctx);
	X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
	X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	bool done = extension != NULL && X509_add_ext(cert, extension, -1) == 1;
	X509_EXTENSION_free(extension);
	return done;
}

static bool name_it(X509 *cert, const struct mst_authority_cfg *cfg, const char *word)
{
	char text[MST_PRINCIPAL_LEN];
	X509_NAME *subject = X509_get_subject_name(cert);

	(void)snprintf(text, sizeof(text), "%.48s %s", cfg->name, word);
	return X509_NAME_add_entry_by_NID(subject, NID_commonName, MBSTRING_UTF8,
					  (const unsigned char *)text, -1, -1, 0) == 1;
}

static bool number_it(X509 *cert)
{
	unsigned char serial[SERIAL_BYTES];

	if (mst_rand_secret(serial, sizeof(serial)) != 0)
		return false;
	serial[0] = (unsigned char)((serial[0] & 0x3f) | 0x40); /* positive, of full length */
	BIGNUM *number = BN_bin2bn(serial, sizeof(serial), NULL);
	bool done = number != NULL && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(cert));
	BN_free(number);
	return done;
}

static bool describe(X509 *cert, const struct mst_authority_cfg *cfg, const struct purpose *what,
		     X509 *issuer)
{
	long begin_s = EARLY_S + (long)cfg->later_s;
	long end_s = (long)cfg->days * DAY_S + (long)cfg->later_s;
	char role[64];
	bool is_member = what != &authority;

	(void)snprintf(role, sizeof(role), "URI:muster:%s", what->word);
	return X509_set_version(cert, VERSION_3) == 1 && number_it(cert) &&
	       name_it(cert, cfg, is_member ? what->word : "authority") &&
	       X509_set_issuer_name(cert, X509_get_subject_name(issuer)) == 1 &&
	       X509_gmtime_adj(X509_getm_notBefore(cert), begin_s) != NULL &&
	       X509_gmtime_adj(X509_getm_notAfter(cert), end_s) != NULL &&
	       extend(cert, issuer, NID_basic_constraints, what->constraints) &&
	       extend(cert, issuer, NID_key_usage, what->usage) &&
	       extend(cert, issuer, NID_ext_key_usage, what->extended) &&
	       extend(cert, issuer, NID_subject_alt_name, is_member ? role : NULL) &&
	       extend(cert, issuer, NID_subject_key_identifier, "hash") &&
	       extend(cert, issuer, NID_authority_key_identifier, is_member ? "keyid" : NULL);
}

/* @ca: NULL: the pair is the authority itself. To be freed either way. */
static int make_pair(const struct mst_authority_cfg *cfg, const struct purpose *what,
		     const struct key_pair *ca, struct key_pair *out)
{
	out->key = EVP_EC_gen("P-256");
	out->cert = X509_new();
	if (out->key == NULL || out->cert == NULL || X509_set_pubkey(out->cert, out->key) != 1)
		return -EIO;
	if (ca == NULL)
		ca = out;
	return describe(out->cert, cfg, what, ca->cert) &&
			       X509_sign(out->cert, ca->key, EVP_sha256()) > 0
		       ? 0
		       : -EIO;
}

/* ---- files ---- */

static int make_dir(const char *path, struct mst_reason *why)
{
	if (mkdir(path, 0700) == 0)
		return 0;
	if (errno != EEXIST) {
		mst_reason_set(why, "cannot make the directory %s: %s", path, strerror(errno));
		return -EINVAL;
	}
	DIR *dir = opendir(path);
	uint32_t entries = 0;
	if (dir == NULL) {
		mst_reason_set(why, "cannot use the directory %s: %s", path, strerror(errno));
		return -EINVAL;
	}
	while (readdir(dir) != NULL)
		entries++;
	bool is_private = entries > 2 || chmod(path, 0700) == 0;
	closedir(dir);
	if (entries > 2)
		mst_reason_set(why,
			       "%s is not empty, and no key is replaced: name another directory",
			       path);
	else if (!is_private)
		mst_reason_set(why, "cannot make %s private: %s", path, strerror(errno));
	return entries > 2 || !is_private ? -EINVAL : 0;
}

/* Opens a file that does not exist yet. */
static FILE *create(const char *dir, const char *word, const char *ending, struct mst_reason *why)
{
	char path[PATH_LEN];
	int len = snprintf(path, sizeof(path), "%s/%s.%s", dir, word, ending);
	int fd = len > 0 && (size_t)len < sizeof(path)
			 ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
				PEM_MODE)
			 : -1;
	FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;

	if (out == NULL)
		mst_reason_set(why, "cannot make %.300s: %s", path, strerror(errno));
	if (out == NULL && fd >= 0)
		close(fd);
	return out;
}

static int close_written(FILE *out, bool written, const char *word, struct mst_reason *why)
{
	written = fflush(out) == 0 && fsync(fileno(out)) == 0 && written;
	if (fclose(out) == 0 && written)
		return 0;
	mst_reason_set(why, "cannot write the files of %s: %s", word, strerror(errno));
	return -EIO;
}

static int write_pair(const struct mst_authority_cfg *cfg, const char *word,
		      const struct key_pair *pair, struct mst_reason *why)
{
	FILE *out = create(cfg->dir, word, "key", why);
	int rc = -EIO;

	if (out != NULL)
		rc = close_written(
			out,
			PEM_write_PKCS8PrivateKey(out, pair->key, NULL, NULL, 0, NULL, NULL) == 1,
			word, why);
	if (rc != 0)
		return rc;
	out = create(cfg->dir, word, "pem", why);
	return out != NULL ? close_written(out, PEM_write_X509(out, pair->cert) == 1, word, why)
			   : -EIO;
}

static int make_member(const struct mst_authority_cfg *cfg, const struct purpose *what,
		       const struct key_pair *ca, struct mst_reason *why)
{
	struct key_pair member = { 0 };
	int rc = make_pair(cfg, what, ca, &member);

	rc = rc != 0 ? library_failed(why, what->word) : write_pair(cfg, what->word, &member, why);
	pair_free(&member);
	return rc;
}

static void remove_pair(const char *dir, const char *word)
{
	static const char *const ending[] = { "key", "pem" };
	char path[PATH_LEN];

	for (size_t i = 0; i < sizeof(ending) / sizeof(ending[0]); i++) {
		int len = snprintf(path, sizeof(path), "%s/%s.%s", dir, word, ending[i]);
		if (len > 0 && (size_t)len < sizeof(path))
			(void)unlink(path);
	}
}

/* The directory was empty. Half of a set of files is of no use, and the next try would refuse a
 * directory that is not empty. */
static void remove_all(const char *dir)
{
	remove_pair(dir, authority.word);
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		remove_pair(dir, members[i].word);
}

int mst_authority_new(const struct mst_authority_cfg *cfg, struct mst_reason *why)
{
	struct key_pair ca = { 0 };
	int rc = make_dir(cfg->dir, why);

	if (rc != 0)
		return rc;
	rc = make_pair(cfg, &authority, NULL, &ca);
	rc = rc != 0 ? library_failed(why, "an authority")
		     : write_pair(cfg, authority.word, &ca, why);
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]) && rc == 0; i++)
		rc = make_member(cfg, &members[i], &ca, why);
	if (rc != 0)
		remove_all(cfg->dir);
	pair_free(&ca);
	return rc;
}

/* ---- what a certificate says ---- */

static void write_time(const ASN1_TIME *time, char out[MST_CERTIFICATE_TIME_LEN])
{
	struct tm tm;

	out[0] = '\0';
	if (ASN1_TIME_to_tm(time, &tm) == 1)
		(void)strftime(out, MST_CERTIFICATE_TIME_LEN, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

/* The certificate with this number; NULL: there is none. */
static X509 *read_nth(FILE *in, unsigned index)
{
	X509 *cert = PEM_read_X509(in, NULL, mst_tls_no_passphrase, NULL);

	for (unsigned i = 0; i < index && cert != NULL; i++) {
		X509_free(cert);
		cert = PEM_read_X509(in, NULL, mst_tls_no_passphrase, NULL);
	}
	return cert;
}

int mst_certificate_read(const char *path, unsigned index, struct mst_certificate *out,
			 struct mst_reason *why)
{
	FILE *in = fopen(path, "re");
	X509 *cert = in != NULL ? read_nth(in, index) : NULL;
	int error = errno;

	if (in != NULL)
		(void)fclose(in);
	if (cert == NULL) {
		bool is_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
		ERR_clear_error();
		if (in != NULL && index > 0 && is_end)
			return -ENOENT;
		mst_reason_set(why,
			       in != NULL ? "%s holds no certificate in PEM format%s"
					  : "cannot read %s: %s",
			       path, in != NULL ? "" : strerror(error));
		return -EINVAL;
	}
	*out = (struct mst_certificate){ .is_authority = X509_check_ca(cert) > 0 };
	mst_tls_principal(cert, &out->who);
	mst_tls_common_name(X509_get_issuer_name(cert), out->issuer);
	write_time(X509_get0_notBefore(cert), out->from);
	write_time(X509_get0_notAfter(cert), out->until);
	out->is_early = X509_cmp_current_time(X509_get0_notBefore(cert)) > 0;
	out->has_expired = X509_cmp_current_time(X509_get0_notAfter(cert)) < 0;
	X509_free(cert);
	return 0;
}
