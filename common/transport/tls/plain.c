/* SPDX-License-Identifier: MIT */
#include "common/transport/tls/plain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/wire/message.h"

#define FRAME_BYTES 1024u

void mst_tls_answer_plain(struct mst_stream *below)
{
	struct mst_message *msg = calloc(1, sizeof(*msg));
	unsigned char frame[FRAME_BYTES];

	if (msg == NULL)
		return;
	msg->kind = MST_MSG_ERROR;
	msg->error.code = -EACCES;
	(void)snprintf(msg->error.reason, sizeof(msg->error.reason),
		       "this server lets in who proves itself by TLS: give --tls-ca, --tls-cert "
		       "and --tls-key, or set MUSTER_TLS_CA, MUSTER_TLS_CERT and MUSTER_TLS_KEY");
	int64_t length = mst_message_encode(msg, frame, sizeof(frame));
	if (length > 0)
		(void)mst_tcp.send(below, frame, (size_t)length);
	free(msg);
}
