/* SPDX-License-Identifier: MIT */
#include "tests/transport/far_export.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t exports_lock = PTHREAD_MUTEX_INITIALIZER;
static struct far_export *exports; /* that no acceptor has yet; under the lock, as they all are */

struct far_export *far_export_new(const struct mst_dial *how)
{
	struct far_export *e = calloc(1, sizeof(*e));

	if (e == NULL)
		return NULL;
	e->what = how->export;
	e->ends = 1;
	(void)snprintf(e->address, sizeof(e->address), "%s", how->address);
	memcpy(e->token, how->token, sizeof(e->token));
	pthread_mutex_lock(&exports_lock);
	e->next = exports;
	exports = e;
	pthread_mutex_unlock(&exports_lock);
	return e;
}

static void forget(const struct far_export *e)
{
	struct far_export **at = &exports;

	while (*at != NULL && *at != e)
		at = &(*at)->next;
	if (*at != NULL)
		*at = e->next;
}

struct far_export *far_export_find(const char *address, const uint8_t *token)
{
	pthread_mutex_lock(&exports_lock);
	struct far_export *e = exports;
	while (e != NULL &&
	       (strcmp(e->address, address) != 0 || memcmp(e->token, token, sizeof(e->token)) != 0))
		e = e->next;
	if (e != NULL) {
		forget(e);
		e->ends++;
	}
	pthread_mutex_unlock(&exports_lock);
	return e;
}

void far_export_end(struct far_export *e)
{
	pthread_mutex_lock(&exports_lock);
	forget(e);
	bool last = --e->ends == 0;
	pthread_mutex_unlock(&exports_lock);
	if (last)
		free(e);
}

void far_export_revoke(struct far_export *e)
{
	pthread_mutex_lock(&exports_lock);
	e->what.region = NULL;
	pthread_mutex_unlock(&exports_lock);
}

bool far_export_has(const struct far_export *e, size_t offset, size_t *bytes)
{
	size_t end = e->what.at + e->what.bytes;
	bool inside = offset >= e->what.at && offset < end;
	size_t bound = inside ? end : e->what.at;

	if (offset<end && * bytes> bound - offset)
		*bytes = bound - offset;
	return inside;
}

void far_export_write(const struct far_export *e, size_t offset, const uint8_t *src, size_t bytes)
{
	pthread_mutex_lock(&exports_lock);
	if (e->what.region != NULL)
		memcpy(e->what.region->base + e->what.offset + (offset - e->what.at), src, bytes);
	pthread_mutex_unlock(&exports_lock);
}
