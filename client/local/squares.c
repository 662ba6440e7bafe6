/* SPDX-License-Identifier: MIT */
#include "client/local/squares.h"

#include "client/local/settings.h"
#include "common/kernels/isa.h"
#include "common/kernels/sum.h"

#define BLOCK 1024u

double mst_client_squares(const void *from, enum muster_type type, uint64_t count)
{
	const char *at = from;
	uint32_t bytes = mst_type_size(type);
	float block[BLOCK];
	double sum = 0;

	for (uint64_t done = 0; done < count; done += BLOCK) {
		size_t some = count - done < BLOCK ? (size_t)(count - done) : BLOCK;
		mst_sum_load(block, at + done * bytes, type, some);
		sum += mst_isa()->squares(block, some);
	}
	return sum;
}
