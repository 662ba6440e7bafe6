/* SPDX-License-Identifier: MIT */
#include "common/transport/tls/failure.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/sslerr.h>
#include <string.h>

#include "common/base/reason.h"

#define RECORD_ALERT 21
#define RECORD_HANDSHAKE 22
#define CLAUSE_LEN 400u

/* What the peer says of this end's certificate, in alerts of TLS. */
static const struct alert {
	int reason;
	const char *says;
} alerts[] = {
	{ SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED, "wants a certificate, and was shown none" },
	{ SSL_R_TLSV1_ALERT_UNKNOWN_CA,
	  "believes another authority: both ends of a job need certificates of the same one" },
	{ SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED,
	  "says that it has expired: are its dates and the clock there right?" },
	{ SSL_R_SSLV3_ALERT_BAD_CERTIFICATE,
	  "says that it is not valid yet, or broken: are its dates and the clock there right?" },
	{ SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE,
	  "says that its extended key usage forbids this" },
	{ SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE,
	  "finds no role in it that is believed there (muster:server of a server; of others any "
	  "role, and for data muster:worker)" },
	{ SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED, "says that it has been revoked" },
	{ SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN, "cannot verify it" },
};

static const char *alert_of(int reason)
{
	for (size_t i = 0; i < sizeof(alerts) / sizeof(alerts[0]); i++)
		if (alerts[i].reason == reason)
			return alerts[i].says;
	return NULL;
}

static bool is_old(int reason)
{
	return reason == SSL_R_UNSUPPORTED_PROTOCOL || reason == SSL_R_VERSION_TOO_LOW ||
	       reason == SSL_R_TLSV1_ALERT_PROTOCOL_VERSION || reason == SSL_R_UNKNOWN_PROTOCOL ||
	       reason == SSL_R_WRONG_SSL_VERSION;
}

static void explain_peer(const struct mst_tls_failure *f, struct mst_reason *clause)
{
	char roles[MST_ROLES_TEXT_LEN];
	struct mst_reason cause;

	mst_roles_text(f->who->principal.roles, roles);
	mst_tls_verify_clause(f->who->error, f->files->ca, &cause);
	if (f->who->lacks_role && f->who->believed == MST_ROLE_SERVER)
		mst_reason_set(clause,
			       "shows the certificate \"%s\", which has %s and is no server's: a "
			       "server's names muster:server",
			       f->who->principal.name, roles);
	else if (f->who->lacks_role && f->channel)
		mst_reason_set(clause,
			       "shows the certificate \"%s\", which has %s and may send no "
			       "gradients: a worker's names muster:worker, a server's "
			       "muster:server",
			       f->who->principal.name, roles);
	else if (f->who->lacks_role)
		mst_reason_set(clause,
			       "shows the certificate \"%s\", which has no role: a URI or OU of it "
			       "has to be muster:worker, muster:server, muster:operator or "
			       "muster:observer",
			       f->who->principal.name);
	else
		mst_reason_set(clause, "shows the certificate \"%s\", %s", f->who->principal.name,
			       cause.text);
}

/* The peer speaks no TLS: of a caller, an old muster or one that has no certificates is likely. */
static const char *plain(const struct mst_tls_failure *f)
{
	if (f->channel)
		return "does not speak TLS on its data port, which this process wants: start "
		       "both with certificates, or the server with --data-tls off";
	if (f->serves)
		return "does not speak TLS, which this server wants: the caller needs --tls-ca, "
		       "--tls-cert and --tls-key, or MUSTER_TLS_CA, MUSTER_TLS_CERT and "
		       "MUSTER_TLS_KEY";
	return "does not speak TLS: it was started without --tls-ca, --tls-cert and --tls-key, is "
	       "of an older release, or is no muster server; this process wants TLS by its "
	       "--tls-ca or MUSTER_TLS_CA";
}

static int explain_rest(const struct mst_tls_failure *f, int reason, struct mst_reason *clause)
{
	const char *text = ERR_reason_error_string(f->reason);

	if (f->wire->error == -EMSGSIZE)
		mst_reason_set(clause, "sent more than %u bytes without a proof",
			       MST_TLS_HANDSHAKE_BYTES);
	else if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE)
		mst_reason_set(clause, "shows no certificate");
	else if (f->reason != 0)
		mst_reason_set(clause, "%s: %s",
			       f->shaking ? "broke the handshake of TLS" : "broke TLS",
			       text != NULL ? text : "no reason is known");
	else if (f->wire->error != 0)
		mst_reason_set(clause, "is gone: %s", strerror(-f->wire->error));
	else
		mst_reason_set(clause, "closed the connection within the handshake");
	if (f->reason != 0)
		return reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE ? -EACCES : -EPROTO;
	return f->wire->error == -EMSGSIZE ? -EPROTO : -ECONNRESET;
}

static int explain(const struct mst_tls_failure *f, struct mst_reason *clause)
{
	int reason = ERR_GET_REASON(f->reason);
	const char *alert = alert_of(reason);

	if (f->who->error != X509_V_OK) {
		explain_peer(f, clause);
		return -EACCES;
	}
	if (f->wire->began && f->wire->first != RECORD_HANDSHAKE &&
	    f->wire->first != RECORD_ALERT) {
		mst_reason_set(clause, "%s", plain(f));
		return -EPROTO;
	}
	if (alert != NULL) {
		mst_reason_set(clause, "refuses the certificate in %s: it %s", f->files->cert,
			       alert);
		return -EACCES;
	}
	if (is_old(reason)) {
		mst_reason_set(clause, "speaks an older TLS than 1.3");
		return -EPROTO;
	}
	return explain_rest(f, reason, clause);
}

/* The library calls it an internal error, too, where a call of its own finds no memory. */
static bool has_failed_here(const struct mst_tls_failure *f)
{
	int reason = ERR_GET_REASON(f->reason);

	return f->memory || reason == ERR_R_INTERNAL_ERROR || reason == ERR_R_INIT_FAIL;
}

int mst_tls_explain(const struct mst_tls_failure *f, struct mst_reason *why)
{
	if (has_failed_here(f))
		return mst_reason_fail(why, -ENOMEM,
				       "TLS with %s%s has failed in this process, which may be "
				       "short of memory: %s",
				       f->serves ? "" : "the server at ", f->peer,
				       strerror(ENOMEM));
	int rc = explain(f, why);

	mst_reason_set(why, "%s%s %s", f->serves ? "" : "the server at ", f->peer, why->text);
	return rc;
}
