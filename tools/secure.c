/* SPDX-License-Identifier: MIT */
#include "tools/secure.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/log.h"

static struct mst_credentials *credentials; /* until the process ends */

int mst_secure_open(const struct mst_tls_files *files)
{
	struct mst_tls_files all = *files;
	char why[512] = "no memory for certificates";

	mst_tls_files_environment(&all);
	if (mst_credentials_load(&all, &credentials, why, sizeof(why)) == 0)
		return 0;
	mst_error("%s", why);
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
