/* SPDX-License-Identifier: MIT */
/* The settings of handshakes, and what is believed of a peer's certificate. */
#include "common/transport/tls/context.h"

#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

#include "common/base/text.h"

/* A bound for the peer's certificates: as many of RSA with 4096 bits as the depth allows. OpenSSL
 * reads all that are shown, and builds the key of each, before it looks whether they lead
 * anywhere. */
#define CHAIN_BYTES_MAX (12l << 10)
#define CHAIN_DEPTH_MAX 4
/* The server pays for a key exchange before it knows who calls. These cost it the least; OpenSSL's
 * own list has groups that cost 130 ms of processor time for 1.2 KiB of a stranger. */
#define GROUPS "X25519:P-256"

static const struct role {
	const char *word;
	enum mst_role role;
} roles[] = {
	{ "worker", MST_ROLE_WORKER },
	{ "server", MST_ROLE_SERVER },
	{ "operator", MST_ROLE_OPERATOR },
	{ "observer", MST_ROLE_OBSERVER },
};

#define ROLES (sizeof(roles) / sizeof(roles[0]))
#define PREFIX "muster:"

void mst_roles_text(uint32_t set, char out[MST_ROLES_TEXT_LEN])
{
	size_t used = 0;

	out[0] = '\0';
	for (size_t i = 0; i < ROLES; i++)
		if ((set & roles[i].role) != 0)
			used += (size_t)snprintf(out + used, MST_ROLES_TEXT_LEN - used, "%s%s",
						 used > 0 ? ", " : "", roles[i].word);
	if (used == 0)
		(void)snprintf(out, MST_ROLES_TEXT_LEN, "no role");
}

/* ---- what a certificate says ---- */

/* Compares whole lengths: a NUL within a name must not end it. */
static uint32_t role_of(const ASN1_STRING *name)
{
	const unsigned char *text = ASN1_STRING_get0_data(name);
	size_t len = (size_t)ASN1_STRING_length(name), prefix = strlen(PREFIX);

	if (len <= prefix || memcmp(text, PREFIX, prefix) != 0)
		return 0;
	for (size_t i = 0; i < ROLES; i++) {
		if (len - prefix == strlen(roles[i].word) &&
		    memcmp(text + prefix, roles[i].word, len - prefix) == 0)
			return (uint32_t)roles[i].role;
	}
	return 0;
}

static uint32_t roles_of_uris(X509 *cert)
{
	GENERAL_NAMES *names = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
	uint32_t set = 0;

	for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
		const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
		if (name->type == GEN_URI)
			set |= role_of(name->d.uniformResourceIdentifier);
	}
	GENERAL_NAMES_free(names);
	return set;
}

static uint32_t roles_of_units(const X509_NAME *subject)
{
	uint32_t set = 0;

	for (int i = -1;
	     (i = X509_NAME_get_index_by_NID(subject, NID_organizationalUnitName, i)) >= 0;)
		set |= role_of(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, i)));
	return set;
}

void mst_tls_common_name(const X509_NAME *subject, char out[MST_PRINCIPAL_LEN])
{
	int i = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
	unsigned char *text = NULL;
	int len = -1;

	if (i >= 0)
		len = ASN1_STRING_to_UTF8(
			&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, i)));
	if (len > 0)
		(void)snprintf(out, MST_PRINCIPAL_LEN, "%.*s", len, (const char *)text);
	else
		(void)snprintf(out, MST_PRINCIPAL_LEN, "(no common name)");
	mst_text_clean(out);
	OPENSSL_free(text);
}

void mst_tls_principal(X509 *cert, struct mst_principal *out)
{
	const X509_NAME *subject = X509_get_subject_name(cert);

	*out = (struct mst_principal){ .proven = true };
	out->roles = roles_of_uris(cert) | roles_of_units(subject);
	mst_tls_common_name(subject, out->name);
}

void mst_tls_verify_clause(int error, const char *ca, struct mst_reason *out)
{
	switch (error) {
	case X509_V_ERR_CERT_HAS_EXPIRED:
		mst_reason_set(out,
			       "which has expired by the clock of this host: a new one is needed "
			       "(muster key show FILE says until when one is valid)");
		return;
	case X509_V_ERR_CERT_NOT_YET_VALID:
		mst_reason_set(out,
			       "which is not valid yet by the clock of this host: are both clocks "
			       "right?");
		return;
	case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
	case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
	case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
	case X509_V_ERR_CERT_SIGNATURE_FAILURE:
		mst_reason_set(out,
			       "which is not from the authority in %s: both ends of a job need "
			       "certificates of the same authority",
			       ca);
		return;
	case X509_V_ERR_INVALID_PURPOSE:
		mst_reason_set(out,
			       "whose extended key usage forbids this: servers need serverAuth and "
			       "clientAuth, all others clientAuth");
		return;
	default:
		mst_reason_set(out, "which cannot be believed: %s",
			       X509_verify_cert_error_string(error));
	}
}

/* ---- handshakes ---- */

int mst_tls_no_passphrase(char *buf, int size, int writes, void *ctx)
{
	(void)buf, (void)size, (void)writes, (void)ctx;
	return -1;
}

/* Called for each certificate of the chain, the peer's own last. Return: is it believed? */
static int verify(int is_fine, X509_STORE_CTX *chain)
{
	const SSL *ssl = X509_STORE_CTX_get_ex_data(chain, SSL_get_ex_data_X509_STORE_CTX_idx());
	struct mst_tls_peer *peer = SSL_get_app_data(ssl);
	X509 *cert = X509_STORE_CTX_get0_cert(chain);

	if (cert != NULL)
		mst_tls_principal(cert, &peer->principal);
	if (!is_fine) {
		peer->error = X509_STORE_CTX_get_error(chain);
		return 0;
	}
	if (X509_STORE_CTX_get_error_depth(chain) > 0)
		return 1;
	peer->lacks_role = (peer->principal.roles & peer->believed) == 0;
	if (peer->lacks_role) {
		peer->error = X509_V_ERR_APPLICATION_VERIFICATION;
		X509_STORE_CTX_set_error(chain, peer->error);
	}
	return !peer->lacks_role;
}

SSL_CTX *mst_tls_context_new(void)
{
	/* A thread may still use the library when the process ends: nothing is freed then. */
	(void)OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL);
	SSL_CTX *ctx = SSL_CTX_new(TLS_method());

	if (ctx == NULL)
		return NULL;
	if (SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) != 1 ||
	    SSL_CTX_set_max_proto_version(ctx, TLS1_3_VERSION) != 1 ||
	    SSL_CTX_set1_groups_list(ctx, GROUPS) != 1 || SSL_CTX_set_num_tickets(ctx, 0) != 1) {
		SSL_CTX_free(ctx);
		return NULL;
	}
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, verify);
	SSL_CTX_set_verify_depth(ctx, CHAIN_DEPTH_MAX);
	SSL_CTX_set_max_cert_list(ctx, CHAIN_BYTES_MAX);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	/* The end of a conversation is a message, so an end of the stream needs no other word. */
	SSL_CTX_set_options(ctx, SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_NO_RENEGOTIATION);
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
				      SSL_MODE_RELEASE_BUFFERS);
	/* A read is to end at each record that has nothing for the reader, such as a key update:
	 * the stream counts them. */
	SSL_CTX_clear_mode(ctx, SSL_MODE_AUTO_RETRY);
	return ctx;
}
