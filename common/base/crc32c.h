/* SPDX-License-Identifier: MIT */
/*
 * CRC32C (Castagnoli), the checksum of iSCSI (RFC 3720, appendix B.4). It finds every change of up
 * to 32 neighbouring bits. It is no protection against somebody who changes data on purpose. Pure.
 */
#ifndef MST_BASE_CRC32C_H
#define MST_BASE_CRC32C_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The checksum of what @crc is the checksum of, followed by @bytes; 0 is that of nothing. Uses the
 * processor's instruction where there is one. */
uint32_t mst_crc32c(uint32_t crc, const void *bytes, size_t len);

/*
 * For data that are read in parts, in any order, perhaps by several threads: a sum of what each
 * part gives. Without the inversions of the checksum above it is linear. So a part gives its
 * remainder, moved to its place, and parts are added by exclusive or. Two such sums can be compared
 * if they are of the same length; all zeroes give 0.
 */
/* The remainder of what @sum is the remainder of, followed by @bytes; 0 is that of nothing. */
static inline uint32_t mst_crc32c_linear(uint32_t sum, const void *bytes, size_t len)
{
	return ~mst_crc32c(~sum, bytes, len);
}
/* What a part with the remainder @sum gives, if @behind bytes of the data follow it. */
uint32_t mst_crc32c_place(uint32_t sum, uint64_t behind);

/* The same by one way, for tests: by tables, which every processor can, */
uint32_t mst_crc32c_by_tables(uint32_t crc, const void *bytes, size_t len);
/* or by the instruction, only if mst_crc32c_has_instruction(). */
uint32_t mst_crc32c_by_instruction(uint32_t crc, const void *bytes, size_t len);
bool mst_crc32c_has_instruction(void);

#endif
