/* SPDX-License-Identifier: MIT */
/* The checks that move bytes, and what they say. */
#ifndef MST_TOOLS_DOCTOR_TRY_H
#define MST_TOOLS_DOCTOR_TRY_H

#include <stdio.h>

#include "tools/doctor/judge.h"
#include "tools/doctor/options.h"
#include "tools/doctor/way/way.h"
#include "tools/doctor/write.h"

#define MST_DOCTOR_PORTS_MAX 16u
#define MST_DOCTOR_TRIES_MAX                                                                       \
	(MST_DOCTOR_PORTS_MAX + 3) /* with networks without ports, and a peer */

/* One write test. */
struct mst_doctor_try {
	const char *check;                     /* "shm", "write", "peer" */
	const char *transport;                 /* its scheme */
	char subject[MST_PROBE_NAME_LEN + 16]; /* "rxe0/1", or an address */
	struct mst_write_card own;
	bool spare; /* nobody has asked for it, and something else works */
	int error;
	struct mst_write_report report;
};

struct mst_doctor_tries {
	uint32_t count;
	struct mst_doctor_try item[MST_DOCTOR_TRIES_MAX];
	struct mst_way_report way; /* to a peer, over TCP; control.tried: there is one */
	uint32_t data_port;        /* that is asked for; 0: none is */
	struct mst_way_step held;  /* may a server here have it? */
};

/* What an end says of itself at that port. */
void mst_doctor_fill_card(const struct mst_doctor_port *at, struct mst_write_card *card);
/* The first IP address in a listener's. Return: there is one. */
bool mst_doctor_address_in(const char *listener, uint8_t raw[16]);
/* The port that an address of this host belongs to; zeroes: none is known. */
struct mst_doctor_port mst_doctor_port_at(const struct mst_doctor_facts *f, const uint8_t raw[16]);
/* This end of a way, without certificates. */
struct mst_way_end mst_doctor_way_end(const struct mst_doctor_facts *f,
				      const struct mst_doctor_options *o);
/* The credentials that the options or the environment name, as mst_credentials_load() has them. */
int mst_doctor_credentials(const struct mst_doctor_options *o, struct mst_credentials **out,
			   struct mst_reason *why);

/* A test's result as findings. Pure. */
void mst_doctor_judge_try(const struct mst_doctor_try *t, struct mst_findings *out);
/* The finding about --data-port, if it was given. Pure. */
void mst_doctor_judge_data_port(const struct mst_doctor_tries *tries, struct mst_findings *out);
/* The same of a way, and what follows from its figures for a job as wished. Pure. */
void mst_doctor_judge_way(const struct mst_way_report *r, const struct mst_doctor_facts *f,
			  const struct mst_doctor_wish *wish, struct mst_findings *out);

/* Within this process: over each network, over every port that nothing is in the way of. */
void mst_doctor_try_here(const struct mst_doctor_facts *f, const struct mst_doctor_wish *wish,
			 const struct mst_doctor_options *o, struct mst_doctor_tries *out);
/* o->peer */
void mst_doctor_try_peer(const struct mst_doctor_facts *f, const struct mst_doctor_options *o,
			 struct mst_doctor_tries *out);

/* To o->peer, a host; and over RDMA if both have some. */
void mst_doctor_try_way(const struct mst_doctor_facts *f, const struct mst_doctor_options *o,
			struct mst_doctor_tries *out);

/* Is the peer of others' tests, as o says; blocks until then. @out: where the address is printed.
 * Return: 0, or -errno, logged. */
int mst_doctor_listen(const struct mst_doctor_facts *f, const struct mst_doctor_options *o,
		      FILE *out);

#endif
