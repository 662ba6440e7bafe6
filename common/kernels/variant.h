/* SPDX-License-Identifier: MIT */
/* Variants of the kernels as text, and the one in use. */
#ifndef MST_KERNELS_VARIANT_H
#define MST_KERNELS_VARIANT_H

#include "common/kernels/isa.h"

#define MST_STREAM_NEVER UINT64_MAX

/* The size of the processor's last cache; a guess where the system does not tell. */
uint64_t mst_cache_bytes(void);

/* What is used until something else is measured or named. */
struct mst_variant mst_variant_default(void);

/* @text: "tile=64,lines=1,..."; *v keeps what is not named. Return: 0; -EINVAL. */
int mst_variant_parse(const char *text, struct mst_variant *v);

/* "tile=64,lines=1,ahead=0,stream=8M" */
void mst_variant_text(const struct mst_variant *v, char *text, size_t len);

/* While no other thread uses the kernels. */
void mst_variant_use(const struct mst_variant *v);

/* Whether MUSTER_KERNELS or mst_kernels_select() named the variant in use. */
bool mst_variant_named(void);

#endif
