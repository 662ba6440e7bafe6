/* SPDX-License-Identifier: MIT */
/*
 * libibverbs and librdmacm, found when the program runs: a host that has no RDMA needs neither.
 *
 * The functions of both that muster calls are defined here, by their own names, hidden from all
 * other libraries; each goes on to the one that was found. So the rest of the transport is written
 * as if it were linked with them.
 */
#ifndef MST_TRANSPORT_VERBS_LIBRARY_H
#define MST_TRANSPORT_VERBS_LIBRARY_H

#include <stddef.h>

/* Finds the libraries, once for the process. Nothing of them may be called before this has returned
 * 0. Any thread. 0; -ELIBACC: they are not there, or too old. */
int mst_verbs_library(void);

/* After a failure: a sentence that names what is missing. */
const char *mst_verbs_library_why(void);

#endif
