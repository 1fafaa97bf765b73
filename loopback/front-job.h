/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Jobs: a stream of reads, writes and flushes at a depth, and the check that data came back right.
 *
 * Owns: the sequence of operations (a function of the configuration and the seed alone), the requests in
 *   flight and their data pages, what each block must hold.
 * Trusts / does not trust: a backend under test, in nothing: answers to nobody's request, wrong
 *   operations and wrong data are named.
 * Runs on: one thread; front_job_run() sleeps for events.
 * Must not know: xenstore.
 *
 * With verify, an operation on a block that has a conflicting one in flight waits for it, so that what a
 * block must hold is certain, and the same configuration gives the same contents every time. That is
 * what lets a later verify-only run work out what an earlier one must have left.
 */
#ifndef VBDISK_FRONT_JOB_H
#define VBDISK_FRONT_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "error.h"
#include "loopback/front-link.h"
#include "loopback/front-report.h"

enum front_job_kind {
	FRONT_JOB_SEQ_READ,
	FRONT_JOB_SEQ_WRITE,
	FRONT_JOB_RAND_READ,
	FRONT_JOB_RAND_WRITE,
	FRONT_JOB_MIXED,
	FRONT_JOB_FLUSH,
	FRONT_JOB_DISCARD, /* one after the other */
	FRONT_JOB_KINDS,
};

struct front_job_config {
	enum front_job_kind kind;
	unsigned depth;	       /* requests in flight */
	uint32_t block_bytes;  /* a multiple of 512, at most max_segments pages */
	unsigned max_segments; /* of a request; more than 11 go as INDIRECT */
	unsigned nr_pages; /* data pages which requests take in turn; 0: no more than they need */
	uint64_t offset_bytes;	/* where on the disk; a multiple of 512 */
	uint64_t size_bytes;	/* 0: to the end */
	uint64_t count;		/* operations per run; 0: one pass, or no limit with runtime_ns */
	uint64_t runtime_ns;	/* 0: no limit */
	unsigned flush_every;	/* a FLUSH after so many writes; 0: none */
	unsigned barrier_every; /* a WRITE_BARRIER likewise, empty and with data in turn */
	unsigned discard_every; /* a DISCARD likewise; what it leaves is unknown until written */
	unsigned read_percent;	/* of a mixed job */
	bool verify;		/* check what is read, and read back what was written */
	bool verify_only;	/* write nothing; check what a run with this configuration left */
	bool any_generation;	/* verify_only of a run that was cut short: older data is fine */
	bool unaligned;		/* cut each block into segments at random places within pages */
	bool allow_errors;	/* an answer other than OKAY is counted, and no failure */
	uint64_t seed;
	uint64_t timeout_ns; /* without any answer */
};

struct front_job;

/* "seq-read" and so on. */
const char *front_job_name(enum front_job_kind kind);
int front_job_kind_parse(const char *name, enum front_job_kind *kind_out);

/* Make a job for a disk of @nr_sectors512. It may run several times, each run going on where the last
 * one ended. 0, -EINVAL with @error if the disk and the configuration do not fit, -ENOMEM. */
int front_job_create(const struct front_job_config *config, uint64_t nr_sectors512,
		     struct front_job **job_out, struct error *error);
void front_job_destroy(struct front_job *job);

/* Run on the connected @link, adding to @stats. 0, or with @error: -EILSEQ wrong data, -EIO an error
 * answer, -EPROTO an answer that cannot be, -ETIMEDOUT, -ENOTCONN the backend left, -errno. Ends early,
 * in order, when @link->stop is set. */
int front_job_run(struct front_job *job, struct front_link *link, struct front_stats *stats,
		  struct error *error);

#endif
