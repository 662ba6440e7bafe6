/* SPDX-License-Identifier: MIT */
/* Parses the header of a safetensors file, and checks every value. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/crc32c.h"
#include "common/base/reason.h"
#include "common/checkpoint/manifest/json.h"
#include "common/checkpoint/manifest/tensors.h"

#define CRC_DIGITS 8u
#define METADATA "__metadata__"
#define TENSOR "tensor/"
/* How many quotes a tensor has at least, and a metadatum. */
#define TENSOR_QUOTES 10u
#define ABOUT_QUOTES 4u

/* A key of the metadata, and its text. */
struct about {
	const char *key, *value;
	const char *place; /* of the value in the header, after its quote */
	bool used;         /* a tensor has it */
};

/* What is read, before it is a file. */
struct header_reading {
	struct mst_json json;
	struct mst_tensor_file *file;
	struct about *about; /* by their keys */
	uint32_t abouts, abouts_max, tensors_max;
	char *names; /* keys, values and names, one after the other */
	size_t used, room;
	uint64_t format; /* MST_CHECKPOINT_FORMAT, or a later one */
	const char *wrong;
};

static bool refuse(struct header_reading *r, const char *wrong)
{
	if (r->wrong == NULL)
		r->wrong = wrong;
	return false;
}

/* ---- texts that stay ---- */

static const char *stay(struct header_reading *r)
{
	const char *text = r->names + r->used;

	r->used += strlen(text) + 1;
	return text;
}

static const char *read_key(struct header_reading *r)
{
	return mst_json_key(&r->json, r->names + r->used, r->room - r->used) ? stay(r) : NULL;
}

static const char *read_text(struct header_reading *r)
{
	return mst_json_text(&r->json, r->names + r->used, r->room - r->used) ? stay(r) : NULL;
}

/* ---- what the JSON has ---- */

static bool read_about(struct header_reading *r)
{
	struct about *about = &r->about[r->abouts];

	if (r->abouts == r->abouts_max)
		return refuse(r, "its header has too many metadata");
	about->key = read_key(r);
	if (mst_json_peek(&r->json) != '"')
		return mst_json_refuse(&r->json, "a metadatum is not a text");
	about->place = r->json.at + 1;
	about->value = read_text(r);
	about->used = false;
	r->abouts++;
	return about->key != NULL && about->value != NULL;
}

static bool read_metadata(struct header_reading *r)
{
	if (r->abouts > 0)
		return refuse(r, "its header has " METADATA " twice");
	if (!mst_json_enter(&r->json, '{'))
		return false;
	while (mst_json_more(&r->json))
		if (!read_about(r))
			return false;
	return r->json.wrong == NULL;
}

static bool read_dtype(struct mst_json *j, struct mst_tensor_entry *t)
{
	char name[16];

	if (!mst_json_text(j, name, sizeof(name)))
		return false;
	return mst_dtype_parse(name, &t->type) == 0 ||
	       mst_json_refuse(j, "a tensor's dtype is none of ours");
}

/* An array of @count whole numbers. */
static bool read_array(struct mst_json *j, uint64_t *out, unsigned count)
{
	if (!mst_json_enter(j, '['))
		return false;
	for (unsigned i = 0; i < count; i++)
		if (!mst_json_more(j) || !mst_json_u64(j, &out[i]))
			return mst_json_refuse(j, "an array has too few numbers");
	return !mst_json_more(j) || mst_json_refuse(j, "an array has too many numbers");
}

/* One member of a tensor. @seen: those that were there before. */
static bool read_member(struct mst_json *j, struct mst_tensor_entry *t, unsigned *seen)
{
	static const char *const keys[] = { "dtype", "shape", "data_offsets" };
	char key[16];
	uint64_t offsets[2];
	unsigned k = 0;

	if (!mst_json_key(j, key, sizeof(key)))
		return false;
	while (k < 3 && strcmp(key, keys[k]) != 0)
		k++;
	if (k == 3 || (*seen & 1u << k) != 0)
		return mst_json_refuse(j, "a tensor has a key twice, or one that is not ours");
	*seen |= 1u << k;
	if (k == 0)
		return read_dtype(j, t);
	if (k == 1)
		return read_array(j, &t->count, 1);
	if (!read_array(j, offsets, 2))
		return false;
	t->begin = offsets[0];
	t->end = offsets[1];
	return true;
}

