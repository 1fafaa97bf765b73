// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The supervisor: one vbdisk process for each VBD of this backend domain.
 *
 * Owns: the list of VBDs and their processes.
 * Trusts / does not trust: the backend directories are the toolstack's, and trusted.
 * Runs on: vbdiskd's main thread; waits for xenstored only.
 * Must not know: rings, disks.
 */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "backend/child.h"
#include "backend/clock.h"
#include "backend/exit-status.h"
#include "backend/log.h"
#include "backend/run-file.h"
#include "backend/supervisor-rules.h"
#include "backend/supervisor.h"
#include "container.h"
#include "xenstore/vbd-nodes.h"

/* "qdisk" is libxl's backendtype=qdisk, "vbd3" its backendtype=tap (Xen 4.19 and later). */
static const char *const kinds[] = {"qdisk", "vbd3"};

#define RETRY_NS (100 * NSEC_PER_MSEC) /* doubled with each failure */

struct vbd_entry {
	LIST_ENTRY(vbd_entry) link;
	struct supervisor *supervisor;
	struct vbd_address address;
	char run_name[64]; /* of its run file */
	char label[32];	   /* for log lines */
	struct child child;
	struct loop_timer retry;
	bool ours;   /* a process of ours has served it */
	bool closed; /* it was lost, and we have said so */
	bool told_dead, told_suspended;
	unsigned nr_failures;
	char last_end[64]; /* how its last process ended, in words */
};

LIST_HEAD(vbd_list, vbd_entry);

struct supervisor {
	struct loop *loop;
	struct store *store;
	struct xen_domains *domains;
	struct supervisor_config config;
	uint32_t own_domid;
	char home[64]; /* "/local/domain/N" */
	struct vbd_list vbds;
	struct loop_watch store_watch;
	bool store_lost;
};

static void entry_evaluate(struct vbd_entry *entry);

/* ---- Entries ------------------------------------------------------------------------------------ */

static struct vbd_entry *entry_find(struct supervisor *supervisor,
				    const struct vbd_address *address)
{
	struct vbd_entry *entry;

	LIST_FOREACH(entry, &supervisor->vbds, link)
		if (entry->address.domid == address->domid &&
		    entry->address.devid == address->devid &&
		    !strcmp(entry->address.kind, address->kind))
			return entry;
	return NULL;
}

static void path_make(const struct vbd_entry *entry, char *path, size_t size)
{
	snprintf(path, size, "%s/backend/%s/%u/%u", entry->supervisor->home, entry->address.kind,
		 entry->address.domid, entry->address.devid);
}

static void retry_expired(struct loop_timer *timer)
{
	entry_evaluate(container_of(timer, struct vbd_entry, retry));
}

static void process_ended(struct child *child, int how);

/* A run file that nobody holds was left by a process that was killed. */
static bool run_file_left(const struct vbd_entry *entry)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", entry->supervisor->config.run_dir, entry->run_name);
	return !access(path, F_OK);
}

static void run_file_remove(const struct vbd_entry *entry)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", entry->supervisor->config.run_dir, entry->run_name);
	if (unlink(path) && errno != ENOENT)
		log_warning("%s: cannot remove %s: %s", entry->label, path, strerror(errno));
}

static struct vbd_entry *entry_create(struct supervisor *supervisor,
				      const struct vbd_address *address)
{
	struct vbd_entry *entry = calloc(1, sizeof(*entry));

	if (!entry) {
		log_error("out of memory: vbd %u/%u is not served", address->domid, address->devid);
		return NULL;
	}
	entry->supervisor = supervisor;
	entry->address = *address;
	snprintf(entry->run_name, sizeof(entry->run_name), "%s-%u-%u", address->kind,
		 address->domid, address->devid);
	snprintf(entry->label, sizeof(entry->label), "vbd %u/%u", address->domid, address->devid);
	snprintf(entry->last_end, sizeof(entry->last_end), "ended while vbdiskd was not running");
	entry->child.ended = process_ended;
	entry->retry.expired = retry_expired;
	entry->ours = run_file_left(entry);
	LIST_INSERT_HEAD(&supervisor->vbds, entry, link);
	return entry;
}

static void entry_free(struct vbd_entry *entry)
{
	loop_timer_stop(&entry->retry);
	child_forget(&entry->child);
	LIST_REMOVE(entry, link);
	free(entry);
}

/* ---- Processes ---------------------------------------------------------------------------------- */

static void end_describe(struct vbd_entry *entry, int how)
{
	if (how == CHILD_END_UNKNOWN)
		snprintf(entry->last_end, sizeof(entry->last_end), "ended");
	else if (how < 0)
		snprintf(entry->last_end, sizeof(entry->last_end), "was killed by signal %d (%s)",
			 -how, strsignal(-how));
	else
		snprintf(entry->last_end, sizeof(entry->last_end), "ended with status %d", how);
}

