// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What an administrator can choose about how a VBD is served: NAME=VALUE, given by `-o` for all disks, or
 * behind the target of one.
 *
 * Owns: the names, the ranges and the defaults.
 * Trusts / does not trust: the text comes from an administrator; every mistake is named.
 * Runs on: the main thread, at start; never blocks.
 * Must not know: how anything is done.
 */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "backend/blkif-abi.h"
#include "backend/vbd-options.h"
#include "drivers/params.h"

/* As xen-blkback (MAX_INDIRECT_SEGMENTS): 1 MiB in one request. */
#define INDIRECT_MAX 256
#define MIB (1024ull * 1024)

const char vbd_options_help[] =
	"queues=N           queues offered, 1 to 16 (default: one per CPU)\n"
	"workers=N          threads that serve the queues; 0: the main thread does (default: one per\n"
	"                   queue, but no more than CPUs)\n"
	"ring-order=N       ring pages offered per queue, 2 to the power of N, 0 to 4 (default 4)\n"
	"indirect=N         segments of 4 KiB in one request, 12 to 256; 0: no more than 11 (default: 256,\n"
	"                   less for a guest whose rings are so many and large that it could run out of\n"
	"                   grants)\n"
	"persistent=N       offer persistent grants, and keep N of them mapped per queue, 1 to 65536; 0: do\n"
	"                   not (default)\n"
	"barrier=0|1        offer write barriers, for guests that know no flush (default 0)\n"
	"discard=0|1        offer discard where the storage has it (default 1)\n"
	"flush-failure=WAY  when the storage fails to flush: hold (default) answers no write and no flush\n"
	"                   any more, fail closes the disk\n"
	"sector=WAY         512 (default): offer sectors of 512 bytes whatever the storage has; native:\n"
	"                   offer the storage's own block\n"
	"resize-poll=S      look every S seconds whether the image has grown; 0: only at SIGHUP\n"
	"                   (default 4)\n"
	"data-memory=SIZE   memory for data in flight per queue, 1M to 1G (default 32M)\n";

void vbd_options_init(struct vbd_options *options)
{
	long nr_cpus = sysconf(_SC_NPROCESSORS_ONLN);

	if (nr_cpus < 1)
		nr_cpus = 1;
	if (nr_cpus > VBD_QUEUES_MAX)
		nr_cpus = VBD_QUEUES_MAX;
	*options = (struct vbd_options){
		.queues = (unsigned)nr_cpus,
		.workers = (unsigned)nr_cpus,
		.ring_order = BLKIF_RING_ORDER_MAX,
		.indirect = INDIRECT_MAX,
		.discard = true,
		.resize_poll_s = 4,
		.data_bytes = 32 * MIB,
	};
}

static int count_set(const char *value, unsigned long min, unsigned long max, unsigned *count)
{
	unsigned long number;
	int err = param_count(value, min, max, &number);

	if (!err)
		*count = (unsigned)number;
	return err;
}

/* One of two words; @second is the one that means true. */
static int choice_set(const char *value, const char *first, const char *second, bool *choice)
{
	*choice = !strcmp(value, second);
	return *choice || !strcmp(value, first) ? 0 : -EINVAL;
}

static int indirect_set(struct vbd_options *options, const char *value)
{
	unsigned number;
	int err = count_set(value, 0, INDIRECT_MAX, &number);

	/* blkfront takes 11 and less for none: a plain request has as many. */
	if (err || (number && number <= BLKIF_MAX_SEGMENTS))
		return -EINVAL;
	options->indirect = number;
	options->indirect_chosen = true;
	return 0;
}

static int data_memory_set(struct vbd_options *options, const char *value)
{
	uint64_t bytes;

	if (param_size(value, &bytes) || bytes < MIB || bytes > 1024 * MIB)
		return -EINVAL;
	options->data_bytes = bytes;
	return 0;
}

static int option_set(struct vbd_options *options, const char *name, const char *value)
{
	if (!strcmp(name, "queues"))
		return count_set(value, 1, VBD_QUEUES_MAX, &options->queues);
	if (!strcmp(name, "workers"))
		return count_set(value, 0, VBD_QUEUES_MAX, &options->workers);
	if (!strcmp(name, "ring-order"))
		return count_set(value, 0, BLKIF_RING_ORDER_MAX, &options->ring_order);
	if (!strcmp(name, "indirect"))
		return indirect_set(options, value);
	if (!strcmp(name, "persistent"))
		return count_set(value, 0, 65536, &options->persistent);
	if (!strcmp(name, "barrier"))
		return choice_set(value, "0", "1", &options->barrier);
	if (!strcmp(name, "discard"))
		return choice_set(value, "0", "1", &options->discard);
	if (!strcmp(name, "flush-failure"))
		return choice_set(value, "hold", "fail", &options->close_on_flush_error);
	if (!strcmp(name, "sector"))
		return choice_set(value, "512", "native", &options->native_sector);
	if (!strcmp(name, "resize-poll"))
		return count_set(value, 0, 86400, &options->resize_poll_s);
	if (!strcmp(name, "data-memory"))
		return data_memory_set(options, value);
	return -ENOENT;
}

int vbd_options_set(struct vbd_options *options, const char *text, struct error *error)
{
	struct param param;
	const char *cursor = text;
	int err = param_next(&cursor, '\0', &param, error);

	if (err != 1 || strchr(text, ','))
		return error_set(error, EINVAL, "option \"%s\" is not of the form NAME=VALUE",
				 text);
	err = option_set(options, param.key, param.value);
	if (err == -ENOENT)
		return error_set(error, EINVAL,
				 "there is no option \"%s\"; vbdisk --help lists the options",
				 param.key);
	if (err)
		return error_set(error, EINVAL,
				 "option %s cannot be \"%s\"; vbdisk --help tells what it can be",
				 param.key, param.value);
	return 0;
}

/* Does "NAME=..." begin with the name of an option? */
static bool is_option(const char *text)
{
	struct vbd_options scratch;
	size_t len = strcspn(text, "=,");
	char name[32];

	if (text[len] != '=' || len >= sizeof(name))
		return false;
	memcpy(name, text, len);
	name[len] = '\0';
	return option_set(&scratch, name, "") != -ENOENT;
}

int vbd_options_split(struct vbd_options *options, char *params, struct error *error)
{
	char *end = params + strlen(params), *comma, *option;
	int err = 0;

	if (end > params && end[-1] == ',') {
		end[-1] = '\0';
		return 0;
	}
	/* Back to the first of them: what is before may have commas of its own. */
	while ((comma = memrchr(params, ',', (size_t)(end - params))) && is_option(comma + 1))
		end = comma;
	if (*end)
		*end++ = '\0';
	else
		end = NULL;
	while (!err && (option = strsep(&end, ",")))
		err = vbd_options_set(options, option, error);
	return err;
}