static bool read_tensor(struct header_reading *r, const char *name)
{
	struct mst_tensor_entry *t = &r->file->tensor[r->file->tensors];
	unsigned seen = 0;

	if (r->file->tensors == r->tensors_max)
		return refuse(r, "its header has too many tensors");
	*t = (struct mst_tensor_entry){ .name = name };
	if (!mst_json_enter(&r->json, '{'))
		return false;
	while (mst_json_more(&r->json))
		if (!read_member(&r->json, t, &seen))
			return false;
	if (seen != 7)
		return mst_json_refuse(&r->json, "a tensor lacks a key");
	r->file->tensors++;
	return true;
}

static bool read_all(struct header_reading *r)
{
	const char *name;

	if (!mst_json_enter(&r->json, '{'))
		return false;
	while (mst_json_more(&r->json)) {
		name = read_key(r);
		if (name == NULL ||
		    !(strcmp(name, METADATA) == 0 ? read_metadata(r) : read_tensor(r, name)))
			return false;
	}
	return mst_json_end(&r->json);
}

/* ---- metadata ---- */

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct about *)a)->key, ((const struct about *)b)->key);
}

static bool sort_metadata(struct header_reading *r)
{
	if (r->abouts > 0)
		qsort(r->about, r->abouts, sizeof(*r->about), by_key);
	for (uint32_t i = 1; i < r->abouts; i++)
		if (by_key(&r->about[i - 1], &r->about[i]) == 0)
			return refuse(r, "its metadata have a key twice");
	return true;
}

static const struct about *find_about(const struct header_reading *r, const char *key)
{
	struct about wanted = { .key = key };

	if (r->abouts == 0)
		return NULL;
	return bsearch(&wanted, r->about, r->abouts, sizeof(*r->about), by_key);
}

static const char *value_of(struct header_reading *r, const char *key)
{
	const struct about *about = find_about(r, key);

	return about != NULL ? about->value : NULL;
}

static bool take_u64(struct header_reading *r, const char *key, uint64_t *out)
{
	const char *value = value_of(r, key);
	const char *end = value != NULL ? value + strlen(value) : NULL;

	if (value != NULL && mst_json_digits(value, end, out) == end)
		return true;
	return refuse(r, "its metadata lack a number that each part has");
}

static bool take_text(struct header_reading *r, const char *key, char *out, size_t room)
{
	const char *value = value_of(r, key);

	if (value == NULL || strlen(value) >= room)
		return refuse(r, "its metadata lack a text that each part has");
	memcpy(out, value, strlen(value) + 1);
	return true;
}

static bool take_crc(const char *text, uint32_t *out)
{
	static const char digits[] = "0123456789abcdef";

	*out = 0;
	for (unsigned i = 0; i < CRC_DIGITS; i++) {
		const char *found = text[i] != '\0' ? strchr(digits, text[i]) : NULL;
		if (found == NULL)
			return false;
		*out = *out << 4 | (uint32_t)(found - digits);
	}
	return text[CRC_DIGITS] == '\0';
}

/* The checksum is that of the header with zeros in place of the checksum itself. */
static bool check_crc(struct header_reading *r, const char *header, size_t len)
{
	const struct about *about = find_about(r, "header_crc32c");
	uint32_t *crc = &r->file->header_crc, found;

	if (about == NULL || !take_crc(about->value, crc) ||
	    memcmp(about->place, about->value, CRC_DIGITS) != 0)
		return refuse(r, "its header has no checksum");
	found = mst_crc32c(0, header, (size_t)(about->place - header));
	found = mst_crc32c(found, "00000000", CRC_DIGITS);
	const char *rest = about->place + CRC_DIGITS;
	found = mst_crc32c(found, rest, len - (size_t)(rest - header));
	return found == *crc || refuse(r, "the checksum of its header is wrong");
}

static bool take_common(struct header_reading *r)
{
	struct mst_tensor_file *f = r->file;
	uint64_t part = 0, parts = 0;

	if (!take_text(r, "job", f->id.job, sizeof(f->id.job)) ||
	    !take_text(r, "save", f->id.save, sizeof(f->id.save)) ||
	    !take_u64(r, "version", &f->id.version) || !take_u64(r, "elems", &f->id.elems) ||
	    !take_u64(r, "part", &part) || !take_u64(r, "parts", &parts) ||
	    !take_u64(r, "first", &f->first) || !take_u64(r, "count", &f->count))
		return false;
	if (part >= parts || parts > MST_CHECKPOINT_PARTS_MAX || f->first > f->id.elems ||
	    f->count > f->id.elems - f->first)
		return refuse(r, "its metadata contradict each other");
	f->part = (uint32_t)part;
	f->parts = (uint32_t)parts;
	return true;
}

