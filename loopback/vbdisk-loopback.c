// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * vbdisk-loopback: an embedded Xen host, and the toolstack's part in it.
 *
 * Owns: the command line and the exit status.
 * Trusts / does not trust: the person who calls it.
 * Runs on: one thread.
 * Must not know: how the host or the toolstack do it.
 */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/log.h"
#include "loopback/host.h"
#include "loopback/toolstack.h"

enum exit_status { STATUS_OK, STATUS_FAILED, STATUS_USAGE, STATUS_TIMEOUT };

#define IGNORED_PIDS_MAX 64u

static const char usage_text[] =
	"usage: vbdisk-loopback COMMAND --dir DIR [ARGUMENTS]\n"
	"\n"
	"An embedded Xen host for programs that need one and have none: a xenstore server, grants "
	"and\n"
	"event channels among the processes of one machine. DIR holds its sockets.\n"
	"\n"
	"The host:\n"
	"  run [--foreground]          serve until SIGTERM or stop; prints \"ready\"\n"
	"  stop                        end it\n"
	"  audit [--json] [--expect-clean] [--ignore-pid PID]...\n"
	"                              show what is shared, mapped, bound, watched;\n"
	"                              --expect-clean: fail if anything is left\n"
	"  refuse-grant N [COUNT]      the N-th next use of a grant fails, COUNT (1) of them\n"
	"\n"
	"The toolstack:\n"
	"  domain-create DOMID [--driver-domain]\n"
	"  domain-destroy DOMID [--keep-nodes] [--grace SECONDS]\n"
	"                              as xl destroy; waits 2 s for qdisk backends, as libxl does\n"
	"  domain-suspend DOMID, domain-resume DOMID\n"
	"  domain-state DOMID          prints running, suspended or dead\n"
	"  attach DOMID VDEV PARAMS [--mode r|w] [--kind qdisk|vbd3] [--backend-domid B]\n"
	"         [--cdrom] [--direct-io-safe] [--no-discard]\n"
	"                              VDEV: xvda or a number; PARAMS: aio:TARGET\n"
	"  detach DOMID VDEV [--force] [--timeout SECONDS]\n"
	"  wait DOMID VDEV --backend-state N | --frontend-state N [--timeout SECONDS]\n"
	"\n"
	"Exit status: 0 done, 1 failed, 2 usage, 3 time-out (10 s unless --timeout says "
	"otherwise).\n";

struct arguments {
	const char *dir;
	bool json, expect_clean, keep_nodes, force, driver_domain;
	unsigned timeout_ms, grace_ms;
	int backend_state, frontend_state; /* -1: not asked for */
	struct toolstack_disk disk;
	uint32_t ignored_pids[IGNORED_PIDS_MAX];
	unsigned nr_ignored;
	char **words; /* what is not an option */
	int nr_words;
};

__attribute__((format(printf, 1, 2))) static int usage_error(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	fputs("vbdisk-loopback: ", stderr);
	vfprintf(stderr, format, ap);
	fputs("; see vbdisk-loopback --help\n", stderr);
	va_end(ap);
	return STATUS_USAGE;
}

/* The exit status for @err, after saying what is wrong. */
static int finish(int err, const struct error *error)
{
	if (!err)
		return STATUS_OK;
	fprintf(stderr, "vbdisk-loopback: %s\n", error->text);
	return err == -ETIMEDOUT ? STATUS_TIMEOUT : STATUS_FAILED;
}

static int number_parse(const char *text, unsigned long max, unsigned long *number_out)
{
	char *end;

	errno = 0;
	*number_out = strtoul(text, &end, 10);
	return errno || *end || !*text || *text < '0' || *text > '9' || *number_out > max ? -EINVAL
											  : 0;
}

static int seconds_parse(const char *text, unsigned *ms_out)
{
	char *end;
	double seconds = strtod(text, &end);

	if (*end || end == text || !(seconds >= 0) || seconds > 86400)
		return -EINVAL;
	*ms_out = (unsigned)(seconds * 1000);
	return 0;
}

/* --- Commands --- */

