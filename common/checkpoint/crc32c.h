/* SPDX-License-Identifier: MIT */
/*
 * CRC32C (Castagnoli), the checksum of iSCSI (RFC 3720, appendix B.4). It finds every change of up
 * to 32 neighbouring bits. It is no protection against somebody who changes data on purpose. Pure.
 */
#ifndef MST_CHECKPOINT_CRC32C_H
#define MST_CHECKPOINT_CRC32C_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The checksum of what @crc is the checksum of, followed by @bytes; 0 is that of nothing. Uses the
 * processor's instruction where there is one. */
uint32_t mst_crc32c(uint32_t crc, const void *bytes, size_t len);

/* The same by one way, for tests: by tables, which every processor can, */
uint32_t mst_crc32c_by_tables(uint32_t crc, const void *bytes, size_t len);
/* or by the instruction, only if mst_crc32c_has_instruction(). */
uint32_t mst_crc32c_by_instruction(uint32_t crc, const void *bytes, size_t len);
bool mst_crc32c_has_instruction(void);

#endif
