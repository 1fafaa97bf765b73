// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The command line of vbdisk-front.
 *
 * Owns: the spelling of its options, and which of them fit together.
 * Trusts / does not trust: the person who types; every mistake is named.
 * Runs on: the main thread, once; never blocks.
 * Must not know: how anything is done.
 */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "backend/clock.h"
#include "loopback/front-hostile.h"
#include "loopback/front-options.h"

#define BLOCK_BYTES_MAX (BLKIF_SEGMENTS_PER_INDIRECT_PAGE * XEN_PAGE_SIZE)
#define DEPTH_MAX 8192 /* as many as the largest rings hold */
#define SECONDS_MAX (UINT64_MAX / NSEC_PER_SEC)
#define RING_PAGE_SLOTS 32u
#define DOMID_MAX 0x7fefu /* below DOMID_FIRST_RESERVED */

#if defined(__arm__) || defined(__aarch64__)
#define PROTOCOL_NATIVE "arm-abi"
#else
#define PROTOCOL_NATIVE "x86_64-abi"
#endif

enum {
	OPT_LOOPBACK = 256,
	OPT_DOMID,
	OPT_VDEV,
	OPT_ORDER,
	OPT_SPELLING,
	OPT_PROTOCOL,
	OPT_QUEUES,
	OPT_INDIRECT,
	OPT_PERSISTENT,
	OPT_DATA_PAGES,
	OPT_BARRIER_EVERY,
	OPT_DISCARD_EVERY,
	OPT_EXPECT_GROW,
	OPT_JOB,
	OPT_DEPTH,
	OPT_BLOCK_SIZE,
	OPT_OFFSET,
	OPT_SIZE,
	OPT_COUNT,
	OPT_RUNTIME,
	OPT_FLUSH_EVERY,
	OPT_READ_PERCENT,
	OPT_VERIFY,
	OPT_VERIFY_ONLY,
	OPT_ANY_GENERATION,
	OPT_UNALIGNED,
	OPT_ALLOW_ERRORS,
	OPT_SEED,
	OPT_TIMEOUT,
	OPT_HOSTILE,
	OPT_RACES,
	OPT_RECONNECT,
	OPT_LINGER,
	OPT_LEAVE,
	OPT_JSON,
	OPT_LOG_LEVEL,
	OPT_HELP,
	OPT_VERSION,
};

static const struct option longs[] = {
	{"loopback", required_argument, NULL, OPT_LOOPBACK},
	{"domid", required_argument, NULL, OPT_DOMID},
	{"vdev", required_argument, NULL, OPT_VDEV},
	{"ring-page-order", required_argument, NULL, OPT_ORDER},
	{"ring-ref-spelling", required_argument, NULL, OPT_SPELLING},
	{"protocol", required_argument, NULL, OPT_PROTOCOL},
	{"queues", required_argument, NULL, OPT_QUEUES},
	{"indirect", required_argument, NULL, OPT_INDIRECT},
	{"persistent", no_argument, NULL, OPT_PERSISTENT},
	{"data-pages", required_argument, NULL, OPT_DATA_PAGES},
	{"barrier-every", required_argument, NULL, OPT_BARRIER_EVERY},
	{"discard-every", required_argument, NULL, OPT_DISCARD_EVERY},
	{"expect-grow", required_argument, NULL, OPT_EXPECT_GROW},
	{"job", required_argument, NULL, OPT_JOB},
	{"depth", required_argument, NULL, OPT_DEPTH},
	{"block-size", required_argument, NULL, OPT_BLOCK_SIZE},
	{"offset", required_argument, NULL, OPT_OFFSET},
	{"size", required_argument, NULL, OPT_SIZE},
	{"count", required_argument, NULL, OPT_COUNT},
	{"runtime", required_argument, NULL, OPT_RUNTIME},
	{"flush-every", required_argument, NULL, OPT_FLUSH_EVERY},
	{"read-percent", required_argument, NULL, OPT_READ_PERCENT},
	{"verify", no_argument, NULL, OPT_VERIFY},
	{"verify-only", no_argument, NULL, OPT_VERIFY_ONLY},
	{"any-generation", no_argument, NULL, OPT_ANY_GENERATION},
	{"unaligned", no_argument, NULL, OPT_UNALIGNED},
	{"allow-errors", no_argument, NULL, OPT_ALLOW_ERRORS},
	{"seed", required_argument, NULL, OPT_SEED},
	{"timeout", required_argument, NULL, OPT_TIMEOUT},
	{"hostile", required_argument, NULL, OPT_HOSTILE},
	{"races", required_argument, NULL, OPT_RACES},
	{"reconnect", required_argument, NULL, OPT_RECONNECT},
	{"linger", required_argument, NULL, OPT_LINGER},
	{"leave", no_argument, NULL, OPT_LEAVE},
	{"json", no_argument, NULL, OPT_JSON},
	{"log-level", required_argument, NULL, OPT_LOG_LEVEL},
	{"help", no_argument, NULL, OPT_HELP},
	{"version", no_argument, NULL, OPT_VERSION},
	{NULL, 0, NULL, 0},
};