/* ---- what the metadata say of a tensor ---- */

static const char *after(const char *at, const char *word)
{
	size_t len = strlen(word);

	return at != NULL && strncmp(at, word, len) == 0 ? at + len : NULL;
}

static const char *number_after(const char *at, const char *word, uint64_t *out)
{
	at = after(at, word);
	return at != NULL ? mst_json_digits(at, at + strlen(at), out) : NULL;
}

/* "group=parameters first=0 offset=0 of=100 crc32c=8a9136aa" */
static bool parse_about(const char *text, struct mst_tensor_entry *t)
{
	const char *at = after(text, "group=");
	size_t len = at != NULL ? strcspn(at, " ") : 0;

	if (len == 0 || len >= sizeof(t->group))
		return false;
	memcpy(t->group, at, len);
	t->group[len] = '\0';
	at = number_after(at + len, " first=", &t->first);
	at = number_after(at, " offset=", &t->offset);
	at = number_after(at, " of=", &t->total);
	at = after(at, " crc32c=");
	return at != NULL && take_crc(at, &t->crc);
}

static bool use_about(struct header_reading *r, struct about *about, struct mst_tensor_entry *t)
{
	if (about->used)
		return refuse(r, "two of its tensors have the same name");
	about->used = true;
	return parse_about(about->value, t) ||
	       refuse(r, "its metadata of a tensor are not as they should be");
}

