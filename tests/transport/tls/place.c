/* SPDX-License-Identifier: MIT */
#include "tests/transport/tls/place.h"

#include <dirent.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/transport/tls/authority.h"
#include "common/transport/tls/handshakes.h"

#define PATHS 32u

static atomic_bool *lacks_memory;

static void *take(size_t bytes, const char *file, int line)
{
	void *p = malloc(bytes);

	(void)file, (void)line;
	*lacks_memory |= p == NULL;
	return p;
}

static void *move(void *old, size_t bytes, const char *file, int line)
{
	void *p = realloc(old, bytes);

	(void)file, (void)line;
	*lacks_memory |= p == NULL;
	return p;
}

static void give(void *p, const char *file, int line)
{
	(void)file, (void)line;
	free(p);
}

void tls_place_allocate(atomic_bool *lacks)
{
	lacks_memory = lacks;
	MST_ASSERT(CRYPTO_set_mem_functions(take, move, give) == 1);
}

void tls_place_make(struct tls_place *p, int64_t later_s)
{
	struct mst_authority_cfg cfg = {
		.dir = p->dir, .name = "test", .days = 1, .later_s = later_s
	};
	struct mst_reason why = { "" };

	mst_tls_handshake_ns = 60 * MST_SECOND; /* the test, which calls, may stand still */
	(void)snprintf(p->dir, sizeof(p->dir), "/tmp/muster-test-tls-XXXXXX");
	MST_ASSERT(mkdtemp(p->dir) != NULL);
	if (mst_authority_new(&cfg, &why) != 0) {
		(void)fprintf(stderr, "%s\n", why.text);
		abort();
	}
}

void tls_place_remove(struct tls_place *p)
{
	DIR *dir = p->dir[0] != '\0' ? opendir(p->dir) : NULL;
	const struct dirent *entry;

	if (dir == NULL)
		return;
	while ((entry = readdir(dir)) != NULL)
		if (entry->d_name[0] != '.')
			(void)unlink(tls_place_path(p, entry->d_name));
	closedir(dir);
	(void)rmdir(p->dir);
}

const char *tls_place_path(const struct tls_place *p, const char *name)
{
	static _Thread_local char path[PATHS][512];
	static _Thread_local unsigned next;
	char *out = path[next++ % PATHS];

	(void)snprintf(out, sizeof(path[0]), "%s/%s", p->dir, name);
	return out;
}

struct mst_credentials *tls_place_load(const struct tls_place *p, const char *role)
{
	char cert[64], key[64];
	struct mst_reason why = { "" };
	struct mst_credentials *c = NULL;

	(void)snprintf(cert, sizeof(cert), "%s.pem", role);
	(void)snprintf(key, sizeof(key), "%s.key", role);
	struct mst_tls_files files = { tls_place_path(p, "ca.pem"), tls_place_path(p, cert),
				       tls_place_path(p, key) };
	if (mst_credentials_load(&files, &c, &why) != 0) {
		(void)fprintf(stderr, "%s\n", why.text);
		abort();
	}
	return c;
}
