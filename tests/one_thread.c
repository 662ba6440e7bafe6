/* SPDX-License-Identifier: MIT */
/*
 * Linked into tests that are labelled one-thread, which the thread sanitizer does not look at: in
 * the place of what starts a thread. A test that gets here must lose the label
 * (cmake/muster.cmake).
 */
#include <pthread.h>

#include "common/base/assert.h"

int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *how, void *(*run)(void *),
			  void *arg);

int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *how, void *(*run)(void *),
			  void *arg)
{
	(void)out;
	(void)how;
	(void)run;
	(void)arg;
	mst_assert_failed("a test that is labelled one-thread starts no thread", __FILE__,
			  __LINE__);
}