static int command_run(const struct arguments *arguments)
{
	struct loopback_server *server;
	struct error error = {""};
	int err;

	log_init("vbdisk-loopback", "", LOG_LEVEL_INFO);
	err = loopback_server_start(arguments->dir, &server, &error);
	if (err)
		return finish(err, &error);
	puts("ready");
	fflush(stdout);
	err = loopback_server_run(server);
	loopback_server_stop(server);
	if (err)
		error_set(&error, -err, "the event loop failed: %s", strerror(-err));
	return finish(err, &error);
}

static int with_toolstack(const struct arguments *arguments,
			  int (*body)(struct toolstack *toolstack,
				      const struct arguments *arguments, struct error *error))
{
	struct toolstack *toolstack;
	struct error error = {""};
	int err = toolstack_open(arguments->dir, &toolstack, &error);

	if (!err) {
		err = body(toolstack, arguments, &error);
		toolstack_close(toolstack);
	}
	return finish(err, &error);
}

static int do_stop(struct toolstack *toolstack, const struct arguments *arguments,
		   struct error *error)
{
	(void)arguments;
	return toolstack_stop(toolstack, error);
}

static int do_audit(struct toolstack *toolstack, const struct arguments *arguments,
		    struct error *error)
{
	unsigned nr_findings;
	int err = toolstack_audit(toolstack, stdout, arguments->json, arguments->ignored_pids,
				  arguments->nr_ignored, &nr_findings, error);

	if (!err && arguments->expect_clean && nr_findings)
		err = error_set(error, EBUSY, "the host in %s is not clean: %u findings",
				arguments->dir, nr_findings);
	return err;
}

static int do_refuse_grant(struct toolstack *toolstack, const struct arguments *arguments,
			   struct error *error)
{
	unsigned long nth, count = 1;

	if (number_parse(arguments->words[0], INT32_MAX, &nth) || !nth ||
	    (arguments->nr_words > 1 && number_parse(arguments->words[1], INT32_MAX, &count)))
		return error_set(error, EINVAL,
				 "refuse-grant takes numbers: N from 1 on, COUNT from 0 on");
	return toolstack_refuse_grant(toolstack, (uint32_t)nth, (uint32_t)count, error);
}

static int do_domain_create(struct toolstack *toolstack, const struct arguments *arguments,
			    struct error *error)
{
	return toolstack_domain_create(toolstack, arguments->disk.domid, arguments->driver_domain,
				       error);
}

static int do_domain_destroy(struct toolstack *toolstack, const struct arguments *arguments,
			     struct error *error)
{
	return toolstack_domain_destroy(toolstack, arguments->disk.domid, arguments->keep_nodes,
					arguments->grace_ms, error);
}

static int do_domain_suspend(struct toolstack *toolstack, const struct arguments *arguments,
			     struct error *error)
{
	return toolstack_domain_suspend(toolstack, arguments->disk.domid, error);
}

static int do_domain_resume(struct toolstack *toolstack, const struct arguments *arguments,
			    struct error *error)
{
	return toolstack_domain_resume(toolstack, arguments->disk.domid, error);
}

static int do_domain_state(struct toolstack *toolstack, const struct arguments *arguments,
			   struct error *error)
{
	static const char *const names[] = {
		[XEN_DOMAIN_RUNNING] = "running",
		[XEN_DOMAIN_SUSPENDED] = "suspended",
		[XEN_DOMAIN_DEAD] = "dead",
	};
	enum xen_domain_state state;
	int err = toolstack_domain_state(toolstack, arguments->disk.domid, &state, error);

	if (!err)
		puts(names[state]);
	return err;
}

static int do_attach(struct toolstack *toolstack, const struct arguments *arguments,
		     struct error *error)
{
	return toolstack_attach(toolstack, &arguments->disk, error);
}

static int do_detach(struct toolstack *toolstack, const struct arguments *arguments,
		     struct error *error)
{
	return toolstack_detach(toolstack, arguments->disk.domid, arguments->disk.vdev,
				arguments->force, arguments->timeout_ms, error);
}

static int do_wait(struct toolstack *toolstack, const struct arguments *arguments,
		   struct error *error)
{
	bool frontend = arguments->frontend_state >= 0;

	return toolstack_wait(
		toolstack, arguments->disk.domid, arguments->disk.vdev, frontend,
		(unsigned)(frontend ? arguments->frontend_state : arguments->backend_state),
		arguments->timeout_ms, error);
}

