/* SPDX-License-Identifier: MIT */
#include "common/kernels/variant.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AHEAD_MAX 65536
#define CACHE_SIZE "/sys/devices/system/cpu/cpu0/cache/index3/size"
#define CACHE_BYTES (UINT64_C(128) << 20) /* where the file does not tell */

/* A number, and perhaps K, M or G; up to a comma or the end. */
static int number_parse(const char **text, uint64_t *out)
{
	static const char units[] = "KMG";
	char *end;
	unsigned long long value = strtoull(*text, &end, 10);
	const char *unit = *end != '\0' ? strchr(units, *end) : NULL;
	unsigned shift = unit != NULL ? 10 * (unsigned)(unit - units + 1) : 0;

	if (end == *text || **text == '-' || value > UINT64_MAX >> shift)
		return -EINVAL;
	end += unit != NULL;
	if (*end != ',' && *end != '\0')
		return -EINVAL;
	*out = (uint64_t)value << shift;
	*text = *end == ',' ? end + 1 : end;
	return 0;
}

uint64_t mst_cache_bytes(void)
{
	uint64_t bytes = CACHE_BYTES;
	FILE *file = fopen(CACHE_SIZE, "re");
	char line[32] = "";
	const char *text = line;

	if (file == NULL)
		return bytes;
	if (fgets(line, sizeof(line), file) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		(void)number_parse(&text, &bytes);
	}
	(void)fclose(file);
	return bytes;
}

/* Where a result fills a quarter of the last cache, its sources leave no place for it. */
struct mst_variant mst_variant_default(void)
{
	return (struct mst_variant){
		.tile = 256, .lines = 4, .ahead = 1024, .stream = mst_cache_bytes() / 4
	};
}

/* Return: whether *text begins so; then it is moved on. */
static bool skips(const char **text, const char *word)
{
	bool found = strncmp(*text, word, strlen(word)) == 0;

	*text += found ? strlen(word) : 0;
	return found;
}

static int stream_parse(const char **text, uint64_t *out)
{
	if (!skips(text, "none"))
		return number_parse(text, out);
	*out = MST_STREAM_NEVER;
	if (**text != ',' && **text != '\0')
		return -EINVAL;
	*text += **text == ',';
	return 0;
}

int mst_variant_parse(const char *text, struct mst_variant *v)
{
	uint64_t tile = v->tile, lines = v->lines, ahead = v->ahead, stream = v->stream;
	int rc = 0;

	while (rc == 0 && *text != '\0') {
		if (skips(&text, "tile="))
			rc = number_parse(&text, &tile);
		else if (skips(&text, "lines="))
			rc = number_parse(&text, &lines);
		else if (skips(&text, "ahead="))
			rc = number_parse(&text, &ahead);
		else if (skips(&text, "stream="))
			rc = stream_parse(&text, &stream);
		else
			rc = -EINVAL;
	}
	if (rc != 0 || tile < MST_TILE_MIN || tile > MST_TILE_MAX || (tile & (tile - 1)) != 0)
		return -EINVAL;
	if ((lines != 1 && lines != 2 && lines != 4) || ahead > AHEAD_MAX)
		return -EINVAL;
	*v = (struct mst_variant){ (uint32_t)tile, (uint32_t)lines, (uint32_t)ahead, stream };
	return 0;
}

void mst_variant_text(const struct mst_variant *v, char *text, size_t len)
{
	static const char *const units[] = { "", "K", "M", "G" };
	uint64_t stream = v->stream;
	size_t unit = 0;
	int used = snprintf(text, len, "tile=%" PRIu32 ",lines=%" PRIu32 ",ahead=%" PRIu32, v->tile,
			    v->lines, v->ahead);

	for (; stream != 0 && stream % 1024 == 0 && unit < 3; unit++)
		stream /= 1024;
	if (used < 0 || (size_t)used >= len)
		return;
	if (v->stream == MST_STREAM_NEVER)
		(void)snprintf(text + used, len - (size_t)used, ",stream=none");
	else
		(void)snprintf(text + used, len - (size_t)used, ",stream=%" PRIu64 "%s", stream,
			       units[unit]);
}
