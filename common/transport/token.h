/* SPDX-License-Identifier: MIT */
/* The token that a caller shows to a listener for links (transport.h). */
#ifndef MST_TRANSPORT_TOKEN_H
#define MST_TRANSPORT_TOKEN_H

#include <stdbool.h>
#include <stdint.h>

#include "common/transport/transport.h"

/* Compares in a time that does not depend on how much is equal. */
static inline bool mst_token_is(const uint8_t *a, const uint8_t *b)
{
	volatile uint8_t differs = 0;

	for (unsigned i = 0; i < MST_TOKEN_LEN; i++)
		differs = (uint8_t)(differs | (a[i] ^ b[i]));
	return differs == 0;
}

#endif
