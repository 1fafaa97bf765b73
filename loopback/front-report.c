// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a run of vbdisk-front measured, and how it is told: one line for a person, or JSON.
 *
 * Owns: the latency histogram, the two formats.
 * Trusts / does not trust: nothing comes from outside.
 * Runs on: any thread; the print functions may block on their stream.
 * Must not know: rings, xenstore.
 */
#include "config.h"

#include "loopback/front-report.h"

#define SUB_COUNT (1u << FRONT_LATENCY_SUB_BITS)
#define BYTES_PER_MIB (1024.0 * 1024.0)

/* Values below SUB_COUNT have a bucket each; above, the top bits after the leading one choose. */
static unsigned bucket_of(uint64_t value)
{
	unsigned shift;

	if (value < SUB_COUNT)
		return (unsigned)value;
	shift = 63u - (unsigned)__builtin_clzll(value) - FRONT_LATENCY_SUB_BITS;
	return ((shift + 1) << FRONT_LATENCY_SUB_BITS) +
	       (unsigned)((value >> shift) & (SUB_COUNT - 1));
}

/* The largest value that falls into @bucket. */
static uint64_t bucket_top(unsigned bucket)
{
	unsigned shift;

	if (bucket < SUB_COUNT)
		return bucket;
	shift = (bucket >> FRONT_LATENCY_SUB_BITS) - 1;
	return (((uint64_t)SUB_COUNT + (bucket & (SUB_COUNT - 1)) + 1) << shift) - 1;
}

void front_latency_add(struct front_stats *stats, uint64_t latency_ns)
{
	stats->latencies[bucket_of(latency_ns)]++;
	stats->nr_latencies++;
	if (latency_ns > stats->latency_max_ns)
		stats->latency_max_ns = latency_ns;
}

uint64_t front_latency_percentile(const struct front_stats *stats, double percent)
{
	uint64_t rank = (uint64_t)((double)stats->nr_latencies * percent / 100.0), seen = 0;

	if (!stats->nr_latencies)
		return 0;
	for (unsigned i = 0; i < FRONT_LATENCY_BUCKETS; i++) {
		seen += stats->latencies[i];
		if (seen > rank || seen == stats->nr_latencies)
			return bucket_top(i) < stats->latency_max_ns ? bucket_top(i)
								     : stats->latency_max_ns;
	}
	return stats->latency_max_ns;
}

void front_connect_add(struct front_stats *stats, uint64_t connect_us)
{
	stats->nr_connects++;
	stats->connect_us_sum += connect_us;
	if (connect_us > stats->connect_us_max)
		stats->connect_us_max = connect_us;
}

static uint64_t nr_ops(const struct front_stats *stats)
{
	return stats->nr_reads + stats->nr_writes + stats->nr_flushes + stats->nr_barriers +
	       stats->nr_discards;
}

static double per_second(const struct front_stats *stats, double amount)
{
	return stats->elapsed_ns ? amount * 1e9 / (double)stats->elapsed_ns : 0;
}

static uint64_t connect_us_mean(const struct front_stats *stats)
{
	return stats->nr_connects ? stats->connect_us_sum / stats->nr_connects : 0;
}

void front_report_line(FILE *out, const char *job, bool good, const struct front_stats *stats)
{
	fprintf(out,
		"%s: %s, %llu ops, %.1f MiB in %.3f s, %.0f IOPS, %.1f MiB/s, latency us p50 %.1f p99 %.1f max %.1f, %llu errors, %llu sectors verified, connect %llu us\n",
		job, good ? "ok" : "FAILED", (unsigned long long)nr_ops(stats),
		(double)stats->bytes / BYTES_PER_MIB, (double)stats->elapsed_ns / 1e9,
		per_second(stats, (double)nr_ops(stats)),
		per_second(stats, (double)stats->bytes / BYTES_PER_MIB),
		(double)front_latency_percentile(stats, 50) / 1e3,
		(double)front_latency_percentile(stats, 99) / 1e3,
		(double)stats->latency_max_ns / 1e3,
		(unsigned long long)(stats->nr_errors + stats->nr_unsupported +
				     stats->nr_other_status),
		(unsigned long long)stats->nr_sectors_verified,
		(unsigned long long)connect_us_mean(stats));
}

static void json_number(FILE *out, const char *name, uint64_t number)
{
	fprintf(out, "\"%s\": %llu, ", name, (unsigned long long)number);
}

void front_report_json(FILE *out, const char *job, bool good, const struct front_stats *stats)
{
	fprintf(out, "{\"job\": \"%s\", \"ok\": %s, ", job, good ? "true" : "false");
	json_number(out, "ops", nr_ops(stats));
	json_number(out, "reads", stats->nr_reads);
	json_number(out, "writes", stats->nr_writes);
	json_number(out, "flushes", stats->nr_flushes);
	json_number(out, "barriers", stats->nr_barriers);
	json_number(out, "discards", stats->nr_discards);
	json_number(out, "bytes", stats->bytes);
	json_number(out, "elapsed_us", stats->elapsed_ns / 1000);
	fprintf(out, "\"iops\": %.1f, \"mib_per_s\": %.2f, ",
		per_second(stats, (double)nr_ops(stats)),
		per_second(stats, (double)stats->bytes / BYTES_PER_MIB));
	fprintf(out, "\"latency_us\": {\"p50\": %.1f, \"p99\": %.1f, \"max\": %.1f}, ",
		(double)front_latency_percentile(stats, 50) / 1e3,
		(double)front_latency_percentile(stats, 99) / 1e3,
		(double)stats->latency_max_ns / 1e3);
	fprintf(out, "\"errors\": {\"error\": %llu, \"eopnotsupp\": %llu, \"other\": %llu}, ",
		(unsigned long long)stats->nr_errors, (unsigned long long)stats->nr_unsupported,
		(unsigned long long)stats->nr_other_status);
	json_number(out, "verify_reads", stats->nr_checks);
	json_number(out, "sectors_verified", stats->nr_sectors_verified);
	json_number(out, "notifications_sent", stats->nr_notified);
	json_number(out, "notifications_received", stats->nr_events);
	json_number(out, "resizes", stats->nr_resizes);
	json_number(out, "connects", stats->nr_connects);
	json_number(out, "connect_us", connect_us_mean(stats));
	fprintf(out, "\"connect_us_max\": %llu}\n", (unsigned long long)stats->connect_us_max);
}
