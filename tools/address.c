/* SPDX-License-Identifier: MIT */
#include "tools/address.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool mst_address_is(const char *text)
{
	return text[0] != '\0' && text[0] != ':' && text[strspn(text, "0123456789")] != '\0';
}

void mst_address_choose(const char *typed, char *out, size_t len)
{
	const char *address = typed != NULL ? typed : getenv("MUSTER_SERVER");

	if (address == NULL || address[0] == '\0')
		address = MST_ADDRESS_DEFAULT;
	(void)snprintf(out, len, "%s%s", address,
		       strchr(address, ':') == NULL ? strrchr(MST_ADDRESS_DEFAULT, ':') : "");
}
