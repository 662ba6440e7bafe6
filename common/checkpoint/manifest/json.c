/* SPDX-License-Identifier: MIT */
#include "common/checkpoint/manifest/json.h"

#include <string.h>

#include "common/base/assert.h"
#include "common/base/text.h"

void mst_json_init(struct mst_json *j, const char *text, size_t len)
{
	*j = (struct mst_json){ .begin = text, .at = text, .end = text + len };
}

bool mst_json_refuse(struct mst_json *j, const char *wrong)
{
	if (j->wrong == NULL)
		j->wrong = wrong;
	return false;
}

static void skip_space(struct mst_json *j)
{
	while (j->at < j->end && memchr(" \t\r\n", *j->at, 4) != NULL)
		j->at++;
}

char mst_json_peek(struct mst_json *j)
{
	skip_space(j);
	return j->wrong == NULL && j->at < j->end ? *j->at : '\0';
}

/* Takes one character, if it is the next. */
static bool take(struct mst_json *j, char c)
{
	if (mst_json_peek(j) != c || c == '\0')
		return false;
	j->at++;
	return true;
}

bool mst_json_end(struct mst_json *j)
{
	skip_space(j);
	if (j->wrong == NULL && (j->at < j->end || j->depth > 0))
		j->wrong = "there is text after the last bracket";
	return j->wrong == NULL;
}

/* ---- objects and arrays ---- */

bool mst_json_enter(struct mst_json *j, char bracket)
{
	MST_ASSERT(bracket == '{' || bracket == '[');
	if (j->depth == MST_JSON_DEPTH)
		return mst_json_refuse(j, "objects are nested too deeply");
	if (!take(j, bracket))
		return mst_json_refuse(j, bracket == '{' ? "an object is missing"
							 : "an array is missing");
	j->begun[j->depth] = false;
	j->closing[j->depth] = bracket == '{' ? '}' : ']';
	j->depth++;
	return true;
}

bool mst_json_more(struct mst_json *j)
{
	if (j->wrong != NULL)
		return false;
	MST_ASSERT(j->depth > 0);
	unsigned level = j->depth - 1;
	if (take(j, j->closing[level])) {
		j->depth--;
		return false;
	}
	if (j->begun[level] && !take(j, ','))
		return mst_json_refuse(j, "a comma or a closing bracket is missing");
	j->begun[level] = true;
	return true;
}

bool mst_json_key(struct mst_json *j, char *out, size_t room)
{
	if (!mst_json_text(j, out, room))
		return false;
	return take(j, ':') || mst_json_refuse(j, "a colon is missing after a key");
}

/* ---- texts ---- */

static int hex_value(char c)
{
	static const char digits[] = "0123456789abcdef";
	char lower = (char)(c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c);
	const char *found = c != '\0' ? strchr(digits, lower) : NULL;

	return found != NULL ? (int)(found - digits) : -1;
}

/* Four hexadecimal digits. */
static bool read_unit(struct mst_json *j, uint32_t *out)
{
	uint32_t unit = 0;

	if (j->end - j->at < 4)
		return false;
	for (int i = 0; i < 4; i++) {
		int digit = hex_value(*j->at++);
		if (digit < 0)
			return false;
		unit = unit << 4 | (uint32_t)digit;
	}
	*out = unit;
	return true;
}

/* After "\u": one unit, or two that are a pair of surrogates. */
static bool read_code(struct mst_json *j, uint32_t *out)
{
	uint32_t high, low;

	if (!read_unit(j, &high))
		return false;
	*out = high;
	if (high < 0xd800 || high > 0xdfff)
		return true;
	if (high > 0xdbff || j->end - j->at < 2 || j->at[0] != '\\' || j->at[1] != 'u')
		return false;
	j->at += 2;
	if (!read_unit(j, &low) || low < 0xdc00 || low > 0xdfff)
		return false;
	*out = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
	return true;
}

/* Writes the character as UTF-8. Return: how many bytes it takes. */
static size_t encode(uint32_t code, char out[4])
{
	static const unsigned char first[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
	size_t bytes = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

	for (size_t i = bytes; i-- > 1; code >>= 6)
		out[i] = (char)(0x80 | (code & 0x3f));
	out[0] = (char)(first[bytes] | code);
	return bytes;
}

/* After a backslash. Return: bytes of the character; 0: there is no such one. */
static size_t read_escape(struct mst_json *j, char out[4])
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	uint32_t code;
	char c = '\0';

	if (j->at < j->end)
		c = *j->at++;
	const char *found = c != '\0' ? strchr(from, c) : NULL;
	if (found != NULL) {
		out[0] = to[found - from];
		return 1;
	}
	return c == 'u' && read_code(j, &code) ? encode(code, out) : 0;
}

