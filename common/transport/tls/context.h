/* SPDX-License-Identifier: MIT */
/* Declarations that the files of this directory share: what credentials give to a handshake, and
 * what a certificate says. */
#ifndef MST_TRANSPORT_TLS_CONTEXT_H
#define MST_TRANSPORT_TLS_CONTEXT_H

#include <openssl/ssl.h>

#include "common/base/reason.h"
#include "common/transport/tls/credentials.h"

/* What is found out about the peer of a handshake; the application data of its SSL. */
struct mst_tls_peer {
	uint32_t believed; /* roles of which it has to have one */
	bool lacks_role;
	int error;                      /* X509_V_ERR_...; X509_V_OK: none */
	struct mst_principal principal; /* of its certificate, once there is one */
};

/* What new handshakes use, of the files as they are now; the caller frees it. Logs if files were
 * replaced. */
SSL_CTX *mst_credentials_context(struct mst_credentials *c);
const struct mst_tls_files *mst_credentials_files(const struct mst_credentials *c);

/* Roles and name of a certificate. */
void mst_tls_principal(X509 *cert, struct mst_principal *out);

/* The common name in @name, without what a terminal would obey. */
void mst_tls_common_name(const X509_NAME *name, char out[MST_PRINCIPAL_LEN]);

/* Why a certificate is not believed: "which has expired ...". @ca: the file of the authority. */
void mst_tls_verify_clause(int error, const char *ca, struct mst_reason *out);

/* A callback for PEM files: nobody is there to type a passphrase. */
int mst_tls_no_passphrase(char *buf, int size, int writes, void *ctx);

/* The handshakes' settings, without files. NULL: no memory. */
SSL_CTX *mst_tls_context_new(void);

#endif
