/* SPDX-License-Identifier: MIT */
#ifndef MST_TESTS_TRANSPORT_LIFE_SIM_H
#define MST_TESTS_TRANSPORT_LIFE_SIM_H

/* Ends all peers of this world that a case has left. */
void life_sim_end(void);

#endif
