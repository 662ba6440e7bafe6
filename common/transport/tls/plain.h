/* SPDX-License-Identifier: MIT */
/* Answers a caller that does not speak TLS with an error that it understands. Private to this
 * directory. */
#ifndef MST_TRANSPORT_TLS_PLAIN_H
#define MST_TRANSPORT_TLS_PLAIN_H

#include "common/transport/stream.h"

/* Sends an error of this release's protocol, as far as the stream takes it at once. Any release
 * understands it or says that the protocols differ. */
void mst_tls_answer_plain(struct mst_stream *below);

#endif