void front_options_usage(FILE *out)
{
	fputs("Usage: vbdisk-front [OPTION]... (--job=JOB | --hostile=ROW | --linger=S)\n"
	      "Be the frontend of one virtual disk: do I/O and verify it, or misbehave and check the answers.\n"
	      "\n"
	      "Where\n"
	      "  --loopback=DIR          the loopback host in DIR; without it, the Xen host we run on\n"
	      "  --domid=N               the domain to be, with --loopback\n"
	      "  --vdev=DEV              the disk: 51712, xvda (default), ...\n"
	      "Connection\n"
	      "  --ring-page-order=K     ring of 1<<K pages (default 0)\n"
	      "  --ring-ref-spelling=S   auto (default), ref0, ref or num-pages\n"
	      "  --queues=N              so many rings (default 1)\n"
	      "  --persistent            say that we keep our grants (feature-persistent)\n"
	      "  --protocol=P            x86_64-abi, x86_32-abi, arm-abi, none, or any text\n"
	      "  --reconnect=N           N rounds of connect, job, disconnect (default 1)\n"
	      "  --linger=S              stay connected S seconds after the job, or until SIGTERM\n"
	      "  --leave                 end without closing anything, like a crash\n"
	      "  --timeout=S             limit of each wait without progress (default 30)\n"
	      "Job\n"
	      "  --job=JOB               seq-read seq-write rand-read rand-write mixed flush discard\n"
	      "  --depth=N               requests in flight (default 1; as many as the rings hold, if it is more)\n"
	      "  --block-size=BYTES      512 to 44K, or to N pages with --indirect=N (default 4K)\n"
	      "  --indirect=N            up to N segments in a request, 12 to 512; more than 11 go as INDIRECT\n"
	      "  --data-pages=N          requests take their pages in turn out of N\n"
	      "  --offset=BYTES --size=BYTES   the range (default the whole disk)\n"
	      "  --count=N               operations (default one pass over the range)\n"
	      "  --runtime=S             seconds\n"
	      "  --flush-every=N         a flush after each N writes\n"
	      "  --barrier-every=N       a WRITE_BARRIER after each N writes, empty and with data in turn\n"
	      "  --discard-every=N       a DISCARD of a block after each N writes\n"
	      "  --read-percent=N        share of reads in a mixed job (default 50)\n"
	      "  --unaligned             segments that begin and end within pages\n"
	      "  --seed=N                of the sequence and of the data (default 1)\n"
	      "  --verify                check all that was written\n"
	      "  --verify-only           check what a run with the same options left\n"
	      "  --any-generation        with --verify-only: the run may have been cut short\n"
	      "  --expect-grow=S         after the job wait up to S seconds for the disk to grow, then write and\n"
	      "                          verify what is new, in the same connection\n"
	      "  --allow-errors          errors are counted, not failures\n"
	      "Hostile\n"
	      "  --hostile=ROW           a row of the table below, or all; TAP on stdout\n"
	      "  --races=N               rounds of rows that race (default 20000)\n"
	      "Output\n"
	      "  --json                  the result as JSON\n"
	      "  --log-level=LEVEL       error, warning (default), info or debug\n"
	      "  --help, --version\n"
	      "\n"
	      "Exit status: 0 good, 1 errors or wrong data, 2 usage, 3 cannot connect, 4 timeout.\n"
	      "Hostile rows:\n",
	      out);
	front_hostile_list(out);
}

