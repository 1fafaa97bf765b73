// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * vbdiskd: the daemon of a backend domain, which keeps one vbdisk for each VBD.
 *
 * Owns: the command line, the daemon's own run file, and what it tells the service manager and libxl.
 * Trusts / does not trust: its command line.
 * Runs on: one thread, in the foreground.
 * Must not know: how VBDs are looked after (supervisor.c).
 */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef HAVE_SYSTEMD
#include <systemd/sd-daemon.h>
#endif

#include "backend/exit-status.h"
#include "backend/log.h"
#include "backend/run-file.h"
#include "backend/supervisor.h"
#include "backend/vbd-options.h"

struct options {
	struct supervisor_config config;
	enum log_level log_level;
};

static void usage(void)
{
	puts("Usage: vbdiskd [OPTION]...\n"
	     "Serve the virtual disks of this backend domain: start one vbdisk process for each VBD under\n"
	     "backend/qdisk and backend/vbd3 in xenstore. Runs in the foreground.\n"
	     "\n"
	     "  -b, --vbdisk=PATH     the program to start (default " SBINDIR "/vbdisk)\n"
	     "  -l, --loopback=DIR    use the loopback host in DIR instead of the hypervisor\n"
	     "  -o, --option=NAME=VALUE  how VBDs are served, passed on to every vbdisk, which lists the\n"
	     "                        options in its --help; may be repeated\n"
	     "  -r, --run-dir=DIR     where run files are (default " RUN_DIR_DEFAULT ")\n"
	     "  -L, --log-level=LEVEL error, warning, info (default) or debug\n"
	     "  -h, --help            show this and exit\n"
	     "  -V, --version         show the version and exit");
}

/* Checked here, too: a mistake is better told at start than with each disk. */
static int option_add(struct supervisor_config *config, const char *text)
{
	struct vbd_options scratch;
	struct error error;

	vbd_options_init(&scratch);
	if (vbd_options_set(&scratch, text, &error)) {
		fprintf(stderr, "vbdiskd: %s\n", error.text);
		return -EINVAL;
	}
	if (config->nr_vbd_options == SUPERVISOR_OPTIONS_MAX) {
		fprintf(stderr, "vbdiskd: more than %u options\n", SUPERVISOR_OPTIONS_MAX);
		return -EINVAL;
	}
	config->vbd_options[config->nr_vbd_options++] = text;
	return 0;
}

