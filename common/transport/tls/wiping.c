/* SPDX-License-Identifier: MIT */
#include "common/transport/tls/wiping.h"

#include <errno.h>
#include <malloc.h>
#include <openssl/crypto.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* For the own key, and 64 bytes at most for each handshake and connection. */
enum { SECRETS_BYTES = 1 << 20, SECRETS_LEAST = 16 };

/* When memory runs out, OpenSSL aborts the process rather than do without a table of its heap of
 * secrets. So blocks for them are allocated first, where the lack of memory can still be reported.
 * The largest table has one bit for each block of each size. */
enum { RESERVE = 4, RESERVE_BYTES = 2 * SECRETS_BYTES / SECRETS_LEAST / 8 };

static struct {
	void *block[RESERVE];
	unsigned left;
} reserve;

static void *take(size_t len, const char *file, int line)
{
	void *p = malloc(len);

	(void)file, (void)line;
	if (p == NULL && reserve.left > 0 && len <= RESERVE_BYTES)
		p = reserve.block[--reserve.left];
	return p;
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

static bool fill_reserve(void)
{
	for (; reserve.left < RESERVE; reserve.left++) {
		reserve.block[reserve.left] = malloc(RESERVE_BYTES);
		if (reserve.block[reserve.left] == NULL)
			return false;
	}
	return true;
}

static void free_reserve(void)
{
	while (reserve.left > 0)
		free(reserve.block[--reserve.left]);
}

int mst_tls_guard_keys(void)
{
	bool guarded = fill_reserve();

	/* Fails where a preloaded library has used OpenSSL before: memory is then not cleared. */
	(void)CRYPTO_set_mem_functions(take, move, wipe);

#ifndef __SANITIZE_ADDRESS__ /* which finds no pointers there: what they point to would be a leak */
	guarded = guarded && (CRYPTO_secure_malloc_initialized() ||
			      CRYPTO_secure_malloc_init(SECRETS_BYTES, SECRETS_LEAST) != 0);
#endif
	free_reserve();
	return guarded ? 0 : -ENOMEM;
}