/* ---- Values ------------------------------------------------------------------------------------- */

static int number_parse(const char *name, const char *text, uint64_t min, uint64_t max,
			uint64_t *number_out, struct error *error)
{
	unsigned long long number;
	char *end;

	errno = 0;
	number = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || errno || *end || number < min || number > max)
		return error_set(error, EINVAL, "--%s=%s: give a number from %llu to %llu", name,
				 text, (unsigned long long)min, (unsigned long long)max);
	*number_out = number;
	return 0;
}

static int unsigned_parse(const char *name, const char *text, unsigned min, unsigned max,
			  unsigned *number_out, struct error *error)
{
	uint64_t number;
	int err = number_parse(name, text, min, max, &number, error);

	if (!err)
		*number_out = (unsigned)number;
	return err;
}

/* Bytes with an optional K, M, G or T (powers of 1024); a multiple of 512. */
static int bytes_parse(const char *name, const char *text, uint64_t *bytes_out, struct error *error)
{
	static const char units[] = "KMGT";
	unsigned long long bytes;
	unsigned shift = 0;
	const char *unit;
	char *end;

	errno = 0;
	bytes = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || errno)
		goto bad;
	unit = *end ? strchr(units, *end) : NULL;
	if (unit) {
		shift = 10 * (unsigned)(unit - units + 1);
		end++;
	}
	if (*end || bytes > UINT64_MAX >> shift || (bytes << shift) % BLKIF_SECTOR_BYTES)
		goto bad;
	*bytes_out = bytes << shift;
	return 0;
bad:
	return error_set(error, EINVAL,
			 "--%s=%s: give bytes, such as 4096, 4K or 1G, in multiples of 512", name,
			 text);
}

static int seconds_parse(const char *name, const char *text, uint64_t min, uint64_t *ns_out,
			 struct error *error)
{
	uint64_t seconds;
	int err = number_parse(name, text, min, SECONDS_MAX / 2, &seconds, error);

	if (!err)
		*ns_out = seconds * NSEC_PER_SEC;
	return err;
}

static int block_size_parse(const char *text, uint32_t *bytes_out, struct error *error)
{
	uint64_t bytes;
	int err = bytes_parse("block-size", text, &bytes, error);

	if (err)
		return err;
	if (!bytes || bytes > BLOCK_BYTES_MAX)
		return error_set(error, EINVAL,
				 "--block-size=%s: a request carries 512 bytes to 2M (512 pages)",
				 text);
	*bytes_out = (uint32_t)bytes;
	return 0;
}

static int spelling_parse(const char *text, enum front_spelling *spelling_out, struct error *error)
{
	static const char *const names[] = {
		[FRONT_SPELLING_AUTO] = "auto",
		[FRONT_SPELLING_REF0] = "ref0",
		[FRONT_SPELLING_REF] = "ref",
		[FRONT_SPELLING_NUM_PAGES] = "num-pages",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(text, names[i]))
			continue;
		*spelling_out = (enum front_spelling)i;
		return 0;
	}
	return error_set(error, EINVAL, "--ring-ref-spelling=%s: use auto, ref0, ref or num-pages",
			 text);
}

static int job_parse(struct front_options *options, const char *text, struct error *error)
{
	options->has_job = true;
	return front_job_kind_parse(text, &options->job.kind)
		       ? error_set(
				 error, EINVAL,
				 "--job=%s: use seq-read, seq-write, rand-read, rand-write, mixed, flush or discard",
				 text)
		       : 0;
}

/* ---- The line ----------------------------------------------------------------------------------- */

static int option_take(struct front_options *options, int option, const char *text,
		       struct error *error)
{
	struct front_connect_config *connect = &options->connect;
	struct front_job_config *job = &options->job;

