/* SPDX-License-Identifier: MIT */
/* Reads small files below /sys and /proc, whose paths are put together here. */
#ifndef MST_TOOLS_DOCTOR_FILE_H
#define MST_TOOLS_DOCTOR_FILE_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MST_FILE_PATH 512u

/* The first line without its end. Return: false if there is none to be read; out is "" then. */
bool mst_file_line(char *out, size_t len, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* The number that the file begins with; 0 if there is none. */
uint64_t mst_file_number(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

bool mst_file_exists(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Does a line of the file hold @word? The first that does, without its end, goes to @line (NULL:
 * not wanted). Lines that begin with '#' do not count. */
bool mst_file_holds(const char *path, const char *word, char *line, size_t len);

/* The names in a folder but those that begin with '.', sorted. mst_file_names_free() each time.
 * Return: how many; 0 if it cannot be read, or memory is short. */
struct mst_file_names {
	struct dirent **entry; /* entry[i]->d_name */
	uint32_t count;
};
uint32_t mst_file_names(struct mst_file_names *out, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void mst_file_names_free(struct mst_file_names *n);

#endif
