/* SPDX-License-Identifier: MIT */
/*
 * The known word a mistyped one was meant to be: the least number of letters inserted, left out or
 * replaced (Levenshtein 1966), as long as fewer than half of them have to change.
 */
#include <string.h>

#include "common/config/option.h"

#define WORD_MAX 64u /* no name is as long; nothing is near to a longer word */

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* One row of the table at a time: row[j] is the distance of the first i letters of a to the first
 * j of b. */
static unsigned distance(const char *a, const char *b)
{
	unsigned row[WORD_MAX + 1];
	unsigned b_len = (unsigned)strlen(b);

	for (unsigned j = 0; j <= b_len; j++)
		row[j] = j;
	for (unsigned i = 1; a[i - 1] != '\0'; i++) {
		unsigned diagonal = row[0];
		row[0] = i;
		for (unsigned j = 1; j <= b_len; j++) {
			unsigned kept = diagonal + (a[i - 1] != b[j - 1]);
			diagonal = row[j];
			row[j] = least(kept, least(row[j], row[j - 1]) + 1);
		}
	}
	return row[b_len];
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
