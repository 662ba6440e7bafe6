/* SPDX-License-Identifier: MIT */
/* Whether gradients and results are encrypted on their way: --data-tls. */
#ifndef MST_SERVER_OPTIONS_DATA_TLS_H
#define MST_SERVER_OPTIONS_DATA_TLS_H

#include "server/options/options.h"

/* Can what --data-tls asks for be had, with these certificates, network and addresses?
 * @why: a sentence.
 * Return: 0 or -EINVAL. */
int mst_data_tls_check(const struct mst_server_options *o, struct mst_reason *why);

#endif
