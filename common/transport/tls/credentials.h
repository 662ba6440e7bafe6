/* SPDX-License-Identifier: MIT */
/*
 * What a process proves itself with on control connections: a certificate, its key, and the
 * authority whose certificates it believes; PEM files. The role of a certificate is a name in it: a
 * subjectAltName URI or an organizational unit (OU) of the subject that is "muster:worker",
 * "muster:server", "muster:operator" or "muster:observer". A certificate may have several.
 *
 * Files may be replaced while the process runs. Each handshake looks at them, and takes the new
 * ones if they are valid; otherwise the old ones stay, and the log says so once.
 *
 * All functions but mst_credentials_load() and mst_credentials_free() are for any thread.
 */
#ifndef MST_TRANSPORT_TLS_CREDENTIALS_H
#define MST_TRANSPORT_TLS_CREDENTIALS_H

#include "common/base/reason.h"
#include "common/transport/principal.h"

struct mst_credentials;

/* NULL or "": not given. */
struct mst_tls_files {
	const char *ca;   /* the authority's certificates */
	const char *cert; /* the own certificate, then those between it and the authority */
	const char *key;  /* the key of the own certificate */
};

/* Takes from MUSTER_TLS_CA, MUSTER_TLS_CERT and MUSTER_TLS_KEY what is not given. */
void mst_tls_files_environment(struct mst_tls_files *files);

/* Reads and checks the files. *@out: NULL if no file is given: the process uses plain streams.
 * @why: on failure a sentence that names the file and the fix.
 * Return: 0, -EINVAL or -ENOMEM. */
int mst_credentials_load(const struct mst_tls_files *files, struct mst_credentials **out,
			 struct mst_reason *why);
void mst_credentials_free(struct mst_credentials *c); /* accepts NULL */

/* What the own certificate says, as it was loaded. */
void mst_credentials_principal(const struct mst_credentials *c, struct mst_principal *out);

/* The word of a role, "worker"; of several: "worker, server"; of none: "no role". @out has room for
 * MST_ROLES_TEXT_LEN. */
#define MST_ROLES_TEXT_LEN 48u
void mst_roles_text(uint32_t roles, char out[MST_ROLES_TEXT_LEN]);

#endif
