/* SPDX-License-Identifier: MIT */
/* The layout that both ends of doctor's write test agree on, and the records that they exchange. */
#ifndef MST_TOOLS_DOCTOR_LANE_H
#define MST_TOOLS_DOCTOR_LANE_H

#include "tools/doctor/write.h"

#define MST_WRITE_MAGIC UINT64_C(0x31726f74636f646d) /* "mdoctor1" */
#define MST_WRITE_TOKEN "muster doctor 01" /* no secret: who listens, listens to anybody */
#define MST_RATE_TOKEN "muster doctor r1"  /* of a link on which rates are measured */
#define MST_WRITE_DATA_AT 4096u            /* after the record */
#define MST_RATE_UNIT 4096u                /* pieces of a rate test are multiples of this */
#define MST_RATE_WINDOW 16u                /* pieces of a link that are not answered yet */

enum mst_write_imm {
	MST_WRITE_LOOK = 1, /* up: record and data are written; look at them. down: the answer */
	MST_WRITE_PING,     /* up: 8 bytes; down: the same */
	MST_WRITE_BULK,     /* up: data, not to be looked at; down: 8 bytes */
	MST_WRITE_PULL,     /* up: 8 bytes, and in the high bits of the immediate how many units of
			     * data are wanted; down: those, with the same immediate */
};

/* The low bits of an immediate; above them a pull has its units. */
#define MST_WRITE_IMM_MASK 0xffu
#define MST_WRITE_IMM_SHIFT 8

/* At the beginning of either inbound region. Hosts of both ends are little-endian. */
struct mst_write_record {
	uint64_t magic;
	uint64_t seed;  /* up: what the data are made of */
	uint64_t wrong; /* down: bytes that are not */
	struct mst_write_card card;
	uint32_t pad;
};

static inline struct mst_lanes mst_write_lanes(void)
{
	return (struct mst_lanes){ .up_bytes = MST_WRITE_DATA_AT + MST_WRITE_BYTES,
				   .down_bytes = MST_WRITE_DATA_AT,
				   .up_credits = 4,
				   .down_credits = 4 };
}

/* Data both ways, and room for a window of pieces. */
static inline struct mst_lanes mst_rate_lanes(void)
{
	return (struct mst_lanes){ .up_bytes = MST_WRITE_DATA_AT + MST_WRITE_BYTES,
				   .down_bytes = MST_WRITE_DATA_AT + MST_WRITE_BYTES,
				   .up_credits = 2 * MST_RATE_WINDOW,
				   .down_credits = 2 * MST_RATE_WINDOW };
}

/* Fills @data with the bytes of @seed, or counts those that differ. */
void mst_write_fill(void *data, uint64_t seed);
uint64_t mst_write_count_wrong(const void *data, uint64_t seed);

/* Net of one end: @links_max links, sleeping soon. As net_open(). */
int mst_write_net(const struct mst_write_side *side, uint32_t links_max, struct mst_net **out,
		  struct mst_reason *why);

#endif
