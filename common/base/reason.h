/* SPDX-License-Identifier: MIT */
/*
 * A sentence for people, of bounded length: what went wrong, with which figures, and what to do.
 *
 * What can fail for a reason that its error number does not tell takes a `struct mst_reason *why`
 * of its caller, as its last parameter. It writes to it only if it fails, except where its
 * prototype says otherwise.
 * A message carries as much (common/wire/message.h), so no sentence has to be shortened for it.
 */
#ifndef MST_COMMON_BASE_REASON_H
#define MST_COMMON_BASE_REASON_H

#include <stdarg.h>

#define MST_REASON_LEN 512u /* with its NUL */

/* Zeroed it says nothing. */
struct mst_reason {
	char text[MST_REASON_LEN];
};

/* Afterwards it says nothing. */
void mst_reason_clear(struct mst_reason *r);

/* Writes the sentence. One that is too long is cut after a character, and ends in "...". Arguments
 * may lie in @r itself: so a caller can say where what it was told has happened. */
void mst_reason_set(struct mst_reason *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void mst_reason_vset(struct mst_reason *r, const char *fmt, va_list args)
	__attribute__((format(printf, 2, 0)));

/* Adds to what @r says already; what is too long is cut likewise. */
void mst_reason_add(struct mst_reason *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void mst_reason_vadd(struct mst_reason *r, const char *fmt, va_list args)
	__attribute__((format(printf, 2, 0)));

/* Writes the sentence of a failure. Return: @error, so that a caller can pass it up. */
int mst_reason_fail(struct mst_reason *r, int error, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* What a call that failed with @error has said; where it has said nothing, what its error number
 * says. Return: a text that is valid until @r is written to, or strerror() is called. */
const char *mst_reason_or_errno(const struct mst_reason *r, int error);

#endif
