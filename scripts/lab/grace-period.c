// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Prints how long one RCU grace period takes: membarrier(MEMBARRIER_CMD_GLOBAL) returns after one.
 *
 * Owns: nothing. Trusts: the kernel (kernel/sched/membarrier.c: the command is synchronize_rcu()).
 * Runs on: any Linux machine, statically linked for the emulated lab; blocks.
 * Must not know: what the machine does meanwhile.
 */
#include <linux/membarrier.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 51

static int double_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(void)
{
	struct timespec begin, end;
	double taken_us[ROUNDS];

	for (int i = 0; i < ROUNDS; i++) {
		clock_gettime(CLOCK_MONOTONIC, &begin);
		if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0)) {
			perror("grace-period: membarrier");
			return 1;
		}
		clock_gettime(CLOCK_MONOTONIC, &end);
		taken_us[i] = (double)(end.tv_sec - begin.tv_sec) * 1e6 +
			      (double)(end.tv_nsec - begin.tv_nsec) / 1e3;
	}
	qsort(taken_us, ROUNDS, sizeof(*taken_us), double_compare);
	printf("median %.0f us, lowest %.0f us, highest %.0f us, of %d\n", taken_us[ROUNDS / 2],
	       taken_us[0], taken_us[ROUNDS - 1], ROUNDS);
	return 0;
}