/* Look again a little later, each time later than before. */
static void failure_note(struct vbd_entry *entry)
{
	entry->nr_failures++;
	loop_timer_start(entry->supervisor->loop, &entry->retry, RETRY_NS << entry->nr_failures);
}

static void process_ended(struct child *child, int how)
{
	struct vbd_entry *entry = container_of(child, struct vbd_entry, child);

	end_describe(entry, how);
	if (how == VBDISK_EXIT_OK || how == VBDISK_EXIT_UNSERVABLE ||
	    how == VBDISK_EXIT_NOT_STARTABLE || how == CHILD_END_UNKNOWN) {
		log_info("%s: its process %s", entry->label, entry->last_end);
		entry->nr_failures = 0;
		entry_evaluate(entry);
	} else {
		log_error("%s: its process %s", entry->label, entry->last_end);
		failure_note(entry);
	}
}

static bool still_holder(void *arg, pid_t pid)
{
	const struct vbd_entry *entry = arg;
	pid_t holder;

	return !run_file_holder(entry->supervisor->config.run_dir, entry->run_name, &holder) &&
	       holder == pid;
}

/* A process that serves this VBD already, started by an earlier vbdiskd or by hand. */
static bool process_adopt(struct vbd_entry *entry)
{
	struct supervisor *supervisor = entry->supervisor;
	pid_t holder;
	int err = run_file_holder(supervisor->config.run_dir, entry->run_name, &holder);

	if (err) {
		log_error("%s: cannot tell whether %s is held: %s", entry->label, entry->run_name,
			  strerror(-err));
		return false;
	}
	if (!holder)
		return false;
	err = child_adopt(&entry->child, supervisor->loop, holder, still_holder, entry);
	if (err)
		return false; /* it has just ended */
	entry->ours = true;
	log_info("%s: process %d serves it already", entry->label, (int)holder);
	return true;
}

static void process_start(struct vbd_entry *entry)
{
	const struct supervisor_config *config = &entry->supervisor->config;
	char path[VBD_PATH_MAX];
	char *argv[10 + 2 * SUPERVISOR_OPTIONS_MAX];
	unsigned nr = 0;
	int err;

	path_make(entry, path, sizeof(path));
	argv[nr++] = (char *)config->vbdisk_path;
	argv[nr++] = "--run-dir";
	argv[nr++] = (char *)config->run_dir;
	argv[nr++] = "--log-level";
	argv[nr++] = (char *)config->log_level;
	if (config->loopback_dir) {
		argv[nr++] = "--loopback";
		argv[nr++] = (char *)config->loopback_dir;
	}
	for (unsigned i = 0; i < config->nr_vbd_options; i++) {
		argv[nr++] = "--option";
		argv[nr++] = (char *)config->vbd_options[i];
	}
	argv[nr++] = path;
	argv[nr] = NULL;
	err = child_spawn(&entry->child, entry->supervisor->loop, argv);
	if (!err) {
		entry->ours = true;
		entry->closed = false;
		entry->told_dead = entry->told_suspended = false;
		log_info("%s: started process %d", entry->label, (int)entry->child.pid);
		return;
	}
	snprintf(entry->last_end, sizeof(entry->last_end), "could not be started: %s",
		 strerror(-err));
	log_error("%s: cannot start %s: %s", entry->label, config->vbdisk_path, strerror(-err));
	failure_note(entry);
}

/* ---- One VBD ------------------------------------------------------------------------------------ */

static void vbd_close(struct vbd_entry *entry, struct vbd_nodes *nodes,
		      const struct supervisor_view *view)
{
	struct error error;
	int err = 0;

	error_set(
		&error, EIO,
		"its vbdisk process %s; the VBD is closed: detach the disk and attach it again, or restart the guest",
		entry->last_end);
	/* It comes by here again when the toolstack detaches it (state 5) and waits for our 6; and it may
	 * come only then, which is no loss to tell of. */
	if (!entry->closed && view->online) {
		entry->closed = true;
		log_error("%s: %s", entry->label, error.text);
		err = vbd_nodes_report_error(nodes, error.text);
	}
	if (!err)
		err = vbd_nodes_set_state(nodes, XENBUS_CLOSED, view->state);
	if (err && err != -ESTALE)
		log_error("%s: cannot close it: %s", entry->label, strerror(-err));
	run_file_remove(entry);
}

/* In a driver domain: the device's directory, and its domain's if that was the last. */
static void vbd_remove(struct vbd_entry *entry, struct vbd_nodes *nodes)
{
	char top[VBD_PATH_MAX];
	int err;

	snprintf(top, sizeof(top), "%s/backend/%s", entry->supervisor->home, entry->address.kind);
	err = store_remove_empty_above(entry->supervisor->store, nodes->backend, top);
	if (err)
		log_warning("%s: cannot remove %s: %s", entry->label, nodes->backend,
			    strerror(-err));
}

