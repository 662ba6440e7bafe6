/* SPDX-License-Identifier: MIT */
#include "tools/address.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/config/option.h"
#include "common/transport/hostport.h"
#include "tools/command.h"

bool mst_address_has_port(const char *text)
{
	const char *colon = strrchr(text, ':');
	uint64_t port;

	return colon != NULL && colon != text && mst_parse_u64(colon + 1, &port) == 0 &&
	       port <= UINT16_MAX;
}

/* What the environment names; NULL: nothing. */
static const char *environment(void)
{
	const char *address = getenv("MUSTER_SERVER");

	return address != NULL && address[0] != '\0' ? address : NULL;
}

int mst_address_choose(const char *command, const char *typed, char out[MST_SERVER_ADDRESS_LEN])
{
	const char *address = typed != NULL ? typed : environment();
	struct mst_hostport at;
	struct mst_reason why;

	if (address == NULL)
		address = MST_ADDRESS_DEFAULT;
	if (mst_hostport_read(address, &at, &why) != 0)
		return mst_refuse(command, "%s%s",
				  typed != NULL ? "" : "MUSTER_SERVER: ", why.text);
	(void)mst_hostport_text(address, out);
	return 0;
}

bool mst_address_is_known(void)
{
	return environment() != NULL;
}

int mst_address_need(const char *command, const char *example, const char *typed,
		     char out[MST_SERVER_ADDRESS_LEN])
{
	if (typed == NULL && environment() == NULL)
		return mst_refuse(command,
				  "which job? name the address of its server, as in muster %s, or "
				  "set MUSTER_SERVER; muster run prints it when it starts, and "
				  "musterd logs it",
				  example);
	return mst_address_choose(command, typed, out);
}
