/* SPDX-License-Identifier: MIT */
/* Assertions that stay in every build: they guard our own mistakes, never a peer's. */
#ifndef MST_BASE_ASSERT_H
#define MST_BASE_ASSERT_H

/* Prints where and what, then aborts. */
_Noreturn void mst_assert_failed(const char *expr, const char *file, int line);

#define MST_ASSERT(expr) ((expr) ? (void)0 : mst_assert_failed(#expr, __FILE__, __LINE__))

#endif
