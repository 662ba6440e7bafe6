/* SPDX-License-Identifier: MIT */
#include "server/options/access.h"

#include <errno.h>

int mst_access_judge(const struct mst_access_facts *facts, enum mst_access *out,
		     struct mst_reason *why)
{
	if (facts->has_certificates && facts->insecure) {
		mst_reason_set(why,
			       "--insecure has no effect beside certificates, which decide who may "
			       "join: leave one of the two out");
		return -EINVAL;
	}
	*out = MST_ACCESS_LOCAL;
	if (facts->has_certificates)
		*out = MST_ACCESS_CERTIFICATES;
	else if (facts->reach == MST_REACH_BEYOND || facts->data_reach == MST_REACH_BEYOND)
		*out = MST_ACCESS_INSECURE;
	if (*out != MST_ACCESS_INSECURE || facts->insecure)
		return 0;
	if (facts->reach != MST_REACH_BEYOND)
		return mst_reason_fail(
			why, -EINVAL,
			"--data-address %.120s is beyond loopback, and without certificates "
			"whoever is on the way reads all gradients and parameters: make some with "
			"`muster key new DIR` and give --tls-ca, --tls-cert and --tls-key, or say "
			"--insecure if that is meant",
			facts->data_address);
	mst_reason_set(
		why,
		"%s %.120s is beyond loopback, and without certificates %s: make some with `muster "
		"key new DIR` and give --tls-ca, --tls-cert and --tls-key, or say --insecure if "
		"that is meant",
		facts->joins ? "--join" : "--listen", facts->address,
		facts->joins ? "whoever answers there is taken for the leader"
			     : "whoever reaches it may join, read all parameters and end the job");
	return -EINVAL;
}
