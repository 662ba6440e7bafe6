/* SPDX-License-Identifier: MIT */
/* A job's own small authority: makes the files that `muster key new` leaves, and says what a
 * certificate holds. */
#ifndef MST_TRANSPORT_TLS_AUTHORITY_H
#define MST_TRANSPORT_TLS_AUTHORITY_H

#include <stdint.h>

#include "common/base/reason.h"
#include "common/transport/principal.h"

struct mst_authority_cfg {
	const char *dir;  /* made with mode 0700; if it exists, it has to be empty */
	const char *name; /* stands in the certificates' names */
	uint32_t days;    /* how long they are valid */
	int64_t later_s;  /* seconds from now to when they begin to be valid; may be negative */
};

/* Makes ca.pem and ca.key, and server, worker, operator and observer each as .pem and .key.
 * Replaces no file.
 * @why: on failure a sentence.
 * Return: 0, -EINVAL or another negative errno. */
int mst_authority_new(const struct mst_authority_cfg *cfg, struct mst_reason *why);

#define MST_CERTIFICATE_TIME_LEN 40u

struct mst_certificate {
	struct mst_principal who;
	char issuer[MST_PRINCIPAL_LEN];
	char from[MST_CERTIFICATE_TIME_LEN], until[MST_CERTIFICATE_TIME_LEN];
	bool is_authority, has_expired, is_early;
};

/* Reads a certificate of a PEM file, which may hold several. @index: which one, from 0 on.
 * Return: 0; -ENOENT: there are @index certificates, and no more; -EINVAL: @why says what is wrong
 * with the file. */
int mst_certificate_read(const char *path, unsigned index, struct mst_certificate *out,
			 struct mst_reason *why);

#endif
