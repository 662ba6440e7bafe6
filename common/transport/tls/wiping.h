/* SPDX-License-Identifier: MIT */
#ifndef MST_TRANSPORT_TLS_WIPING_H
#define MST_TRANSPORT_TLS_WIPING_H

/* Has OpenSSL clear all memory that it frees, until the process ends. OpenSSL decodes a private key
 * in memory that it does not clear, so without this a core dump may have the key. Private keys in
 * use lie in memory that no core dump has. For programs, not for a library: this holds for all that
 * uses OpenSSL in the process. To be called before anything else of OpenSSL; later it does nothing.
 */
void mst_tls_wipe_what_is_freed(void);

#endif
