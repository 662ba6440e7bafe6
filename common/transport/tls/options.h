/* SPDX-License-Identifier: MIT */
/* The rows of a table of options that name the files of TLS. */
#ifndef MST_TRANSPORT_TLS_OPTIONS_H
#define MST_TRANSPORT_TLS_OPTIONS_H

#include "common/config/option.h"
#include "common/transport/tls/credentials.h"

/* @type: the struct of the options; @member: its struct mst_tls_files; @ca_else and so on: what
 * holds without the option, such as " (or MUSTER_TLS_CA)", or "". */
#define MST_TLS_OPTIONS(type, member, ca_else, cert_else, key_else)                                \
	{ .name = "tls-ca",                                                                        \
	  .kind = MST_OPTION_STRING,                                                               \
	  .offset = offsetof(type, member.ca),                                                     \
	  .value = "FILE",                                                                         \
	  .help = "the authority whose certificates are believed, in PEM; with it control "        \
		  "connections are TLS 1.3, and both ends prove who they are" ca_else },           \
		{ .name = "tls-cert",                                                              \
		  .kind = MST_OPTION_STRING,                                                       \
		  .offset = offsetof(type, member.cert),                                           \
		  .value = "FILE",                                                                 \
		  .help = "the own certificate of that authority, in PEM" cert_else },             \
	{                                                                                          \
		.name = "tls-key", .kind = MST_OPTION_STRING,                                      \
		.offset = offsetof(type, member.key), .value = "FILE",                             \
		.help = "the key of that certificate, which nobody else may read" key_else         \
	}

/* The rows for commands, which read an unset option from the environment. */
#define MST_TLS_COMMAND_OPTIONS(type, member)                                                      \
	MST_TLS_OPTIONS(type, member, " (or MUSTER_TLS_CA)", " (or MUSTER_TLS_CERT)",              \
			" (or MUSTER_TLS_KEY)")

#endif