	switch (option) {
	case OPT_LOOPBACK:
		options->loopback_dir = text;
		return 0;
	case OPT_DOMID:
		return unsigned_parse("domid", text, 0, DOMID_MAX, &options->domid, error);
	case OPT_VDEV:
		return front_vdev_parse(text, &connect->vdev)
			       ? error_set(
					 error, EINVAL,
					 "--vdev=%s: give a name such as xvda or a number such as 51712",
					 text)
			       : 0;
	case OPT_ORDER:
		return unsigned_parse("ring-page-order", text, 0, BLKIF_RING_ORDER_MAX,
				      &connect->ring_order, error);
	case OPT_SPELLING:
		return spelling_parse(text, &connect->spelling, error);
	case OPT_PROTOCOL:
		connect->protocol = strcmp(text, "none") ? text : NULL;
		return 0;
	case OPT_QUEUES:
		return unsigned_parse("queues", text, 1, FRONT_QUEUES_MAX, &connect->nr_queues,
				      error);
	case OPT_INDIRECT:
		return unsigned_parse("indirect", text, BLKIF_MAX_SEGMENTS + 1,
				      BLKIF_SEGMENTS_PER_INDIRECT_PAGE, &job->max_segments, error);
	case OPT_PERSISTENT:
		connect->persistent = true;
		return 0;
	case OPT_DATA_PAGES:
		return unsigned_parse("data-pages", text, 1, 65536, &job->nr_pages, error);
	case OPT_BARRIER_EVERY:
		return unsigned_parse("barrier-every", text, 1, UINT32_MAX, &job->barrier_every,
				      error);
	case OPT_DISCARD_EVERY:
		return unsigned_parse("discard-every", text, 1, UINT32_MAX, &job->discard_every,
				      error);
	case OPT_EXPECT_GROW:
		return seconds_parse("expect-grow", text, 1, &options->grow_ns, error);
	case OPT_JOB:
		return job_parse(options, text, error);
	case OPT_DEPTH:
		return unsigned_parse("depth", text, 1, DEPTH_MAX, &job->depth, error);
	case OPT_BLOCK_SIZE:
		return block_size_parse(text, &job->block_bytes, error);
	case OPT_OFFSET:
		return bytes_parse("offset", text, &job->offset_bytes, error);
	case OPT_SIZE:
		return bytes_parse("size", text, &job->size_bytes, error);
	case OPT_COUNT:
		return number_parse("count", text, 1, UINT64_MAX, &job->count, error);
	case OPT_RUNTIME:
		return seconds_parse("runtime", text, 1, &job->runtime_ns, error);
	case OPT_FLUSH_EVERY:
		return unsigned_parse("flush-every", text, 1, UINT32_MAX, &job->flush_every, error);
	case OPT_READ_PERCENT:
		return unsigned_parse("read-percent", text, 0, 100, &job->read_percent, error);
	case OPT_VERIFY:
		job->verify = true;
		return 0;
	case OPT_VERIFY_ONLY:
		job->verify_only = true;
		return 0;
	case OPT_ANY_GENERATION:
		job->any_generation = true;
		return 0;
	case OPT_UNALIGNED:
		job->unaligned = true;
		return 0;
	case OPT_ALLOW_ERRORS:
		job->allow_errors = true;
		return 0;
	case OPT_SEED:
		return number_parse("seed", text, 0, UINT64_MAX, &job->seed, error);
	case OPT_TIMEOUT:
		return seconds_parse("timeout", text, 1, &connect->timeout_ns, error);
	case OPT_HOSTILE:
		options->hostile = text;
		return front_hostile_known(text)
			       ? 0
			       : error_set(error, EINVAL,
					   "--hostile=%s: no such row; --help lists them", text);
	case OPT_RACES:
		return unsigned_parse("races", text, 1, UINT32_MAX, &options->nr_races, error);
	case OPT_RECONNECT:
		return unsigned_parse("reconnect", text, 1, UINT32_MAX, &options->nr_rounds, error);
	case OPT_LINGER:
		return seconds_parse("linger", text, 0, &options->linger_ns, error);
	case OPT_LEAVE:
		options->leave = true;
		return 0;
	case OPT_JSON:
		options->json = true;
		return 0;
	case OPT_LOG_LEVEL:
		return log_level_parse(text, &options->log_level)
			       ? error_set(error, EINVAL,
					   "--log-level=%s: use error, warning, info or debug",
					   text)
			       : 0;
	case OPT_HELP:
		options->help = true;
		return 0;
	case OPT_VERSION:
		options->version = true;
		return 0;
	}
	return error_set(error, EINVAL, "unknown option");
}

