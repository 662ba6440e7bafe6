/* SPDX-License-Identifier: MIT */
/* Keeps private keys out of core dumps and swap. */
#ifndef MST_TRANSPORT_TLS_WIPING_H
#define MST_TRANSPORT_TLS_WIPING_H

/* OpenSSL has them in memory that no core dump has and, where
 * RLIMIT_MEMLOCK allows, no swap; and it clears all memory that it frees, for it decodes a key in
 * memory that it does not clear by itself. For programs, not for a library: this holds for all that
 * uses OpenSSL in the process, until it ends. To be called once, before anything else of OpenSSL.
 *
 * Return: 0; -ENOMEM: there is no memory for that. The keys are then not protected, so the program
 * should end. */
int mst_tls_guard_keys(void);

#endif
