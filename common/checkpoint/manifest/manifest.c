/* SPDX-License-Identifier: MIT */
/* The file of a manifest. */
#include "common/checkpoint/manifest/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/base/rand.h"
#include "common/checkpoint/names.h"
#include "common/checkpoint/safe_file.h"

/* ---- element types ---- */

static const struct {
	const char *name;
	size_t bytes;
} types[MST_DTYPES] = {
	[MST_DTYPE_F32] = { "F32", 4 }, [MST_DTYPE_BF16] = { "BF16", 2 },
	[MST_DTYPE_F16] = { "F16", 2 }, [MST_DTYPE_U64] = { "U64", 8 },
	[MST_DTYPE_F64] = { "F64", 8 },
};

const char *mst_dtype_name(enum mst_dtype type)
{
	MST_ASSERT((unsigned)type < MST_DTYPES);
	return types[type].name;
}

size_t mst_dtype_bytes(enum mst_dtype type)
{
	MST_ASSERT((unsigned)type < MST_DTYPES);
	return types[type].bytes;
}

int mst_dtype_parse(const char *name, enum mst_dtype *out)
{
	for (unsigned i = 0; i < MST_DTYPES; i++)
		if (strcmp(types[i].name, name) == 0) {
			*out = (enum mst_dtype)i;
			return 0;
		}
	return -EINVAL;
}

/* ---- the file ---- */

#define BYTES_MAX ((off_t)64 << 20)

int mst_checkpoint_draw(char save[MST_CHECKPOINT_SAVE_LEN])
{
	uint8_t bytes[(MST_CHECKPOINT_SAVE_LEN - 1) / 2];
	int rc = mst_rand_secret(bytes, sizeof(bytes));

	for (unsigned i = 0; i < sizeof(bytes) && rc == 0; i++)
		(void)snprintf(save + (size_t)2 * i, 3, "%02x", bytes[i]);
	return rc;
}

void mst_checkpoint_manifest_init(struct mst_checkpoint_manifest *m)
{
	*m = (struct mst_checkpoint_manifest){ 0 };
	mst_values_init(&m->values);
}

void mst_checkpoint_manifest_fini(struct mst_checkpoint_manifest *m)
{
	mst_values_fini(&m->values);
}

/* ---- writing ---- */

static int write_text(const char *dir, const char *name, const char *text, size_t text_len,
		      struct mst_reason *why)
{
	struct mst_safe_file file;
	int rc = mst_safe_file_open(&file, dir, name, text_len, why);

	if (rc == 0)
		rc = mst_safe_file_write(&file, 0, text, text_len);
	if (rc == 0)
		rc = mst_safe_file_commit(&file);
	if (rc != 0)
		mst_safe_file_abandon(&file);
	return rc;
}

int mst_checkpoint_manifest_write(const char *dir, struct mst_checkpoint_manifest *m,
				  struct mst_reason *why)
{
	char name[MST_CHECKPOINT_FILE_LEN];
	char *text = NULL;
	size_t text_len = 0;

	(void)snprintf(m->muster, sizeof(m->muster), "%s", MST_VERSION);
	m->written_ms = mst_wall_ms();
	mst_checkpoint_manifest_name(m->id.version, name);
	int rc = mst_checkpoint_manifest_compose(m, &text, &text_len, why);
	if (rc == 0)
		rc = write_text(dir, name, text, text_len, why);
	free(text);
	return rc;
}

/* ---- reading ---- */

static int read_all(int fd, const char *path, char *into, size_t count, struct mst_reason *why)
{
	while (count > 0) {
		ssize_t got = read(fd, into, count);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return mst_reason_fail(why, -errno, "cannot read %s: %s", path,
					       strerror(errno));
		if (got == 0)
			return mst_reason_fail(why, -EBADMSG, "%s became shorter while it was read",
					       path);
		into += got;
		count -= (size_t)got;
	}
	return 0;
}

static int read_open(int fd, const char *path, struct mst_checkpoint_manifest *out,
		     struct mst_reason *why)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return mst_reason_fail(why, -errno, "cannot read %s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode) || st.st_size > BYTES_MAX)
		return mst_reason_fail(why, -EBADMSG, "%s is not a file, or too large", path);
	char *text = malloc((size_t)st.st_size + 1);
	if (text == NULL)
		return mst_reason_fail(why, -ENOMEM, "no memory for %s", path);
	int rc = read_all(fd, path, text, (size_t)st.st_size, why);
	if (rc == 0) {
		rc = mst_checkpoint_manifest_parse(text, (size_t)st.st_size, out, why);
		if (rc != 0)
			(void)mst_reason_fail(why, rc, "%s cannot be used: %s", path, why->text);
	}
	free(text);
	return rc;
}

/* A manifest that was copied to the name of another version is refused. */
static int check_version(const struct mst_checkpoint_manifest *m, uint64_t version,
			 const char *path, struct mst_reason *why)
{
	if (m->id.version == version)
		return 0;
	return mst_reason_fail(why, -EBADMSG,
			       "%s cannot be used: it is the manifest of version %" PRIu64, path,
			       m->id.version);
}

int mst_checkpoint_manifest_read(const char *dir, uint64_t version,
				 struct mst_checkpoint_manifest *out, struct mst_reason *why)
{
	char name[MST_CHECKPOINT_FILE_LEN], path[MST_CHECKPOINT_PATH];
	struct mst_checkpoint_manifest found;

	mst_checkpoint_manifest_name(version, name);
	int path_len = snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (path_len < 0 || (size_t)path_len >= sizeof(path))
		return mst_reason_fail(why, -ENAMETOOLONG, "the name %.80s... is too long", dir);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return mst_reason_fail(why, -errno, "cannot open %s: %s", path, strerror(errno));
	int rc = read_open(fd, path, &found, why);
	(void)close(fd);
	if (rc != 0)
		return rc;
	rc = check_version(&found, version, path, why);
	if (rc == 0)
		*out = found;
	else
		mst_checkpoint_manifest_fini(&found);
	return rc;
}
