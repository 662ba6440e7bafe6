/* SPDX-License-Identifier: MIT */
/*
 * The peer MPI: MPI_Allreduce from one buffer of the caller into another. Started by compare.py,
 * see meter.h for the options.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/bench/peers/meter.h"

static void steps(struct meter *m, float *gradient, float *result)
{
	int elems = (int)meter_course(m)->elems;
	uint64_t all = UINT64_MAX >> (64 - meter_course(m)->workers);

	for (uint64_t tag = 0;; tag++) {
		meter_fill(m, gradient, tag);
		if (!meter_next(m))
			return;
		MPI_Allreduce(gradient, result, elems, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
		meter_done(m);
		meter_meet(m);
		meter_check(m, result, tag, all, 1);
	}
}

/* Return: the exit status. */
static int run(struct meter *m)
{
	uint64_t elems = meter_course(m)->elems;
	float *gradient = calloc(elems, sizeof(float)), *result = calloc(elems, sizeof(float));
	int rank, size, status;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (gradient == NULL || result == NULL || elems > INT32_MAX ||
	    (uint32_t)size != meter_course(m)->workers)
		fprintf(stderr, "mpi_allreduce: no memory, too many elements or other --workers\n");
	else if (meter_join(m, (uint32_t)rank) == 0)
		steps(m, gradient, result);
	status = meter_close(m);
	free(gradient);
	free(result);
	return status;
}

int main(int argc, char **argv)
{
	struct meter *m = meter_open(argc, argv);
	int status;

	if (m == NULL)
		return 2;
	MPI_Init(NULL, NULL);
	status = run(m);
	if (status != EXIT_SUCCESS)
		MPI_Abort(MPI_COMM_WORLD, status);
	MPI_Finalize();
	return status;
}
