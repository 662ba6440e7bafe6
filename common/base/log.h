/* SPDX-License-Identifier: MIT */
/*
 * Lines to stderr: "muster: rank 3: lease of 5.0 s is over". Whoever knows an error first logs it,
 * once, in lower case, with numbers. Nothing logs per push.
 */
#ifndef MST_BASE_LOG_H
#define MST_BASE_LOG_H

enum mst_log_level { MST_LOG_ERROR, MST_LOG_WARN, MST_LOG_INFO, MST_LOG_DEBUG };

/* @name stands before each line ("musterd"); a string that outlives the process's logging. */
void mst_log_open(const char *name, enum mst_log_level level);

/* "error", "warn", "info" or "debug". Return: the level, or -EINVAL. */
int mst_log_level_parse(const char *word);

void mst_log(enum mst_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define mst_error(...) mst_log(MST_LOG_ERROR, __VA_ARGS__)
#define mst_warn(...) mst_log(MST_LOG_WARN, __VA_ARGS__)
#define mst_info(...) mst_log(MST_LOG_INFO, __VA_ARGS__)
#define mst_debug(...) mst_log(MST_LOG_DEBUG, __VA_ARGS__)

#endif
