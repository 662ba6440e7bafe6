/* SPDX-License-Identifier: MIT */
/* The control address of a job's server, as a user types it. */
#ifndef MST_TOOLS_ADDRESS_H
#define MST_TOOLS_ADDRESS_H

#include <stdbool.h>

#include "common/transport/hostport.h"

#define MST_ADDRESS_DEFAULT "127.0.0.1:" MST_CONTROL_PORT
#define MST_SERVER_ADDRESS_LEN 300u

/* Does the text end with a port, as HOST:PORT does? */
bool mst_address_has_port(const char *text);
/* Is there one in the environment? */
bool mst_address_is_known(void);

/* Where @command asks: as typed, as in MUSTER_SERVER (@typed: NULL), or the default; the port may
 * be left out.
 * Return: 0; anything else: what was typed is refused, with a sentence. */
int mst_address_choose(const char *command, const char *typed, char out[MST_SERVER_ADDRESS_LEN]);
/* The same of a command that changes a job: there is no default. Two jobs of one host may both have
 * been started without an address, and the wrong one must not be changed silently. @example: what
 * is typed with an address. */
int mst_address_need(const char *command, const char *example, const char *typed,
		     char out[MST_SERVER_ADDRESS_LEN]);

#endif