static bool take_about(struct header_reading *r, struct mst_tensor_entry *t)
{
	struct about wanted = { .key = t->name };
	uint32_t low = 0, high = r->abouts;

	while (low < high) { /* bsearch() by what follows the word */
		uint32_t middle = low + (high - low) / 2;
		const char *key = r->about[middle].key;
		int order = strncmp(key, TENSOR, strlen(TENSOR));
		if (order == 0)
			order = strcmp(key + strlen(TENSOR), wanted.key);
		if (order == 0)
			return use_about(r, &r->about[middle], t);
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return refuse(r, "its metadata lack a tensor");
}

/* ---- what fits together ---- */

static int by_begin(const void *a, const void *b)
{
	const struct mst_tensor_entry *x = a, *y = b;

	return x->begin < y->begin ? -1 : x->begin > y->begin;
}

static bool check_tensor(struct header_reading *r, const struct mst_tensor_entry *t, uint64_t begin)
{
	const struct mst_tensor_file *f = r->file;

	if (t->begin != begin || t->end <= t->begin ||
	    t->count != (t->end - t->begin) / mst_dtype_bytes(t->type) ||
	    (t->end - t->begin) % mst_dtype_bytes(t->type) != 0)
		return refuse(r, "the places of its tensors do not fit each other");
	if (t->first < f->first || t->count > f->count || t->first - f->first > f->count - t->count)
		return refuse(r, "a tensor lies outside of the part");
	if (t->offset > t->total || t->count > t->total - t->offset)
		return refuse(r, "a tensor is longer than itself");
	return true;
}

static bool check_places(struct header_reading *r)
{
	struct mst_tensor_file *f = r->file;
	uint64_t begin = 0;

	if (f->tensors > 0)
		qsort(f->tensor, f->tensors, sizeof(*f->tensor), by_begin);
	for (uint32_t i = 0; i < f->tensors; i++) {
		if (!check_tensor(r, &f->tensor[i], begin))
			return false;
		begin = f->tensor[i].end;
	}
	return begin == f->bytes - f->data || refuse(r, "its data are longer or shorter than its "
							"header says");
}

/* Is a group the first of its name? @begin: the tensors with which the groups begin so far. */
static bool begin_group(struct header_reading *r, uint32_t tensor, uint32_t *begin,
			uint32_t *groups)
{
	const struct mst_tensor_entry *all = r->file->tensor;

	if (*groups == MST_CHECKPOINT_GROUPS_MAX)
		return refuse(r, "it has too many groups");
	for (uint32_t i = 0; i < *groups; i++)
		if (strcmp(all[begin[i]].group, all[tensor].group) == 0)
			return refuse(r, "the tensors of a group do not follow each other");
	begin[(*groups)++] = tensor;
	return true;
}

/* The tensors of each group follow each other, and cover the part in order. */
static bool check_groups(struct header_reading *r)
{
	const struct mst_tensor_file *f = r->file;
	uint64_t end = f->first + f->count, next = end;
	uint32_t begin[MST_CHECKPOINT_GROUPS_MAX], groups = 0;

	for (uint32_t i = 0; i < f->tensors; i++) {
		const struct mst_tensor_entry *t = &f->tensor[i];
		bool same = i > 0 && strcmp(t->group, t[-1].group) == 0 && t->type == t[-1].type;
		if (!same && next != end)
			return refuse(r, "a group of it ends too early");
		if (!same && !begin_group(r, i, begin, &groups))
			return false;
		if (t->first != (same ? next : f->first))
			return refuse(r, "its tensors are not in order");
		next = t->first + t->count;
	}
	return next == end || refuse(r, "a group of it ends too early");
}

static bool check_format(struct header_reading *r)
{
	const char *format = value_of(r, "format");

	if (format == NULL || strcmp(format, "muster-checkpoint") != 0)
		return refuse(r, "it is no part of a checkpoint of muster");
	return true;
}

/* What later formats have is not judged. */
static bool check_version(struct header_reading *r)
{
	return take_u64(r, "format_version", &r->format) && r->format == MST_CHECKPOINT_FORMAT;
}

static bool judge(struct header_reading *r, const char *header, size_t len)
{
	if (!sort_metadata(r) || !check_format(r) || !check_crc(r, header, len) ||
	    !check_version(r) || !take_common(r))
		return false;
	for (uint32_t i = 0; i < r->file->tensors; i++)
		if (!take_about(r, &r->file->tensor[i]))
			return false;
	return check_places(r) && check_groups(r);
}

/* ---- from the outside ---- */

static uint64_t length_of(const char *header)
{
	uint64_t length = 0;

	for (unsigned i = MST_TENSORS_PREFIX; i-- > 0;)
		length = length << 8 | (uint8_t)header[i];
	return length;
}

static int reading_init(struct header_reading *r, const char *header, size_t len)
{
	uint32_t quotes = 0;

	for (size_t i = MST_TENSORS_PREFIX; i < len; i++)
		quotes += header[i] == '"';
	r->tensors_max = quotes / TENSOR_QUOTES + 1;
	r->abouts_max = quotes / ABOUT_QUOTES + 1;
	r->room = len + 1;
	r->names = malloc(r->room);
	r->about = malloc(r->abouts_max * sizeof(*r->about));
	r->file->tensor = malloc(r->tensors_max * sizeof(*r->file->tensor));
	return r->names != NULL && r->about != NULL && r->file->tensor != NULL ? 0 : -ENOMEM;
}

static int conclude(const struct header_reading *r, bool fine, struct mst_reason *why)
{
	if (fine)
		return 0;
	if (r->format != MST_CHECKPOINT_FORMAT)
		return mst_reason_fail(why, -ENOTSUP,
				       "its format is %" PRIu64 ", and this release reads %u",
				       r->format, MST_CHECKPOINT_FORMAT);
	return mst_reason_fail(why, -EBADMSG, "%s%s",
			       r->wrong == NULL ? "its header is not as it should be: " : "",
			       r->wrong != NULL ? r->wrong : r->json.wrong);
}

int mst_tensor_file_parse(const char *header, size_t len, uint64_t bytes,
			  struct mst_tensor_file *out, struct mst_reason *why)
{
	struct mst_tensor_file file = { .data = len, .bytes = bytes };
	struct header_reading r = { .file = &file, .format = MST_CHECKPOINT_FORMAT };

	if (len < MST_TENSORS_PREFIX || len > bytes || len > MST_TENSORS_HEADER_MAX ||
	    length_of(header) != len - MST_TENSORS_PREFIX)
		return mst_reason_fail(why, -EBADMSG, "the length of its header is wrong");
	mst_json_init(&r.json, header + MST_TENSORS_PREFIX, len - MST_TENSORS_PREFIX);
	int rc = reading_init(&r, header, len);
	if (rc != 0) {
		(void)mst_reason_fail(why, rc, "no memory for its header");
	} else {
		bool fine = read_all(&r) && judge(&r, header, len);
		rc = conclude(&r, fine, why);
	}
	free(r.about);
	file.names = r.names;
	if (rc == 0)
		*out = file;
	else
		mst_tensor_file_fini(&file);
	return rc;
}