static bool job_writes(const struct front_job_config *job)
{
	return job->kind == FRONT_JOB_SEQ_WRITE || job->kind == FRONT_JOB_RAND_WRITE ||
	       job->kind == FRONT_JOB_MIXED;
}

/* Options that are fine each, and mean nothing together. */
static int options_fit(const struct front_options *options, bool domid_given, struct error *error)
{
	const struct front_job_config *job = &options->job;

	if (!options->loopback_dir != !domid_given)
		return error_set(error, EINVAL, "--loopback and --domid go together");
	if (options->hostile && options->has_job)
		return error_set(error, EINVAL, "give either --job or --hostile");
	if (!options->hostile && !options->has_job && !options->linger_ns)
		return error_set(
			error, EINVAL,
			"nothing to do: give --job, --hostile, or --linger to connect only");
	if ((job->verify || job->verify_only) && (!options->has_job || !job_writes(job)))
		return error_set(
			error, EINVAL,
			"--verify and --verify-only check what a job writes: use seq-write, rand-write or mixed; --verify-only writes nothing");
	if (job->block_bytes > job->max_segments * XEN_PAGE_SIZE)
		return error_set(
			error, EINVAL,
			"--block-size=%u: a request of %u segments carries %u bytes at most; see --indirect",
			job->block_bytes, job->max_segments, job->max_segments * XEN_PAGE_SIZE);
	if (options->grow_ns && !options->has_job)
		return error_set(error, EINVAL, "--expect-grow goes with --job");
	if (job->verify && job->verify_only)
		return error_set(error, EINVAL, "give either --verify or --verify-only");
	if (job->verify_only && job->runtime_ns)
		return error_set(
			error, EINVAL,
			"--verify-only cannot know how far --runtime came: give --count, the ops that run reported");
	if (job->any_generation && !job->verify_only)
		return error_set(error, EINVAL, "--any-generation goes with --verify-only");
	return 0;
}

int front_options_parse(struct front_options *options, int argc, char **argv, struct error *error)
{
	bool domid_given = false;
	unsigned nr_slots;
	int option, err;

	*options = (struct front_options){
		.connect = {.protocol = PROTOCOL_NATIVE,
			    .timeout_ns = 30 * NSEC_PER_SEC,
			    .nr_queues = 1},
		.job = {.depth = 1,
			.block_bytes = 4096,
			.read_percent = 50,
			.seed = 1,
			.max_segments = BLKIF_MAX_SEGMENTS},
		.nr_races = 20000,
		.nr_rounds = 1,
		.log_level = LOG_LEVEL_WARNING,
	};
	front_vdev_parse("xvda", &options->connect.vdev);
	opterr = 0;
	optind = 0; /* glibc: start over, also after an earlier parse */
	while ((option = getopt_long(argc, argv, ":", longs, NULL)) != -1) {
		if (option == ':')
			return error_set(error, EINVAL, "%s needs a value", argv[optind - 1]);
		if (option == '?')
			return error_set(
				error, EINVAL,
				"%s is no option, or one with a value too many; see --help",
				argv[optind - 1]);
		domid_given |= option == OPT_DOMID;
		err = option_take(options, option, optarg, error);
		if (err)
			return err;
	}
	if (optind != argc)
		return error_set(error, EINVAL, "\"%s\" is no option; see --help", argv[optind]);
	if (options->help || options->version)
		return 0;
	options->job.timeout_ns = options->connect.timeout_ns;
	/* In every layout a page holds 32 slots, and k pages 32 * k. */
	nr_slots = options->connect.nr_queues * (RING_PAGE_SLOTS << options->connect.ring_order);
	if (options->job.depth > nr_slots)
		options->job.depth = nr_slots;
	return options_fit(options, domid_given, error);
}
