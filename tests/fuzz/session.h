/* SPDX-License-Identifier: MIT */
/* A worker's session with a server under test, and both ends of its link. */
#ifndef MST_TESTS_FUZZ_SESSION_H
#define MST_TESTS_FUZZ_SESSION_H

#include "server/data/server.h"
#include "tests/fuzz/pipe.h"

struct fuzz_session {
	struct mst_session session; /* first: what a server gives back is cast */
	struct pipe_link acceptor, connector;
	bool in_use;
};

#endif
