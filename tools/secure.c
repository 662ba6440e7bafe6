/* SPDX-License-Identifier: MIT */
#include "tools/secure.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/log.h"
#include "common/base/reason.h"
#include "tools/command.h"

static struct mst_credentials *credentials; /* until the process ends */
static char shown[256];                     /* the file of the certificate */

int mst_secure_open(const struct mst_tls_files *files)
{
	struct mst_tls_files all = *files;
	struct mst_reason why = { "no memory for certificates" };

	mst_tls_files_environment(&all);
	if (mst_credentials_load(&all, &credentials, &why) == 0) {
		if (credentials != NULL)
			(void)snprintf(shown, sizeof(shown), "%s", all.cert);
		return 0;
	}
	mst_error("%s", why.text);
	return -EINVAL;
}

void mst_secure_forget(void)
{
	(void)unsetenv("MUSTER_TLS_CA");
	(void)unsetenv("MUSTER_TLS_CERT");
	(void)unsetenv("MUSTER_TLS_KEY");
}

struct mst_credentials *mst_secure(void)
{
	return credentials;
}

const struct mst_stream_ops *mst_secure_stream(void)
{
	return mst_stream_of(credentials);
}

int mst_secure_exit(int rc)
{
	if (rc == 0)
		return MST_EXIT_DONE;
	if (rc != -EACCES)
		return MST_EXIT_FAILED;
	if (credentials != NULL)
		mst_error("the certificate that was shown is in %s: give one that may do this with "
			  "--tls-cert and --tls-key",
			  shown);
	return MST_EXIT_USAGE;
}