struct command {
	const char *name;
	int (*body)(struct toolstack *toolstack, const struct arguments *arguments,
		    struct error *error);
	int words_min, words_max;
	bool takes_domid, takes_vdev;
};

static const struct command commands[] = {
	{"stop", do_stop, 0, 0, false, false},
	{"audit", do_audit, 0, 0, false, false},
	{"refuse-grant", do_refuse_grant, 1, 2, false, false},
	{"domain-create", do_domain_create, 1, 1, true, false},
	{"domain-destroy", do_domain_destroy, 1, 1, true, false},
	{"domain-suspend", do_domain_suspend, 1, 1, true, false},
	{"domain-resume", do_domain_resume, 1, 1, true, false},
	{"domain-state", do_domain_state, 1, 1, true, false},
	{"attach", do_attach, 3, 3, true, true},
	{"detach", do_detach, 2, 2, true, true},
	{"wait", do_wait, 2, 2, true, true},
};

/* --- The command line --- */

enum option_value {
	OPTION_DIR = 256,
	OPTION_FOREGROUND,
	OPTION_JSON,
	OPTION_EXPECT_CLEAN,
	OPTION_IGNORE_PID,
	OPTION_KEEP_NODES,
	OPTION_GRACE,
	OPTION_DRIVER_DOMAIN,
	OPTION_MODE,
	OPTION_KIND,
	OPTION_BACKEND_DOMID,
	OPTION_CDROM,
	OPTION_DIRECT_IO_SAFE,
	OPTION_NO_DISCARD,
	OPTION_FORCE,
	OPTION_TIMEOUT,
	OPTION_BACKEND_STATE,
	OPTION_FRONTEND_STATE,
	OPTION_HELP,
};

static const struct option options[] = {
	{"dir", required_argument, NULL, OPTION_DIR},
	{"foreground", no_argument, NULL, OPTION_FOREGROUND},
	{"json", no_argument, NULL, OPTION_JSON},
	{"expect-clean", no_argument, NULL, OPTION_EXPECT_CLEAN},
	{"ignore-pid", required_argument, NULL, OPTION_IGNORE_PID},
	{"keep-nodes", no_argument, NULL, OPTION_KEEP_NODES},
	{"grace", required_argument, NULL, OPTION_GRACE},
	{"driver-domain", no_argument, NULL, OPTION_DRIVER_DOMAIN},
	{"mode", required_argument, NULL, OPTION_MODE},
	{"kind", required_argument, NULL, OPTION_KIND},
	{"backend-domid", required_argument, NULL, OPTION_BACKEND_DOMID},
	{"cdrom", no_argument, NULL, OPTION_CDROM},
	{"direct-io-safe", no_argument, NULL, OPTION_DIRECT_IO_SAFE},
	{"no-discard", no_argument, NULL, OPTION_NO_DISCARD},
	{"force", no_argument, NULL, OPTION_FORCE},
	{"timeout", required_argument, NULL, OPTION_TIMEOUT},
	{"backend-state", required_argument, NULL, OPTION_BACKEND_STATE},
	{"frontend-state", required_argument, NULL, OPTION_FRONTEND_STATE},
	{"help", no_argument, NULL, OPTION_HELP},
	{NULL, 0, NULL, 0},
};

