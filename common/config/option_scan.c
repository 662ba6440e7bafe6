/* SPDX-License-Identifier: MIT */
/*
 * A look over a file's text before libconfig has it. libconfig 1.5 takes a plain integer modulo
 * 2^32 and a long one clamped, without a word, and what it includes may end the process (a folder
 * does). So such numbers and includes are refused here, where the text is still at hand.
 *
 * Only tokens are told apart, as libconfig itself does it: strings, comments, names, numbers.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/config/row.h"

#define DIGITS "0123456789"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* @at: the opening quote. Return: behind the closing one. */
static const char *string_skip(const char *at)
{
	for (at++; *at != '\0' && *at != '"'; at++) {
		if (*at == '\\' && at[1] != '\0')
			at++;
	}
	return *at == '"' ? at + 1 : at;
}

/* Return: behind the comment that begins at @at, or NULL if none does. */
static const char *comment_skip(const char *at)
{
	if (*at == '#' || strncmp(at, "//", 2) == 0)
		return at + strcspn(at, "\n");
	if (strncmp(at, "/*", 2) != 0)
		return NULL;
	const char *end = strstr(at + 2, "*/");
	return end != NULL ? end + 2 : at + strlen(at);
}

/* The fraction and exponent that make a number of @at's digits a float. Return: behind them. */
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

/* Return: behind the number at @at; NULL if libconfig could not hold it. */
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

/* Return: behind the token at @at; NULL if it is a number out of range. */
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
