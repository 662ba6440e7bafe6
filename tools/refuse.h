/* SPDX-License-Identifier: MIT */
/* Refuses a command line, with a sentence and a hint at the help. */
#ifndef MST_TOOLS_REFUSE_H
#define MST_TOOLS_REFUSE_H

/* Logs the sentence, and where the help of @command is, "status" of "muster status".
 * Return: the exit status, MST_EXIT_USAGE. */
__attribute__((format(printf, 2, 3))) int mst_refuse(const char *command, const char *fmt, ...);

#endif
