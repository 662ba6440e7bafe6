/* SPDX-License-Identifier: MIT */
#include "common/transport/tls/wiping.h"

#include <malloc.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

/* For the own key, and 64 bytes at most for each handshake and connection. */
enum { SECRETS_BYTES = 1 << 20, SECRETS_LEAST = 16 };

static void *take(size_t len, const char *file, int line)
{
	(void)file, (void)line;
	return malloc(len);
}

static void wipe(void *p, const char *file, int line)
{
	(void)file, (void)line;
	if (p != NULL)
		OPENSSL_cleanse(p, malloc_usable_size(p));
	free(p);
}

static void *move(void *p, size_t len, const char *file, int line)
{
	void *to = take(len, file, line);

	if (p == NULL || to == NULL)
		return to;
	size_t had = malloc_usable_size(p);
	memcpy(to, p, had < len ? had : len);
	wipe(p, file, line);
	return to;
}

void mst_tls_guard_keys(void)
{
	(void)CRYPTO_set_mem_functions(take, move, wipe);
#ifndef __SANITIZE_ADDRESS__ /* which finds no pointers there: what they point to would be a leak */
	(void)CRYPTO_secure_malloc_init(SECRETS_BYTES, SECRETS_LEAST);
#endif
}
