/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What a run of vbdisk-front measured, and how it is told: one line for a person, or JSON.
 *
 * Owns: the counters, the latency histogram, the two formats.
 * Trusts / does not trust: nothing comes from outside.
 * Runs on: any thread; the print functions write to a stdio stream and may block there.
 * Must not know: rings, xenstore.
 */
#ifndef VBDISK_FRONT_REPORT_H
#define VBDISK_FRONT_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Buckets of the histogram: 32 per power of two of nanoseconds, so within 3 % of the truth. */
#define FRONT_LATENCY_SUB_BITS 5
#define FRONT_LATENCY_BUCKETS ((64 - FRONT_LATENCY_SUB_BITS + 1) << FRONT_LATENCY_SUB_BITS)

struct front_stats {
	uint64_t nr_reads, nr_writes, nr_flushes, nr_barriers,
		nr_discards; /* answered, whatever the status */
	uint64_t nr_checks;  /* reads back of the verify pass, not in nr_reads */
	uint64_t nr_sectors_verified;
	uint64_t bytes; /* of reads and writes answered OKAY, the verify pass not counted */
	uint64_t nr_errors, nr_unsupported, nr_other_status;
	uint64_t elapsed_ns; /* of the job proper, without the verify pass */
	uint64_t nr_connects, connect_us_sum, connect_us_max;
	uint64_t nr_notified, nr_events, nr_resizes;
	uint64_t nr_latencies, latency_max_ns;
	uint32_t latencies[FRONT_LATENCY_BUCKETS];
};

/* Count one latency. */
void front_latency_add(struct front_stats *stats, uint64_t latency_ns);

/* The latency that @percent (0..100) of all operations did not exceed, in ns; 0 without any. */
uint64_t front_latency_percentile(const struct front_stats *stats, double percent);

void front_connect_add(struct front_stats *stats, uint64_t connect_us);

/* One line with its newline. @job is the name of the job, @good whether all went well. */
void front_report_line(FILE *out, const char *job, bool good, const struct front_stats *stats);

/* One JSON object with its newline. */
void front_report_json(FILE *out, const char *job, bool good, const struct front_stats *stats);

#endif