/* 0 to go on, else the exit status + 1. */
static int options_parse(struct options *options, int argc, char **argv)
{
	static const struct option longs[] = {
		{"vbdisk", required_argument, NULL, 'b'},
		{"loopback", required_argument, NULL, 'l'},
		{"option", required_argument, NULL, 'o'},
		{"run-dir", required_argument, NULL, 'r'},
		{"log-level", required_argument, NULL, 'L'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{NULL, 0, NULL, 0},
	};
	int option;

	*options = (struct options){
		.config = {.vbdisk_path = SBINDIR "/vbdisk",
			   .run_dir = RUN_DIR_DEFAULT,
			   .log_level = "info"},
		.log_level = LOG_LEVEL_INFO,
	};
	while ((option = getopt_long(argc, argv, "b:l:o:r:L:hV", longs, NULL)) != -1) {
		switch (option) {
		case 'b':
			options->config.vbdisk_path = optarg;
			break;
		case 'l':
			options->config.loopback_dir = optarg;
			break;
		case 'o':
			if (option_add(&options->config, optarg))
				return VBDISK_EXIT_USAGE + 1;
			break;
		case 'r':
			options->config.run_dir = optarg;
			break;
		case 'L':
			options->config.log_level = optarg;
			if (log_level_parse(optarg, &options->log_level)) {
				fprintf(stderr,
					"vbdiskd: --log-level %s: use error, warning, info or debug\n",
					optarg);
				return VBDISK_EXIT_USAGE + 1;
			}
			break;
		case 'h':
			usage();
			return VBDISK_EXIT_OK + 1;
		case 'V':
			puts("vbdiskd " PACKAGE_VERSION);
			return VBDISK_EXIT_OK + 1;
		default:
			fputs("Try 'vbdiskd --help'.\n", stderr);
			return VBDISK_EXIT_USAGE + 1;
		}
	}
	if (optind != argc) {
		fprintf(stderr, "vbdiskd: unexpected argument \"%s\"; try 'vbdiskd --help'\n",
			argv[optind]);
		return VBDISK_EXIT_USAGE + 1;
	}
	if (access(options->config.vbdisk_path, X_OK)) {
		fprintf(stderr, "vbdiskd: cannot run %s: %s; see --vbdisk\n",
			options->config.vbdisk_path, strerror(errno));
		return VBDISK_EXIT_USAGE + 1;
	}
	return 0;
}

static void manager_notify(const char *text)
{
#ifdef HAVE_SYSTEMD
	sd_notify(0, text);
#else
	(void)text;
#endif
}

/* ---- `xl block-attach 0` ------------------------------------------------------------------------ */

/* libxl attaches a qdisk to a domain only if a device model is recorded for it (libxl__dm_check_start),
 * and nothing records one for domain 0. We are what serves its qdisks, so we record ourselves. */
#define DEVICE_MODEL_DIR "/local/domain/0/image"
#define DEVICE_MODEL_KEY "device-model-pid"

static void device_model_record(struct store *store)
{
	uint64_t pid;
	uint32_t domid;
	int err = store_own_domid(store, &domid);

	if (err || domid)
		return;
	err = store_read_number(store, DEVICE_MODEL_DIR, DEVICE_MODEL_KEY, INT32_MAX, &pid);
	/* Another, living service for domain 0 stays recorded; a dead one's (or our own last) does not. */
	if (!err && pid && pid != (uint64_t)getpid() && !kill((pid_t)pid, 0))
		return;
	err = store_write_key(store, DEVICE_MODEL_DIR, DEVICE_MODEL_KEY, "%d", (int)getpid());
	if (err)
		log_warning(
			"cannot record a device model for domain 0: %s; `xl block-attach 0` will fail",
			strerror(-err));
}

static void device_model_unrecord(struct store *store)
{
	uint64_t pid;

	if (!store_read_number(store, DEVICE_MODEL_DIR, DEVICE_MODEL_KEY, INT32_MAX, &pid) &&
	    pid == (uint64_t)getpid())
		store_remove(store, DEVICE_MODEL_DIR "/" DEVICE_MODEL_KEY);
}

/* ---- The run ------------------------------------------------------------------------------------ */

static void signal_received(void *arg, int signal_number)
{
	(void)signal_number;
	loop_stop(arg);
}

static enum vbdisk_exit daemon_run(const struct options *options, struct loop *loop,
				   struct store *store, struct xen_domains *domains)
{
	static const int signals[] = {SIGTERM, SIGINT};
	struct supervisor *supervisor;
	enum vbdisk_exit status = VBDISK_EXIT_OK;
	struct error error;
	int err = loop_signals(loop, signals, sizeof(signals) / sizeof(signals[0]), signal_received,
			       loop);

	if (err) {
		log_error("cannot take signals: %s", strerror(-err));
		return VBDISK_EXIT_FAILURE;
	}
	err = supervisor_create(loop, store, domains, &options->config, &supervisor, &error);
	if (err) {
		log_error("%s", error.text);
		return VBDISK_EXIT_NO_XEN;
	}
	device_model_record(store);
	/* The first step delivers the watches' first events: the scan of what is there. */
	err = loop_step(loop, 1000);
	log_info("ready: %u VBDs have a process", supervisor_nr_processes(supervisor));
	manager_notify("READY=1\nSTATUS=watching xenstore");
	if (err >= 0 && !supervisor_store_lost(supervisor))
		err = loop_run(loop);
	manager_notify("STOPPING=1");
	if (err < 0) {
		log_error("cannot wait for events: %s", strerror(-err));
		status = VBDISK_EXIT_FAILURE;
	} else if (supervisor_store_lost(supervisor)) {
		status = VBDISK_EXIT_NO_XEN;
	} else {
		device_model_unrecord(store);
		log_info("stopping; %u VBDs go on being served by their processes",
			 supervisor_nr_processes(supervisor));
	}
	supervisor_destroy(supervisor);
	return status;
}

static enum vbdisk_exit host_open_and_run(const struct options *options)
{
	enum vbdisk_exit status = VBDISK_EXIT_NO_XEN;
	struct xen_domains *domains = NULL;
	struct store *store;
	struct loop *loop;
	struct error error;
	int err = store_open(&store);

	if (err) {
		log_error("cannot connect to xenstore: %s; is xenstored running?", strerror(-err));
		return status;
	}
	err = options->config.loopback_dir
		      ? xen_loopback_domains_open(options->config.loopback_dir, &domains, &error)
		      : xen_hypervisor_domains_open(&domains, &error);
	if (err) {
		log_warning(
			"%s; a dead domain will be noticed only when the toolstack removes its disks",
			error.text);
		domains = NULL;
	}
	err = loop_create(&loop);
	if (err) {
		log_error("cannot make an event loop: %s", strerror(-err));
		status = VBDISK_EXIT_FAILURE;
	} else {
		status = daemon_run(options, loop, store, domains);
		loop_destroy(loop);
	}
	if (domains)
		domains->ops->close(domains);
	store_close(store);
	return status;
}

int main(int argc, char **argv)
{
	enum vbdisk_exit status;
	struct run_file run_file;
	struct options options;
	pid_t holder = 0;
	int err, ret;

	log_descriptors_secure();
	ret = options_parse(&options, argc, argv);
	if (ret)
		return ret - 1;
	log_init("vbdiskd", "", options.log_level);
	signal(SIGPIPE, SIG_IGN);
	err = run_dir_make(options.config.run_dir);
	if (!err)
		err = run_file_hold(&run_file, options.config.run_dir, "vbdiskd", &holder);
	if (err == -EBUSY) {
		log_error("process %d is this host's vbdiskd already (it holds %s)", (int)holder,
			  run_file.path);
		return VBDISK_EXIT_TAKEN;
	}
	if (err) {
		log_error("cannot use the run directory %s: %s; see --run-dir",
			  options.config.run_dir, strerror(-err));
		return VBDISK_EXIT_FAILURE;
	}
	status = host_open_and_run(&options);
	run_file_release(&run_file);
	return status;
}
