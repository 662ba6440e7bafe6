/* SPDX-License-Identifier: MIT */
/*
 * Finds the known word that a mistyped one was meant to be. It is the one with the fewest letters
 * inserted, left out, replaced, or swapped with their neighbour (Levenshtein 1966, Damerau 1964),
 * if fewer than half of the letters have to change. Capital letters count as small ones.
 */
#include <ctype.h>
#include <string.h>

#include "common/config/option.h"

#define WORD_MAX 64u /* all names are shorter; no name is near to a longer word */

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

static bool same(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* row[i % 3][j] is the distance of the first i letters of a to the first j of b. */
static unsigned distance(const char *a, const char *b)
{
	unsigned row[3][WORD_MAX + 1];
	unsigned a_len = (unsigned)strlen(a), b_len = (unsigned)strlen(b);

	for (unsigned j = 0; j <= b_len; j++)
		row[0][j] = j;
	for (unsigned i = 1; i <= a_len; i++) {
		unsigned *now = row[i % 3];
		const unsigned *before = row[(i - 1) % 3];
		now[0] = i;
		for (unsigned j = 1; j <= b_len; j++) {
			unsigned kept = before[j - 1] + !same(a[i - 1], b[j - 1]);
			now[j] = least(kept, least(before[j], now[j - 1]) + 1);
			if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
				now[j] = least(now[j], row[(i - 2) % 3][j - 2] + 1);
		}
	}
	return row[a_len % 3][b_len];
}

const char *mst_nearest(const char *word, const char *const *names)
{
	const char *best = NULL;
	unsigned best_distance = WORD_MAX;
	size_t word_len = strlen(word);

	if (word_len > WORD_MAX)
		return NULL;
	for (; *names != NULL; names++) {
		size_t len = strlen(*names);
		if (len > WORD_MAX)
			continue;
		unsigned d = distance(word, *names);
		if (d < best_distance && 2 * d < (len > word_len ? len : word_len)) {
			best = *names;
			best_distance = d;
		}
	}
	return best;
}
