/* SPDX-License-Identifier: MIT */
#include "tools/keys.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/transport/tls/authority.h"
#include "common/transport/transport.h"
#include "tools/secure.h"

#define DAYS 3650u /* longer than any run */
#define DIR_LEN 256u
#define PATH_LEN (DIR_LEN + 32u)
#define FILES 3u

static struct {
	char dir[DIR_LEN]; /* "": there is none */
	char server[FILES][PATH_LEN];
	char flag[FILES][PATH_LEN + 16u];
	char *flags[FILES + 1];
} keys;

static int make_directory(struct mst_reason *why)
{
	const char *place = getenv("TMPDIR");

	if (place == NULL || place[0] != '/')
		place = "/tmp";
	int len = snprintf(keys.dir, sizeof(keys.dir), "%s/muster-keys-XXXXXX", place);
	if (len < 0 || (size_t)len >= sizeof(keys.dir))
		errno = ENAMETOOLONG;
	else if (mkdtemp(keys.dir) != NULL)
		return 0;
	int error = -errno;
	keys.dir[0] = '\0';
	return mst_reason_fail(why, error,
			       "--data-tls on makes certificates for this run, and there is no "
			       "place for them in %.120s: %s (TMPDIR names another)",
			       place, strerror(-error));
}

static void name_files(const char *role, char out[FILES][PATH_LEN])
{
	(void)snprintf(out[0], PATH_LEN, "%s/ca.pem", keys.dir);
	(void)snprintf(out[1], PATH_LEN, "%s/%s.pem", keys.dir, role);
	(void)snprintf(out[2], PATH_LEN, "%s/%s.key", keys.dir, role);
}

/* The server's certificate is told by flags, since all that is started inherits the environment. */
static void tell_server(struct mst_server_options *o)
{
	static const char *const option[FILES] = { "--tls-ca", "--tls-cert", "--tls-key" };

	name_files("server", keys.server);
	for (uint32_t i = 0; i < FILES; i++) {
		(void)snprintf(keys.flag[i], sizeof(keys.flag[i]), "%s=%s", option[i],
			       keys.server[i]);
		keys.flags[i] = keys.flag[i];
	}
	o->tls = (struct mst_tls_files){ keys.server[0], keys.server[1], keys.server[2] };
}

static int tell_rest(struct mst_reason *why)
{
	static const char *const variable[FILES] = { "MUSTER_TLS_CA", "MUSTER_TLS_CERT",
						     "MUSTER_TLS_KEY" };
	char path[FILES][PATH_LEN];

	name_files("operator", path);
	struct mst_tls_files own = { path[0], path[1], path[2] };
	if (mst_secure_open(&own) != 0)
		return mst_reason_fail(why, -EINVAL, "cannot use the certificates in %s", keys.dir);
	name_files("worker", path);
	for (uint32_t i = 0; i < FILES; i++)
		if (setenv(variable[i], path[i], 1) != 0)
			return mst_reason_fail(why, -errno, "no memory for the environment");
	return 0;
}

int mst_keys_make(struct mst_server_options *o, struct mst_reason *why)
{
	struct mst_authority_cfg cfg = { .dir = keys.dir, .name = "run", .days = DAYS };

	if (o->fabric.data_tls != MST_DATA_TLS_ON || !mst_server_options_may_encrypt(o))
		return 0;
	int rc = make_directory(why);
	if (rc == 0)
		rc = mst_authority_new(&cfg, why);
	if (rc != 0)
		return rc;
	tell_server(o);
	return tell_rest(why);
}

char *const *mst_keys_flags(void)
{
	return keys.flags;
}

void mst_keys_remove(void)
{
	DIR *dir = keys.dir[0] != '\0' ? opendir(keys.dir) : NULL;
	const struct dirent *entry;
	char path[DIR_LEN + sizeof(entry->d_name) + 1];

	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		(void)snprintf(path, sizeof(path), "%s/%s", keys.dir, entry->d_name);
		if (entry->d_name[0] != '.')
			(void)unlink(path);
	}
	if (dir != NULL)
		(void)closedir(dir);
	if (keys.dir[0] != '\0')
		(void)rmdir(keys.dir);
	keys.dir[0] = '\0';
}
