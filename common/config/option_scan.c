/* SPDX-License-Identifier: MIT */
/*
 * Checks the text of a file before libconfig reads it. libconfig 1.5 takes a plain integer modulo
 * 2^32 and limits a long one, without an error; and what a file includes may end the process (a
 * folder does). So such numbers and includes are refused here, where the text is still known.
 *
 * The text is divided into tokens as libconfig does it: strings, comments, names, numbers.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/config/row.h"

#define DIGITS "0123456789"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* @at: the opening quote.
 * Return: the position after the closing one. */
static const char *string_skip(const char *at)
{
	for (at++; *at != '\0' && *at != '"'; at++) {
		if (*at == '\\' && at[1] != '\0')
			at++;
	}
	return *at == '"' ? at + 1 : at;
}

/* Return: the position after the comment that begins at @at; NULL: no comment begins there. */
static const char *comment_skip(const char *at)
{
	if (*at == '#' || strncmp(at, "//", 2) == 0)
		return at + strcspn(at, "\n");
	if (strncmp(at, "/*", 2) != 0)
		return NULL;
	const char *end = strstr(at + 2, "*/");
	return end != NULL ? end + 2 : at + strlen(at);
}

/* Skips the fraction and the exponent that make a number a float.
 * Return: the position after them. */
static const char *fraction_skip(const char *at)
{
	if (*at == '.')
		at += 1 + strspn(at + 1, DIGITS);
	if (*at == 'e' || *at == 'E') {
		const char *exponent = at + 1 + (at[1] == '-' || at[1] == '+');
		size_t len = strspn(exponent, DIGITS);
		if (len > 0)
			at = exponent + len;
	}
	return at;
}

/* Return: the position after the number at @at; NULL: libconfig could not hold the number. */
static const char *number_skip(const char *at)
{
	bool hex = at[0] == '0' && (at[1] == 'x' || at[1] == 'X');
	char *end;

	errno = 0;
	unsigned long long value = strtoull(at, &end, hex ? 16 : 10);
	bool overflow = errno != 0;
	if (!hex) {
		const char *behind = fraction_skip(end);
		if (behind != end)
			return behind;
	}
	unsigned long long limit = *end == 'L' ? INT64_MAX : INT32_MAX;
	return overflow || value > limit ? NULL : end;
}

/* Return: the position after the token at @at; NULL: it is a number out of range. */
static const char *token_skip(const char *at)
{
	const char *behind = comment_skip(at);

	if (behind != NULL)
		return behind;
	if (*at == '"')
		return string_skip(at);
	if (strchr(DIGITS ".", *at) != NULL)
		return number_skip(at);
	size_t name = strspn(at, LETTERS "*");
	if (name > 0)
		return at + strspn(at, LETTERS DIGITS "*-_");
	return at + 1;
}

static unsigned line_of(const char *text, const char *at)
{
	unsigned line = 1;

	for (; text < at; text++)
		line += *text == '\n';
	return line;
}

const char *mst_options_scan(const char *text, unsigned *line)
{
	const char *at = text;

	while (*at != '\0') {
		const char *behind = token_skip(at);
		if (behind == NULL || *at == '@') {
			*line = line_of(text, at);
			return *at == '@' ? "@include is not read; write its lines here"
					  : "so large a number has to stand in quotes";
		}
		at = behind;
	}
	return NULL;
}
