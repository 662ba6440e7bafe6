/* SPDX-License-Identifier: MIT */
#include "tools/address.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/command.h"

/* HOST or HOST:PORT? A number alone would be the host, and is likely meant to be the port. */
static bool is_address(const char *text)
{
	return text[0] != '\0' && text[0] != ':' && text[strspn(text, "0123456789")] != '\0';
}

int mst_address_choose(const char *command, const char *typed, char out[MST_ADDRESS_LEN])
{
	const char *address = typed != NULL ? typed : getenv("MUSTER_SERVER");

	if (typed != NULL && !is_address(typed))
		return mst_refuse(
			command, "\"%.60s\" is not HOST:PORT, such as " MST_ADDRESS_DEFAULT, typed);
	if (address == NULL || address[0] == '\0')
		address = MST_ADDRESS_DEFAULT;
	(void)snprintf(out, MST_ADDRESS_LEN, "%s%s", address,
		       strchr(address, ':') == NULL ? strrchr(MST_ADDRESS_DEFAULT, ':') : "");
	return 0;
}