/* The VBD is detached: what was said about it is of no more use, and its number may come again. */
static void vbd_forget(struct vbd_entry *entry)
{
	char path[VBD_PATH_MAX];
	int err;

	if (entry->ours) {
		snprintf(path, sizeof(path), "error/backend/%s/%u/%u", entry->address.kind,
			 entry->address.domid, entry->address.devid);
		err = store_remove_empty_above(entry->supervisor->store, path, "error");
		if (err)
			log_warning("%s: cannot remove %s: %s", entry->label, path, strerror(-err));
		run_file_remove(entry);
	}
	entry_free(entry);
}

static int view_read(struct vbd_entry *entry, struct vbd_nodes *nodes, struct supervisor_view *view)
{
	struct supervisor *supervisor = entry->supervisor;
	struct xenbus_view both = {0};
	uint64_t sectors;
	char path[VBD_PATH_MAX];
	int err;

	*view = (struct supervisor_view){
		.ours = entry->ours,
		.in_dom0 = supervisor->own_domid == 0,
		.nr_failures = entry->nr_failures,
	};
	path_make(entry, path, sizeof(path));
	err = vbd_nodes_open(nodes, supervisor->store, path, NULL);
	/* A frontend node that makes no sense is for vbdisk to refuse, and to say why. */
	if (!err || err == -EBADMSG || err == -E2BIG)
		err = vbd_nodes_read_view(nodes, &both);
	if (err)
		return err == -ENOENT ? 0 : err;
	view->exists = both.backend_exists;
	view->state = both.backend;
	view->online = both.online;
	err = store_read_number(supervisor->store, nodes->backend, "sectors", UINT64_MAX, &sectors);
	view->advertised = err != -ENOENT;
	view->frontend_closed = both.frontend == XENBUS_CLOSED;
	return 0;
}

/* Nobody serves this VBD: do what the rules say. May free @entry. */
static void entry_evaluate(struct vbd_entry *entry)
{
	struct supervisor_view view;
	struct vbd_nodes nodes;
	int err;

	if (entry->child.pid || entry->retry.active || process_adopt(entry))
		return;
	err = view_read(entry, &nodes, &view);
	if (err) {
		log_error("%s: cannot read its nodes: %s", entry->label, strerror(-err));
		return;
	}
	/* The one that we closed is gone, and this is another, whose coming and going we saw as one. */
	if (entry->closed && view.exists && view.state != XENBUS_CLOSED &&
	    view.state != XENBUS_CLOSING) {
		entry->closed = entry->ours = view.ours = false;
		entry->nr_failures = view.nr_failures = 0;
	}
	switch (supervisor_next(&view)) {
	case SUPERVISOR_NOTHING:
		break;
	case SUPERVISOR_START:
		process_start(entry);
		break;
	case SUPERVISOR_CLOSE:
		vbd_close(entry, &nodes, &view);
		break;
	case SUPERVISOR_REMOVE:
		vbd_remove(entry, &nodes);
		break;
	case SUPERVISOR_FORGET:
		vbd_forget(entry);
		break;
	}
}

/* ---- The host ----------------------------------------------------------------------------------- */

static void domain_check(struct vbd_entry *entry)
{
	struct supervisor *supervisor = entry->supervisor;
	enum xen_domain_state state;
	int err =
		supervisor->domains->ops->state(supervisor->domains, entry->address.domid, &state);

	if (err) {
		log_warning("%s: cannot ask whether its domain lives: %s", entry->label,
			    strerror(-err));
		return;
	}
	if (state == XEN_DOMAIN_DEAD && !entry->told_dead) {
		entry->told_dead = true;
		child_signal(&entry->child, SIGUSR2);
	}
	if (state == XEN_DOMAIN_SUSPENDED && !entry->told_suspended)
		child_signal(&entry->child, SIGUSR1);
	entry->told_suspended = state == XEN_DOMAIN_SUSPENDED;
}

/* @releaseDomain does not say which domain shut down or died. */
static void domains_check(struct supervisor *supervisor)
{
	struct vbd_entry *entry = LIST_FIRST(&supervisor->vbds), *next;

	for (; entry; entry = next) {
		next = LIST_NEXT(entry, link);
		if (supervisor->domains && entry->child.pid)
			domain_check(entry);
		entry_evaluate(entry);
	}
}

static void address_evaluate(struct supervisor *supervisor, const struct vbd_address *address)
{
	struct vbd_entry *entry = entry_find(supervisor, address);

	if (!entry)
		entry = entry_create(supervisor, address);
	if (entry)
		entry_evaluate(entry);
}

