// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * vbdisk: serves one VBD.
 *
 * Owns: the command line, and the process's descriptors and signals around one struct vbd.
 * Trusts / does not trust: its command line.
 * Runs on: one thread.
 * Must not know: how a VBD lives (vbd.c).
 */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/log.h"
#include "backend/run-file.h"
#include "backend/vbd.h"
#include "driver.h"

struct options {
	const char *path;
	const char *loopback_dir;
	struct vbd_config config;
	enum log_level log_level;
};

static void usage(FILE *out)
{
	fprintf(out,
		"Usage: vbdisk [OPTION]... BACKEND-PATH\n"
		"Serve one virtual disk of a Xen guest: the VBD whose xenstore directory is BACKEND-PATH\n"
		"(backend/qdisk/DOMID/DEVID, or absolute). vbdiskd starts one vbdisk for each VBD.\n"
		"\n"
		"  -l, --loopback=DIR    use the loopback host in DIR instead of the hypervisor\n"
		"  -o, --option=NAME=VALUE  see below; may be repeated\n"
		"  -r, --run-dir=DIR     where run files are (default " RUN_DIR_DEFAULT ")\n"
		"  -L, --log-level=LEVEL error, warning, info (default) or debug\n"
		"  -h, --help            show this and exit\n"
		"  -V, --version         show the version and exit\n"
		"\n"
		"Options (-o):\n"
		"\n"
		"%s"
		"\n"
		"Formats of the params node (aio is file):\n",
		vbd_options_help);
	for (size_t i = 0; driver_table[i]; i++)
		fprintf(out, "\n%s: %s\n%s", driver_table[i]->name, driver_table[i]->description,
			driver_table[i]->params_help);
}

/* 0 to go on, else the exit status + 1. */
static int options_parse(struct options *options, int argc, char **argv)
{
	static const struct option longs[] = {
		{"loopback", required_argument, NULL, 'l'},
		{"option", required_argument, NULL, 'o'},
		{"run-dir", required_argument, NULL, 'r'},
		{"log-level", required_argument, NULL, 'L'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{NULL, 0, NULL, 0},
	};
	struct error error;
	int option;

	*options = (struct options){.log_level = LOG_LEVEL_INFO};
	options->config.run_dir = RUN_DIR_DEFAULT;
	vbd_options_init(&options->config.options);
	while ((option = getopt_long(argc, argv, "l:o:r:L:hV", longs, NULL)) != -1) {
		switch (option) {
		case 'l':
			options->loopback_dir = optarg;
			break;
		case 'o':
			if (vbd_options_set(&options->config.options, optarg, &error)) {
				fprintf(stderr, "vbdisk: %s\n", error.text);
				return VBDISK_EXIT_USAGE + 1;
			}
			break;
		case 'r':
			options->config.run_dir = optarg;
			break;
		case 'L':
			if (log_level_parse(optarg, &options->log_level)) {
				fprintf(stderr,
					"vbdisk: --log-level %s: use error, warning, info or debug\n",
					optarg);
				return VBDISK_EXIT_USAGE + 1;
			}
			break;
		case 'h':
			usage(stdout);
			return VBDISK_EXIT_OK + 1;
		case 'V':
			puts("vbdisk " PACKAGE_VERSION);
			return VBDISK_EXIT_OK + 1;
		default:
			fputs("Try 'vbdisk --help'.\n", stderr);
			return VBDISK_EXIT_USAGE + 1;
		}
	}
	if (optind != argc - 1) {
		fputs("vbdisk: give exactly one BACKEND-PATH, such as backend/qdisk/3/51712; try 'vbdisk --help'\n",
		      stderr);
		return VBDISK_EXIT_USAGE + 1;
	}
	options->path = argv[optind];
	return 0;
}

static void signal_received(void *arg, int signal_number)
{
	struct vbd *vbd = arg;

	switch (signal_number) {
	case SIGHUP:
		vbd_size_changed(vbd);
		break;
	case SIGUSR1:
		vbd_quiesce(vbd);
		break;
	case SIGUSR2:
		vbd_guest_died(vbd);
		break;
	default:
		vbd_shutdown(vbd);
	}
}

static int signals_take(struct loop *loop, struct vbd *vbd, struct error *error)
{
	static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2};
	int err = loop_signals(loop, signals, sizeof(signals) / sizeof(signals[0]), signal_received,
			       vbd);

	return err ? error_set(error, -err, "cannot take signals: %s", strerror(-err)) : 0;
}

static int host_open(void *arg, struct xen_host **host_out, struct error *error)
{
	const struct options *options = arg;

	return options->loopback_dir ? xen_loopback_open(options->loopback_dir, 0, host_out, error)
				     : xen_hypervisor_open(true, host_out, error);
}

/* Better to hear now that there is no hypervisor than when a guest connects. */
static int host_check(struct options *options, struct error *error)
{
	struct xen_host *host;
	int err = host_open(options, &host, error);

	if (!err)
		host->ops->close(host);
	return err;
}

