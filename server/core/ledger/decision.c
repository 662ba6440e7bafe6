/* SPDX-License-Identifier: MIT */
#include "server/core/ledger/decision.h"

#include <errno.h>

int mst_evict_error(enum mst_evict_why why)
{
	switch (why) {
	case MST_EVICT_LEFT:
		return 0;
	case MST_EVICT_STALE:
	case MST_EVICT_NO_STATE:
	case MST_EVICT_UNTAKEN:
	case MST_EVICT_APART:
	case MST_EVICT_TOO_LATE:
		return -ESTALE;
	case MST_EVICT_INVALID:
		return -EPROTO;
	default:
		return -ENOTCONN;
	}
}

int mst_finish_error(enum mst_finish_why why)
{
	switch (why) {
	case MST_FINISH_NO_START:
		return -EINVAL;
	case MST_FINISH_STOPPED:
	case MST_FINISH_CLOSED:
		return -ENOTCONN;
	case MST_FINISH_JOIN_TIMEOUT:
	case MST_FINISH_TOO_FEW:
	case MST_FINISH_LOSS:
	case MST_FINISH_SERVER:
	case MST_FINISH_SPOILT:
	case MST_FINISH_STOOD:
	case MST_FINISH_NOT_BEGUN:
	case MST_FINISH_SUPERSEDED:
		return -EHOSTDOWN;
	default:
		return 0;
	}
}

int mst_evict_word(enum mst_evict_why why, bool goes_on)
{
	bool lost = why == MST_EVICT_LOST || why == MST_EVICT_LEASE || why == MST_EVICT_PATIENCE ||
		    why == MST_EVICT_OUTNUMBERED;

	return goes_on && lost ? MST_AGAIN : mst_evict_error(why);
}

int mst_finish_word(enum mst_finish_why why, bool goes_on)
{
	bool again = why == MST_FINISH_SERVER || why == MST_FINISH_STOPPED ||
		     why == MST_FINISH_STOOD || why == MST_FINISH_NOT_BEGUN ||
		     why == MST_FINISH_SUPERSEDED || why == MST_FINISH_TOO_FEW;

	return goes_on && again ? MST_AGAIN : mst_finish_error(why);
}