/* Reads up to the closing quote. */
static bool read_text(struct mst_json *j, char *out, size_t room)
{
	size_t used = 0, bytes;
	char c[4];

	while (j->at < j->end && *j->at != '"') {
		bytes = 1;
		c[0] = *j->at++;
		if (c[0] == '\\')
			bytes = read_escape(j, c);
		if (bytes == 0 || c[0] == '\0')
			return mst_json_refuse(j, "a text has an escape that does not exist");
		if (bytes >= room - used)
			return mst_json_refuse(j, "a text is too long");
		memcpy(out + used, c, bytes);
		used += bytes;
	}
	out[used] = '\0';
	if (j->at == j->end)
		return mst_json_refuse(j, "a text has no end");
	j->at++;
	return mst_text_is_clean(out) ||
	       mst_json_refuse(j, "a text has characters that are not UTF-8, or control a "
				  "terminal");
}

bool mst_json_text(struct mst_json *j, char *out, size_t room)
{
	MST_ASSERT(room > 0);
	if (!take(j, '"'))
		return mst_json_refuse(j, "a text is missing");
	return read_text(j, out, room);
}

static bool skip_text(struct mst_json *j)
{
	while (j->at < j->end && *j->at != '"')
		j->at += *j->at == '\\' && j->end - j->at > 1 ? 2 : 1;
	return take(j, '"') || mst_json_refuse(j, "a text has no end");
}

/* ---- numbers ---- */

static bool is_digit(const char *at, const char *end)
{
	return at < end && *at >= '0' && *at <= '9';
}

const char *mst_json_digits(const char *at, const char *end, uint64_t *out)
{
	uint64_t number = 0;
	const char *first = at;

	for (; is_digit(at, end); at++) {
		uint64_t digit = (uint64_t)(*at - '0');
		if (number > (UINT64_MAX - digit) / 10)
			return NULL;
		number = number * 10 + digit;
	}
	if (at == first || (*first == '0' && at - first > 1))
		return NULL;
	*out = number;
	return at;
}

bool mst_json_u64(struct mst_json *j, uint64_t *out)
{
	skip_space(j);
	const char *behind = j->wrong == NULL ? mst_json_digits(j->at, j->end, out) : NULL;
	if (behind == NULL || (behind < j->end && memchr(".eE", *behind, 3) != NULL))
		return mst_json_refuse(j, "a whole number from 0 to 2^64 - 1 is missing");
	j->at = behind;
	return true;
}

static const char *skip_digits(const char *at, const char *end)
{
	while (is_digit(at, end))
		at++;
	return at;
}

/* Return: what is after a number; NULL: there is no number. */
static const char *skip_number(const char *at, const char *end)
{
	if (at < end && *at == '-')
		at++;
	if (!is_digit(at, end))
		return NULL;
	at = *at == '0' ? at + 1 : skip_digits(at, end);
	if (at < end && *at == '.') {
		if (!is_digit(at + 1, end))
			return NULL;
		at = skip_digits(at + 1, end);
	}
	if (at < end && (*at == 'e' || *at == 'E')) {
		at++;
		if (at < end && (*at == '+' || *at == '-'))
			at++;
		if (!is_digit(at, end))
			return NULL;
		at = skip_digits(at, end);
	}
	return at;
}

bool mst_json_number(struct mst_json *j, char out[MST_JSON_NUMBER_LEN])
{
	skip_space(j);
	const char *behind = j->wrong == NULL ? skip_number(j->at, j->end) : NULL;
	if (behind == NULL || (size_t)(behind - j->at) >= MST_JSON_NUMBER_LEN)
		return mst_json_refuse(j, "a number is missing, or too long");
	memcpy(out, j->at, (size_t)(behind - j->at));
	out[behind - j->at] = '\0';
	j->at = behind;
	return true;
}

/* ---- any value ---- */

static bool skip_word(struct mst_json *j)
{
	static const char *const words[] = { "true", "false", "null" };

	for (unsigned i = 0; i < 3; i++) {
		size_t len = strlen(words[i]);
		if ((size_t)(j->end - j->at) < len || memcmp(j->at, words[i], len) != 0)
			continue;
		j->at += len;
		return true;
	}
	return mst_json_refuse(j, "a value is missing");
}

static bool skip_simple(struct mst_json *j)
{
	char number[MST_JSON_NUMBER_LEN];
	char c = mst_json_peek(j);

	if (take(j, '"'))
		return skip_text(j);
	if (c == '-' || (c >= '0' && c <= '9'))
		return mst_json_number(j, number);
	return skip_word(j);
}

bool mst_json_skip(struct mst_json *j)
{
	unsigned outside = j->depth;
	bool more = true;

	do {
		char c = mst_json_peek(j);
		bool opens = c == '{' || c == '[';
		if (opens ? !mst_json_enter(j, c) : !skip_simple(j))
			return false;
		more = false;
		while (j->depth > outside && !(more = mst_json_more(j)))
			if (j->wrong != NULL)
				return false;
		if (more && j->closing[j->depth - 1] == '}' &&
		    !(take(j, '"') && skip_text(j) && take(j, ':')))
			return mst_json_refuse(j, "a key is missing");
	} while (more);
	return j->wrong == NULL;
}