static enum vbdisk_exit vbd_serve(const struct options *options, struct store *store,
				  const struct vbd_nodes *nodes, struct run_file *run_file)
{
	enum vbdisk_exit status = VBDISK_EXIT_FAILURE;
	struct error error;
	struct loop *loop;
	struct vbd *vbd;
	int err = loop_create(&loop);

	if (err) {
		log_error("cannot make an event loop: %s", strerror(-err));
		return status;
	}
	err = loop_mailbox_open(loop);
	if (err) {
		log_error("cannot make an event loop: %s", strerror(-err));
		goto destroy_loop;
	}
	err = vbd_create(loop, store, nodes, &options->config, run_file, &vbd, &error);
	if (err) {
		log_error("%s", error.text);
		if (err == -EBADMSG)
			status = VBDISK_EXIT_NOT_STARTABLE;
		goto destroy_loop;
	}
	err = signals_take(loop, vbd, &error);
	if (err) {
		log_error("%s", error.text);
		goto destroy_vbd;
	}
	vbd_evaluate(vbd);
	err = loop_run(loop);
	if (err)
		log_error("cannot wait for events: %s", strerror(-err));
	else
		status = vbd_exit_status(vbd);

destroy_vbd:
	vbd_destroy(vbd);
destroy_loop:
	loop_destroy(loop);
	return status;
}

static int run_file_take(const struct options *options, const struct vbd_address *address,
			 struct run_file *run_file)
{
	char name[64];
	pid_t holder = 0;
	const char *run_dir = options->config.run_dir;
	int err = run_dir_make(run_dir);

	if (err) {
		log_error("cannot make the run directory %s: %s; see --run-dir", run_dir,
			  strerror(-err));
		return err;
	}
	snprintf(name, sizeof(name), "%s-%u-%u", address->kind, address->domid, address->devid);
	err = run_file_hold(run_file, run_dir, name, &holder);
	if (err == -EBUSY)
		log_error("process %d serves this VBD already (it holds %s)", (int)holder,
			  run_file->path);
	else if (err)
		log_error("cannot hold %s: %s", run_file->path, strerror(-err));
	return err;
}

/* Nodes that no toolstack writes: told where the person looks, and closed, as a disk that cannot be opened.
 * A VBD that is past its beginning is left alone. */
static enum vbdisk_exit nodes_refuse(struct vbd_nodes *nodes, const char *text)
{
	struct xenbus_view view;

	if (vbd_nodes_report_error(nodes, text))
		log_warning("cannot write the error node %s", nodes->error_dir);
	if (vbd_nodes_read_view(nodes, &view) || view.backend != XENBUS_INITIALISING ||
	    vbd_nodes_set_state(nodes, XENBUS_CLOSED, XENBUS_INITIALISING))
		return VBDISK_EXIT_NOT_STARTABLE;
	return VBDISK_EXIT_UNSERVABLE;
}

static enum vbdisk_exit vbd_find_and_serve(struct options *options, struct store *store)
{
	enum vbdisk_exit status = VBDISK_EXIT_FAILURE;
	struct vbd_nodes nodes;
	struct run_file run_file;
	struct error error;
	char subject[64];
	int err = vbd_nodes_open(&nodes, store, options->path, &error);

	if (err) {
		log_error("%s", error.text);
		if (err == -EBADMSG || err == -E2BIG)
			return nodes_refuse(&nodes, error.text);
		return err == -EINVAL ? VBDISK_EXIT_USAGE : VBDISK_EXIT_NOT_STARTABLE;
	}
	snprintf(subject, sizeof(subject), "vbd %u/%u", nodes.address.domid, nodes.address.devid);
	log_init("vbdisk", subject, options->log_level);
	err = run_file_take(options, &nodes.address, &run_file);
	if (err)
		return err == -EBUSY ? VBDISK_EXIT_TAKEN : status;
	err = host_check(options, &error);
	if (err) {
		log_error("%s", error.text);
		status = VBDISK_EXIT_NO_XEN;
	} else {
		status = vbd_serve(options, store, &nodes, &run_file);
	}
	run_file_release(&run_file);
	return status;
}

int main(int argc, char **argv)
{
	enum vbdisk_exit status;
	struct options options;
	struct store *store;
	int err, ret;

	log_descriptors_secure();
	ret = options_parse(&options, argc, argv);
	if (ret)
		return ret - 1;
	options.config.host_open = host_open;
	options.config.host_arg = &options;
	log_init("vbdisk", "", options.log_level);
	/* A log reader that went away must not take the guest's disk with it. */
	signal(SIGPIPE, SIG_IGN);
	/* Nothing is allocated on the data path, and all that is big is mapped: keep malloc from growing
	 * an arena for each thread. */
	mallopt(M_ARENA_MAX, 1);
	err = store_open(&store);
	if (err) {
		log_error("cannot connect to xenstore: %s; is xenstored running?", strerror(-err));
		return VBDISK_EXIT_NO_XEN;
	}
	status = vbd_find_and_serve(&options, store);
	store_close(store);
	return status;
}
