/* SPDX-License-Identifier: MIT */
/*
 * Rows that the tables of several programs have. @field: where the value goes, as
 * .offset = offsetof(struct mst_x_options, help); @text: the help.
 */
#ifndef MST_CONFIG_SHARED_ROWS_H
#define MST_CONFIG_SHARED_ROWS_H

#include "common/config/option.h"

#define MST_HELP_ROW(field)                                                                        \
	{                                                                                          \
		.name = "help", .letter = 'h', .kind = MST_OPTION_FLAG, field, .typed_only = true, \
		.help = "print this and exit"                                                      \
	}

#define MST_QUIET_ROW(field, text)                                                                 \
	{                                                                                          \
		.name = "quiet", .letter = 'q', .kind = MST_OPTION_FLAG, field,                    \
		.typed_only = true, .help = text                                                   \
	}

#define MST_WORKERS_ROW(field, most, text)                                                         \
	{                                                                                          \
		.name = "workers", .letter = 'n', .kind = MST_OPTION_U32, field, .min = 1,         \
		.max = most, .value = "W", .help = text                                            \
	}

/* For an answer of another process. */
#define MST_TIMEOUT_ROW(field, otherwise, text)                                                    \
	{                                                                                          \
		.name = "timeout", .kind = MST_OPTION_DURATION, field, .fallback = otherwise,      \
		.min = 1e6, .max = 3600e9, .help = text                                            \
	}

#define MST_FILE_ROW(option, field, text)                                                          \
	{                                                                                          \
		.name = option, .kind = MST_OPTION_STRING, field, .value = "FILE", .help = text    \
	}

#endif
