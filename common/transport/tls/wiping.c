/* SPDX-License-Identifier: MIT */
#include "common/transport/tls/wiping.h"

#include <malloc.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

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

void mst_tls_wipe_what_is_freed(void)
{
	(void)CRYPTO_set_mem_functions(take, move, wipe);
}
