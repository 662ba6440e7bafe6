/* SPDX-License-Identifier: MIT */
#include "tests/fixtures.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/ut.h"

#define PATH_LEN 512

void fix_folder_new(struct fix_folder *f)
{
	(void)snprintf(f->root, sizeof(f->root), "/tmp/muster-test-XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(f->root));
}

static int forget(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

void fix_folder_free(struct fix_folder *f)
{
	CU_ASSERT_EQUAL(nftw(f->root, forget, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/* Also makes the folders above it. */
static void path_of(const struct fix_folder *f, const char *path, char all[PATH_LEN])
{
	CU_ASSERT_FATAL(path[0] == '/');
	(void)snprintf(all, PATH_LEN, "%s%s", f->root, path);
	for (char *slash = all + strlen(f->root) + 1; (slash = strchr(slash, '/')) != NULL;
	     slash++) {
		*slash = '\0';
		(void)mkdir(all, 0700);
		*slash = '/';
	}
}

void fix_folder_put_bytes(const struct fix_folder *f, const char *path, const void *bytes,
			  size_t len)
{
	char all[PATH_LEN];

	path_of(f, path, all);
	FILE *file = fopen(all, "we");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	CU_ASSERT_EQUAL(fwrite(bytes, 1, len, file), len);
	CU_ASSERT_EQUAL(fclose(file), 0);
}

void fix_folder_put(const struct fix_folder *f, const char *path, const char *text)
{
	fix_folder_put_bytes(f, path, text, strlen(text));
}

void fix_folder_link(const struct fix_folder *f, const char *path, const char *to)
{
	char all[PATH_LEN];

	path_of(f, path, all);
	CU_ASSERT_EQUAL(symlink(to, all), 0);
}

/* ---- the network ---- */

struct fix_net fix_net;

static int take_put(struct mst_link *to, const struct mst_put *put)
{
	return fix_net.put != NULL ? fix_net.put(to, put) : 1;
}

static int answer_dial(struct mst_net *net, const struct mst_dial *how, struct mst_link **out,
		       struct mst_reason *why)
{
	(void)net;
	mst_reason_clear(why);
	return fix_net.dial != NULL ? fix_net.dial(how, out) : -ECONNREFUSED;
}

static int attach(struct mst_net *net, struct mst_link *link, struct mst_reason *why)
{
	(void)net, (void)link;
	mst_reason_clear(why);
	atomic_fetch_add(&fix_net.attached, 1);
	return 0;
}

static void detach(struct mst_link *link)
{
	(void)link;
	atomic_fetch_add(&fix_net.detached, 1);
}

static void link_free(struct mst_link *link)
{
	atomic_fetch_add(&fix_net.freed, 1);
	if (fix_net.heap)
		free(link);
}

struct mst_transport fix_transport = {
	.scheme = "fixture",
	.put = take_put,
	.dial = answer_dial,
	.attach = attach,
	.detach = detach,
	.link_free = link_free,
};

void fix_net_begin(int (*put)(struct mst_link *to, const struct mst_put *put),
		   int (*dial)(const struct mst_dial *how, struct mst_link **out))
{
	fix_net.put = put;
	fix_net.dial = dial;
	fix_net.heap = false;
	atomic_store(&fix_net.attached, 0);
	atomic_store(&fix_net.detached, 0);
	atomic_store(&fix_net.freed, 0);
}
