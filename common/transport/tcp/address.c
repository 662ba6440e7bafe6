/* SPDX-License-Identifier: MIT */
/* The addresses of this host that a listener tells its callers. */
#include <string.h>

#include "common/transport/origins.h"
#include "common/transport/tcp/tcp.h"

static void of_origin(const struct mst_origin *origin, union mst_endpoint *out)
{
	struct in6_addr v6;

	memcpy(&v6, origin->address, sizeof(v6));
	*out = (union mst_endpoint){ 0 };
	if (IN6_IS_ADDR_V4MAPPED(&v6)) {
		out->v4.sin_family = AF_INET;
		memcpy(&out->v4.sin_addr, origin->address + 12, sizeof(out->v4.sin_addr));
	} else {
		out->v6.sin6_family = AF_INET6;
		out->v6.sin6_addr = v6;
	}
}

int mst_tcp_address_host(struct mst_endpoints *out)
{
	static const struct mst_fabric any = MST_FABRIC_DEFAULT;
	struct mst_origins own;
	int rc = mst_origins_own(&any, &own);

	*out = (struct mst_endpoints){ 0 };
	/* With that at which the server is called they are as many as can be read. */
	for (uint32_t i = 0; i < own.count && out->count + 1 < MST_ENDPOINTS_MAX; i++) {
		union mst_endpoint *one = &out->at[out->count];
		of_origin(&own.at[i], one);
		/* One of a link means nothing without an interface of the caller's. */
		out->count += one->any.sa_family == AF_INET ||
			      !IN6_IS_ADDR_LINKLOCAL(&one->v6.sin6_addr);
	}
	if (out->count == 0) {
		out->at[0] = (union mst_endpoint){ 0 };
		out->at[0].v4.sin_family = AF_INET;
		out->at[0].v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		out->count = 1;
	}
	return rc;
}