static int option_take(struct arguments *arguments, int option)
{
	struct toolstack_disk *disk = &arguments->disk;
	unsigned long number;

	switch (option) {
	case OPTION_DIR:
		arguments->dir = optarg;
		break;
	case OPTION_FOREGROUND:
		break; /* the only way there is */
	case OPTION_JSON:
		arguments->json = true;
		break;
	case OPTION_EXPECT_CLEAN:
		arguments->expect_clean = true;
		break;
	case OPTION_IGNORE_PID:
		if (number_parse(optarg, INT32_MAX, &number) ||
		    arguments->nr_ignored == IGNORED_PIDS_MAX)
			return usage_error("--ignore-pid %s: not a process id, or too many of them",
					   optarg);
		arguments->ignored_pids[arguments->nr_ignored++] = (uint32_t)number;
		break;
	case OPTION_KEEP_NODES:
		arguments->keep_nodes = true;
		break;
	case OPTION_GRACE:
		if (seconds_parse(optarg, &arguments->grace_ms))
			return usage_error("--grace %s: not a number of seconds", optarg);
		break;
	case OPTION_DRIVER_DOMAIN:
		arguments->driver_domain = true;
		break;
	case OPTION_MODE:
		if (strcmp(optarg, "r") && strcmp(optarg, "w"))
			return usage_error("--mode %s: neither r nor w", optarg);
		disk->writable = *optarg == 'w';
		break;
	case OPTION_KIND:
		if (strcmp(optarg, "qdisk") && strcmp(optarg, "vbd3"))
			return usage_error("--kind %s: neither qdisk nor vbd3", optarg);
		disk->kind = optarg;
		break;
	case OPTION_BACKEND_DOMID:
		if (number_parse(optarg, TOOLSTACK_DOMID_MAX, &number))
			return usage_error("--backend-domid %s: not a domain id", optarg);
		disk->backend_domid = (uint32_t)number;
		break;
	case OPTION_CDROM:
		disk->cdrom = true;
		break;
	case OPTION_DIRECT_IO_SAFE:
		disk->direct_io_safe = true;
		break;
	case OPTION_NO_DISCARD:
		disk->no_discard = true;
		break;
	case OPTION_FORCE:
		arguments->force = true;
		break;
	case OPTION_TIMEOUT:
		if (seconds_parse(optarg, &arguments->timeout_ms))
			return usage_error("--timeout %s: not a number of seconds", optarg);
		break;
	case OPTION_BACKEND_STATE:
	case OPTION_FRONTEND_STATE:
		if (number_parse(optarg, 8, &number))
			return usage_error("state %s: not a XenbusState, 0 to 8", optarg);
		*(option == OPTION_BACKEND_STATE ? &arguments->backend_state
						 : &arguments->frontend_state) = (int)number;
		break;
	default:
		return usage_error("unknown option or missing value");
	}
	return STATUS_OK;
}

static int words_take(struct arguments *arguments, const struct command *command)
{
	unsigned long number;

	if (arguments->nr_words < command->words_min || arguments->nr_words > command->words_max)
		return usage_error("%s takes %d to %d arguments, not %d", command->name,
				   command->words_min, command->words_max, arguments->nr_words);
	if (command->takes_domid) {
		if (number_parse(arguments->words[0], TOOLSTACK_DOMID_MAX, &number))
			return usage_error("%s: not a domain id", arguments->words[0]);
		arguments->disk.domid = (uint32_t)number;
	}
	if (command->takes_vdev) {
		arguments->disk.vdev_text = arguments->words[1];
		if (toolstack_vdev_parse(arguments->words[1], &arguments->disk.vdev))
			return usage_error("%s: not a virtual device such as xvda or 51712",
					   arguments->words[1]);
	}
	if (command->words_min == 3)
		arguments->disk.params = arguments->words[2];
	if (command->body == do_wait &&
	    (arguments->backend_state >= 0) == (arguments->frontend_state >= 0))
		return usage_error("wait takes one of --backend-state and --frontend-state");
	return STATUS_OK;
}

int main(int argc, char **argv)
{
	struct arguments arguments = {
		.timeout_ms = 10000,
		.grace_ms = 2000, /* LIBXL_QEMU_BODGE_TIMEOUT */
		.backend_state = -1,
		.frontend_state = -1,
		.disk = {.kind = "qdisk", .writable = true},
	};
	const char *name;
	int option, status;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (option == OPTION_HELP || option == 'h') {
			fputs(usage_text, stdout);
			return STATUS_OK;
		}
		status = option_take(&arguments, option);
		if (status)
			return status;
	}
	if (optind == argc)
		return usage_error("no command given");
	name = argv[optind++];
	arguments.words = argv + optind;
	arguments.nr_words = argc - optind;
	if (!arguments.dir)
		return usage_error("--dir is missing: the directory of the loopback host");
	if (!strcmp(name, "run"))
		return arguments.nr_words ? usage_error("run takes no arguments")
					  : command_run(&arguments);
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(name, commands[i].name))
			continue;
		status = words_take(&arguments, &commands[i]);
		return status ? status : with_toolstack(&arguments, commands[i].body);
	}
	return usage_error("unknown command %s", name);
}
