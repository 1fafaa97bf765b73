/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The command line of vbdisk-front.
 *
 * Owns: the spelling of its options, and which of them fit together.
 * Trusts / does not trust: the person who types; every mistake is named.
 * Runs on: the main thread, once; never blocks.
 * Must not know: how anything is done.
 */
#ifndef VBDISK_FRONT_OPTIONS_H
#define VBDISK_FRONT_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "backend/log.h"
#include "error.h"
#include "loopback/front-connect.h"
#include "loopback/front-job.h"

struct front_options {
	const char *loopback_dir; /* NULL: the real hypervisor */
	uint32_t domid;		  /* with loopback_dir */
	struct front_connect_config connect;
	struct front_job_config job;
	bool has_job;
	const char *hostile; /* row or "all"; NULL: none */
	unsigned nr_races;   /* of the hostile rows that race */
	unsigned nr_rounds;  /* connect, run, disconnect */
	uint64_t linger_ns;  /* stay connected after the job */
	uint64_t grow_ns;    /* wait so long for a larger disk, then write and verify what is new */
	bool leave, json, help, version;
	enum log_level log_level;
};

/* Parse @argv. 0, or -EINVAL with @error. Texts in @options point into @argv. */
int front_options_parse(struct front_options *options, int argc, char **argv, struct error *error);

void front_options_usage(FILE *out);

#endif