static void domain_scan(struct supervisor *supervisor, const char *kind, const char *domid)
{
	char path[STORE_PATH_MAX];
	struct vbd_address address;
	char **devids;
	unsigned nr;

	snprintf(path, sizeof(path), "%s/backend/%s/%s", supervisor->home, kind, domid);
	if (store_list(supervisor->store, path, &devids, &nr))
		return; /* gone meanwhile: an event follows */
	for (unsigned i = 0; i < nr; i++) {
		snprintf(path, sizeof(path), "backend/%s/%s/%s", kind, domid, devids[i]);
		if (!vbd_address_parse(path, &address))
			address_evaluate(supervisor, &address);
	}
	free(devids);
}

/* Everything of one kind: what is there, and what we know that may be gone. */
static void kind_scan(struct supervisor *supervisor, const char *kind)
{
	struct vbd_entry *entry = LIST_FIRST(&supervisor->vbds), *next;
	char path[VBD_PATH_MAX];
	char **domids;
	unsigned nr;

	for (; entry; entry = next) {
		next = LIST_NEXT(entry, link);
		entry_evaluate(entry);
	}
	snprintf(path, sizeof(path), "%s/backend/%s", supervisor->home, kind);
	if (store_list(supervisor->store, path, &domids, &nr))
		return; /* no VBD of this kind yet */
	for (unsigned i = 0; i < nr; i++)
		domain_scan(supervisor, kind, domids[i]);
	free(domids);
}

static void event_handle(struct supervisor *supervisor, const char *path, const char *token)
{
	struct vbd_address address;

	if (!strcmp(token, "domains"))
		domains_check(supervisor);
	else if (!vbd_address_parse(path, &address))
		address_evaluate(supervisor, &address);
	else
		kind_scan(supervisor, token); /* a directory above the VBDs came or went */
}

static void store_ready(struct loop_watch *watch, uint32_t events)
{
	struct supervisor *supervisor = container_of(watch, struct supervisor, store_watch);
	char path[STORE_PATH_MAX], token[64];
	int ret;

	(void)events;
	while ((ret = store_next_event(supervisor->store, path, sizeof(path), token,
				       sizeof(token))) == 1)
		event_handle(supervisor, path, token);
	if (ret < 0) {
		log_error("lost the connection to xenstore: %s", strerror(-ret));
		supervisor->store_lost = true;
		loop_unwatch(supervisor->loop, watch);
		loop_stop(supervisor->loop);
	}
}

static int watches_set(struct supervisor *supervisor)
{
	char path[VBD_PATH_MAX];
	int err = store_watch(supervisor->store, "@releaseDomain", "domains");

	for (size_t i = 0; !err && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		snprintf(path, sizeof(path), "%s/backend/%s", supervisor->home, kinds[i]);
		err = store_watch(supervisor->store, path, kinds[i]);
	}
	if (err)
		return err;
	supervisor->store_watch.fd = store_fd(supervisor->store);
	supervisor->store_watch.ready = store_ready;
	if (supervisor->store_watch.fd < 0)
		return supervisor->store_watch.fd;
	return loop_watch(supervisor->loop, &supervisor->store_watch, EPOLLIN);
}

int supervisor_create(struct loop *loop, struct store *store, struct xen_domains *domains,
		      const struct supervisor_config *config, struct supervisor **supervisor_out,
		      struct error *error)
{
	struct supervisor *supervisor = calloc(1, sizeof(*supervisor));
	int err;

	if (!supervisor)
		return error_set(error, ENOMEM, "out of memory");
	supervisor->loop = loop;
	supervisor->store = store;
	supervisor->domains = domains;
	supervisor->config = *config;
	LIST_INIT(&supervisor->vbds);
	err = store_own_domid(store, &supervisor->own_domid);
	if (!err)
		err = store_domain_path(store, supervisor->own_domid, supervisor->home,
					sizeof(supervisor->home));
	/* The watches come first and fire once at once: that is the first scan, and nothing is missed
	 * between it and the first change. */
	if (!err)
		err = watches_set(supervisor);
	if (err) {
		free(supervisor);
		return error_set(error, -err,
				 "cannot watch the backend directories in xenstore: %s",
				 strerror(-err));
	}
	*supervisor_out = supervisor;
	return 0;
}

unsigned supervisor_nr_processes(const struct supervisor *supervisor)
{
	struct vbd_entry *entry;
	unsigned nr = 0;

	LIST_FOREACH(entry, &supervisor->vbds, link)
		nr += entry->child.pid != 0;
	return nr;
}

bool supervisor_store_lost(const struct supervisor *supervisor)
{
	return supervisor->store_lost;
}

void supervisor_destroy(struct supervisor *supervisor)
{
	while (!LIST_EMPTY(&supervisor->vbds))
		entry_free(LIST_FIRST(&supervisor->vbds));
	loop_unwatch(supervisor->loop, &supervisor->store_watch);
	free(supervisor);
}
