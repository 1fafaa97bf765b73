// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One VBD's life: from its nodes in xenstore to its disk and its ring, until it ends.
 *
 *   evaluate:  read both ends' states -> xenbus_next() -> do it -> look again
 *
 * Owns: the disk, the rings, and the order in which they come and go.
 * Trusts / does not trust: the toolstack's nodes; not the frontend's.
 * Runs on: the main thread of a vbdisk process. Opening a disk may block; the rest does not.
 * Must not know: the layout of a ring, the kind of driver, who started the process.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/sysmacros.h>

#include "backend/clock.h"
#include "backend/log.h"
#include "backend/rings.h"
#include "backend/run-file.h"
#include "backend/vbd.h"
#include "container.h"

/* After this long without an end, say what we wait for. */
#define DRAIN_COMPLAINT_NS (10 * NSEC_PER_SEC)

/* After this long xenstore is asked again, when it refused something. */
#define STORE_RETRY_NS NSEC_PER_SEC

struct vbd {
	struct loop *loop;
	struct store *store;
	struct vbd_nodes nodes;
	struct vbd_config config;     /* with the options of the disk that is open */
	struct vbd_options given;     /* what the process was started with */
	char target[STORE_VALUE_MAX]; /* of params, without the options */
	struct run_file *run_file;

	struct vbd_disk_spec spec;
	struct disk *disk;
	struct disk_limits offered; /* what the guest is told about the disk; its size, too */
	struct vbd_features features;
	uint64_t shrunk_bytes; /* a smaller size that was found and not adopted; 0: none */
	struct rings rings;
	bool resizing;		 /* queues have been told, and have not all answered */
	enum xenbus_state own;	 /* the state we wrote last; Initialising until we wrote one */
	enum xenbus_state found; /* the state at our start: what must still be there to advertise */

	/* While the queue drains nothing else happens; this is done afterwards. */
	enum xenbus_action after_drain;
	bool flush_failed; /* on this queue or one before: the disk is not to be trusted any more */
	bool store_lost;
	bool ended;
	enum vbdisk_exit exit_status;

	struct loop_watch store_watch;
	struct loop_timer drain_complaint, store_retry, resize_poll;
	struct log_limit connect_log, release_log, refuse_log; /* a guest may reconnect for ever */
	struct log_limit store_log, size_log;
};

static void error_report(struct vbd *vbd, const char *text)
{
	int err;

	log_error("%s", text);
	err = vbd_nodes_report_error(&vbd->nodes, text);
	if (err)
		log_warning("cannot write the error node %s: %s", vbd->nodes.error_dir,
			    strerror(-err));
}

/* ---- The end ------------------------------------------------------------------------------------ */

static void vbd_end(struct vbd *vbd, enum vbdisk_exit status)
{
	if (vbd->ended)
		return;
	vbd->ended = true;
	vbd->exit_status = status;
	loop_stop(vbd->loop);
}

/* Without xenstore nobody can tell us of the end. A guest whose ring we have is served on all the same:
 * its data path needs nothing but the ring. */
static void store_lost(struct vbd *vbd, const char *what, int err)
{
	if (vbd->store_lost)
		return;
	vbd->store_lost = true;
	vbd->exit_status = VBDISK_EXIT_NO_XEN;
	loop_unwatch(vbd->loop, &vbd->store_watch);
	if (!vbd->rings.queues) {
		log_error("%s: %s; nothing can be served without xenstore", what, strerror(-err));
		vbd_end(vbd, VBDISK_EXIT_NO_XEN);
		return;
	}
	log_error(
		"%s: %s; the guest is served on, but its end will not be noticed: end this process (SIGTERM) when the guest is gone",
		what, strerror(-err));
}

/* Xenstore said no, or is gone: what becomes of it. What failed is tried again with everything else that
 * the next look finds to be done. */
static void store_failed(struct vbd *vbd, const char *what, int err)
{
	switch (err) {
	case -ENOTCONN:
	case -EPIPE:
	case -EBADF:
	case -ECONNRESET:
		store_lost(vbd, what, err);
		break;
	default: /* a quota, a storm of conflicts, no memory */
		log_limited(&vbd->store_log, LOG_LEVEL_ERROR, "%s: %s; xenstore is asked again",
			    what, strerror(-err));
		loop_timer_start(vbd->loop, &vbd->store_retry, STORE_RETRY_NS);
	}
}

static void store_retry(struct loop_timer *timer)
{
	vbd_evaluate(container_of(timer, struct vbd, store_retry));
}

/* @state has been written, or not. A stale one is no error: the toolstack was faster, and the next look
 * shows it. */
static void state_written(struct vbd *vbd, enum xenbus_state state, int err)
{
	if (!err) {
		vbd->own = state;
		log_debug("state %s", xenbus_state_name(state));
	} else if (err != -ESTALE) {
		store_failed(vbd, "cannot write our state", err);
	}
}

static void state_set(struct vbd *vbd, enum xenbus_state state)
{
	if (!vbd->store_lost)
		state_written(vbd, state, vbd_nodes_set_state(&vbd->nodes, state, vbd->own));
}

static void drain_complain(struct loop_timer *timer)
{
	struct vbd *vbd = container_of(timer, struct vbd, drain_complaint);

	log_warning(
		"still waiting for requests in flight to %s, on %u queues, before the VBD can close; the storage does not answer",
		vbd->target, queue_set_nr_undrained(vbd->rings.queues));
}

/* The rings are gone; what remains of DISCONNECT, CLOSE, FINISH or VANISH. */
static void after_ring(struct vbd *vbd, enum xenbus_action action)
{
	switch (action) {
	case XENBUS_DISCONNECT:
		state_set(vbd, XENBUS_CLOSED);
		break;
	case XENBUS_CLOSE:
		state_set(vbd, XENBUS_CLOSING);
		break;
	case XENBUS_FINISH:
		state_set(vbd, XENBUS_CLOSED);
		vbd_end(vbd, vbd->exit_status);
		break;
	default:
		vbd_end(vbd, vbd->exit_status);
	}
}

static void queues_drained(void *arg)
{
	struct vbd *vbd = arg;
	struct dataplane_stats stats = queue_set_stats(vbd->rings.queues);

	log_limited(
		&vbd->release_log, LOG_LEVEL_INFO,
		"ring released: %llu reads, %llu writes, %llu flushes, %llu discards, %llu failed, %llu refused",
		(unsigned long long)stats.nr_reads, (unsigned long long)stats.nr_writes,
		(unsigned long long)stats.nr_flushes, (unsigned long long)stats.nr_discards,
		(unsigned long long)stats.nr_failed, (unsigned long long)stats.nr_refused);
	loop_timer_stop(&vbd->drain_complaint);
	rings_release(&vbd->rings);
	vbd->resizing = false;
	after_ring(vbd, vbd->after_drain);
	vbd->after_drain = XENBUS_NOTHING;
	vbd_evaluate(vbd);
}

/* Let go of the ring (@answer: after answering what is in flight), then do the rest of @action. */
static void ring_release(struct vbd *vbd, enum xenbus_action action, bool answer)
{
	if (!vbd->rings.queues) {
		after_ring(vbd, action);
		return;
	}
	vbd->after_drain = action;
	loop_timer_start(vbd->loop, &vbd->drain_complaint, DRAIN_COMPLAINT_NS);
	if (answer)
		queue_set_stop(vbd->rings.queues);
	else
		queue_set_abandon(vbd->rings.queues);
}

/* ---- The beginning ------------------------------------------------------------------------------ */

/* Which of our own VBDs has the image, so that the message can name it. */
static void holder_name(struct vbd *vbd, struct error *error)
{
	char name[64];
	size_t len = strlen(error->text);

	if (run_file_find(vbd->config.run_dir, vbd->run_file, vbd->target, name, sizeof(name)))
		return;
	snprintf(error->text + len, sizeof(error->text) - len, " (VBD %s has it)", name);
}

/* A key is missing: because the whole directory is gone, or because it was never written? */
static bool vbd_vanished(struct vbd *vbd)
{
	struct xenbus_view view;

	return !vbd_nodes_read_view(&vbd->nodes, &view) && !view.backend_exists;
}

/* blkback claims nothing in the kernel: only xenstore tells what it serves. */
static int blkback_check(struct vbd *vbd, struct error *error)
{
	char path[VBD_PATH_MAX];

	if (!vbd->disk->device ||
	    vbd_nodes_find_device(&vbd->nodes, major(vbd->disk->device), minor(vbd->disk->device),
				  vbd->spec.writable, path, sizeof(path)))
		return 0;
	vbd->disk->driver->close(vbd->disk);
	vbd->disk = NULL;
	return error_set(error, EBUSY,
			 "%s: in use: blkback serves this device, too (%s); detach it there first",
			 vbd->target, path);
}

/* "aio:" with nothing behind it: the drive is there, no medium is in it. */
static bool drive_is_empty(const struct vbd_disk_spec *spec)
{
	const char *colon = strchr(spec->params, ':');

	return spec->cdrom && (!*spec->params || (colon && !colon[1]));
}

/* 0; -ESTALE if the VBD is gone; -ENOMEDIUM for an empty drive; else another -errno, which has been
 * reported. */
static int disk_open_reported(struct vbd *vbd)
{
	struct error error;
	unsigned flags;
	int err = vbd_nodes_read_disk(&vbd->nodes, &vbd->spec, &error);

	if (err == -ENOENT && vbd_vanished(vbd))
		return -ESTALE;
	if (!err && drive_is_empty(&vbd->spec)) {
		log_info("the drive is empty: closed until it is attached again with a medium");
		return -ENOMEDIUM;
	}
	vbd->config.options = vbd->given;
	if (!err) {
		snprintf(vbd->target, sizeof(vbd->target), "%s", vbd->spec.params);
		err = vbd_options_split(&vbd->config.options, vbd->target, &error);
	}
	flags = (vbd->spec.writable ? DISK_OPEN_WRITABLE : 0) |
		(vbd->config.options.native_sector ? 0 : DISK_OPEN_SECTOR_512);
	if (!err)
		err = disk_open(vbd->target, flags, &vbd->disk, &error);
	if (!err)
		err = blkback_check(vbd, &error);
	if (!err) {
		err = run_file_write(vbd->run_file, vbd->target);
		if (err)
			log_warning("cannot write %s: %s", vbd->run_file->path, strerror(-err));
		return 0;
	}
	if (err == -EBUSY)
		holder_name(vbd, &error);
	error_report(vbd, error.text);
	/* -ESTALE means something of ours here; from storage (NFS) it is a failure like any other. */
	return err == -ESTALE ? -EIO : err;
}

static void disk_close(struct vbd *vbd)
{
	loop_timer_stop(&vbd->resize_poll);
	if (vbd->disk)
		vbd->disk->driver->close(vbd->disk);
	vbd->disk = NULL;
}

/* What this guest is offered of what the disk can do. */
static void offer_make(struct vbd *vbd)
{
	const struct vbd_options *options = &vbd->config.options;
	struct disk_limits *offered = &vbd->offered;
	unsigned max_queues = vbd->disk->max_queues;

	*offered = vbd->disk->limits;
	offered->can_discard &= options->discard && vbd->spec.discard && vbd->spec.writable;
	vbd->features = (struct vbd_features){
		.rings.order = options->ring_order,
		.rings.queues = max_queues && max_queues < options->queues ? max_queues
									   : options->queues,
		.nr_sectors512 = offered->size_bytes / 512,
		.sector_bytes = offered->logical_block_bytes,
		.physical_sector_bytes = offered->physical_block_bytes,
		.max_indirect = options->indirect,
		.flush = offered->can_flush,
		.barrier = options->barrier && offered->can_flush,
		.persistent = options->persistent,
		.discard = offered->can_discard,
		.discard_secure = offered->can_discard && offered->can_secure_discard,
		.discard_granularity_bytes =
			offered->can_discard ? offered->discard_granularity_bytes : 0,
		.discard_alignment_bytes = offered->can_discard ? offered->discard_alignment_bytes
								: 0,
	};
}

static void vbd_advertise(struct vbd *vbd)
{
	bool first = !vbd->disk;
	int err = first ? disk_open_reported(vbd) : 0;

	if (err == -ESTALE) {
		vbd_end(vbd, VBDISK_EXIT_OK);
		return;
	}
	if (err) {
		/* Closed, so that the guest's boot goes on without this disk instead of waiting for it. */
		state_set(vbd, XENBUS_CLOSED);
		vbd_end(vbd, err == -ENOMEDIUM ? VBDISK_EXIT_OK : VBDISK_EXIT_UNSERVABLE);
		return;
	}
	if (first)
		offer_make(vbd);
	err = vbd_nodes_advertise(&vbd->nodes, &vbd->spec, &vbd->features,
				  vbd->own == XENBUS_INITIALISING ? vbd->found : vbd->own);
	if (err == -ESTALE && vbd->own == XENBUS_INITIALISING) {
		/* Taken away, or changed, while we opened the disk: not the VBD we were started for. */
		vbd_end(vbd, VBDISK_EXIT_OK);
	} else if (err == -ESTALE) {
		/* The state has changed, which the next look shows; or params has, between two
		 * frontends: then it is another disk that is to be opened. */
		disk_close(vbd);
	} else if (err) {
		store_failed(vbd, "cannot advertise the disk", err);
	} else {
		vbd->own = XENBUS_INIT_WAIT;
		log_line(first ? LOG_LEVEL_INFO : LOG_LEVEL_DEBUG,
			 "serving %s: %llu sectors of 512 bytes, %s, logical block %u", vbd->target,
			 (unsigned long long)vbd->features.nr_sectors512,
			 vbd->spec.writable ? "read-write" : "read-only",
			 vbd->features.sector_bytes);
	}
}

/* ---- The disk's size ---------------------------------------------------------------------------- */

static void size_tell(struct vbd *vbd)
{
	int err;

	if (vbd->store_lost)
		return;
	err = vbd_nodes_resize(&vbd->nodes, vbd->features.nr_sectors512, vbd->own);
	if (err && err != -ESTALE)
		store_failed(vbd, "cannot tell the guest the disk's new size", err);
}

static void size_adopt(struct vbd *vbd, uint64_t size_bytes)
{
	log_info("%s has %llu sectors of 512 bytes now, had %llu", vbd->target,
		 (unsigned long long)size_bytes / 512,
		 (unsigned long long)vbd->features.nr_sectors512);
	vbd->shrunk_bytes = 0;
	vbd->offered.size_bytes = size_bytes;
	vbd->features.nr_sectors512 = size_bytes / 512;
	if (!vbd->rings.queues) {
		size_tell(vbd);
		return;
	}
	/* First the bounds, then the guest: it may use the new size the moment it hears of it. */
	vbd->resizing = true;
	queue_set_resize(vbd->rings.queues, size_bytes);
}

static void vbd_size_look(struct vbd *vbd, bool adopt_smaller)
{
	uint64_t size_bytes;
	int err;

	if (!vbd->disk || vbd->resizing || vbd->after_drain != XENBUS_NOTHING)
		return;
	err = vbd->disk->driver->refresh(vbd->disk, &size_bytes);
	if (err) {
		log_limited(&vbd->size_log, LOG_LEVEL_WARNING, "cannot find out the size of %s: %s",
			    vbd->target, strerror(-err));
		return;
	}
	if (size_bytes > vbd->offered.size_bytes ||
	    (adopt_smaller && size_bytes < vbd->offered.size_bytes)) {
		size_adopt(vbd, size_bytes);
	} else if (size_bytes < vbd->offered.size_bytes && size_bytes != vbd->shrunk_bytes) {
		vbd->shrunk_bytes = size_bytes;
		log_warning(
			"%s has shrunk to %llu sectors of 512 bytes: the guest sees errors behind that; enlarge it again, or make the guest see the new size (SIGHUP)",
			vbd->target, (unsigned long long)size_bytes / 512);
	}
}

static void resize_poll_start(struct vbd *vbd)
{
	if (vbd->config.options.resize_poll_s)
		loop_timer_start(vbd->loop, &vbd->resize_poll,
				 vbd->config.options.resize_poll_s * NSEC_PER_SEC);
}

static void resize_polled(struct loop_timer *timer)
{
	struct vbd *vbd = container_of(timer, struct vbd, resize_poll);

	if (!vbd->rings.queues) /* the next connection starts it again */
		return;
	vbd_size_look(vbd, false);
	resize_poll_start(vbd);
}

/* Every queue knows the new bounds: tell the guest. */
static void queues_resized(void *arg)
{
	struct vbd *vbd = arg;

	vbd->resizing = false;
	if (vbd->after_drain == XENBUS_NOTHING)
		size_tell(vbd);
}

void vbd_size_changed(struct vbd *vbd)
{
	vbd_size_look(vbd, true);
}

/* ---- The ring ----------------------------------------------------------------------------------- */

static void flush_failed(struct vbd *vbd, int err)
{
	bool close = vbd->config.options.close_on_flush_error;
	struct error error;

	if (vbd->flush_failed) /* another queue was told the same */
		return;
	vbd->flush_failed = true;
	error_set(
		&error, -err,
		"flush of %s failed: %s; this flush is never acknowledged, and %s: repair the storage, then detach and attach the disk",
		vbd->target, strerror(-err),
		close ? "the disk is closed" : "all writes are held from now on");
	error_report(vbd, error.text);
	if (close && vbd->after_drain == XENBUS_NOTHING)
		ring_release(vbd, XENBUS_CLOSE, false);
}

static void queues_trouble(void *arg, enum dataplane_trouble trouble, int err)
{
	struct vbd *vbd = arg;

	switch (trouble) {
	case DATAPLANE_RING_BROKEN:
		error_report(
			vbd,
			"the guest broke its ring (more requests than slots); the ring is stopped until the frontend reconnects");
		break;
	case DATAPLANE_FLUSH_FAILED:
		flush_failed(vbd, err);
		break;
	}
}

static void queues_quiet(void *arg)
{
	struct vbd *vbd = arg;
	int err = vbd->disk->driver->sync(vbd->disk);

	if (err)
		log_error("cannot bring %s to stable storage for the suspended guest: %s",
			  vbd->target, strerror(-err));
	else
		log_info("guest suspended: everything written is on stable storage");
}

static void connect_refuse(struct vbd *vbd, const char *text)
{
	/* As xenbus_dev_fatal(): tell why, and let the frontend close. */
	if (log_limit_pass(&vbd->refuse_log))
		error_report(vbd, text);
	state_set(vbd, XENBUS_CLOSING);
}

static void vbd_connect(struct vbd *vbd)
{
	const struct queue_set_events events = {queues_trouble, queues_drained, queues_quiet,
						queues_resized, vbd};
	struct error error;
	int err;

	/* Let go of when another was asked for, and the frontend did not wait for us to say InitWait. */
	if (!vbd->disk) {
		vbd_advertise(vbd);
		return;
	}
	if (vbd->flush_failed && vbd->config.options.close_on_flush_error) {
		connect_refuse(
			vbd,
			"a flush of this disk has failed: it is not connected again; repair the storage, then detach and attach the disk");
		return;
	}
	/* Nobody uses the old size: a smaller one is taken up, too. */
	vbd_size_look(vbd, true);
	err = rings_attach(&vbd->rings, vbd->loop, &vbd->nodes, &vbd->config, &vbd->features,
			   vbd->disk, &vbd->offered, &events, &error);
	if (err) {
		connect_refuse(vbd, error.text);
		return;
	}
	/* A guest that connects anew has forgotten what it wrote; the storage has not got it back. */
	if (vbd->flush_failed)
		queue_set_distrust(vbd->rings.queues);
	vbd->features.max_indirect = vbd->rings.max_indirect;
	err = vbd_nodes_connect(&vbd->nodes, &vbd->features, vbd->own);
	state_written(vbd, XENBUS_CONNECTED, err);
	if (err) {
		/* Whoever sees a ring attached and no Connected would attach another. */
		ring_release(vbd, XENBUS_CLOSE, false);
		return;
	}
	resize_poll_start(vbd);
	log_limited(&vbd->connect_log, LOG_LEVEL_INFO, "connected: %s", vbd->rings.description);
}

/* ---- The table's driver ------------------------------------------------------------------------- */

static bool vbd_busy(const struct vbd *vbd)
{
	return vbd->ended || vbd->store_lost || vbd->store_retry.active ||
	       vbd->after_drain != XENBUS_NOTHING;
}

void vbd_evaluate(struct vbd *vbd)
{
	while (!vbd_busy(vbd)) {
		struct xenbus_view view = {.own = vbd->own, .ring_attached = vbd->rings.queues};
		enum xenbus_action action;
		int err = vbd_nodes_read_view(&vbd->nodes, &view);

		if (err) {
			store_failed(vbd, "cannot read the VBD's state", err);
			return;
		}
		action = xenbus_next(&view);
		switch (action) {
		case XENBUS_NOTHING:
			return;
		case XENBUS_ADVERTISE:
			vbd_advertise(vbd);
			break;
		case XENBUS_CONNECT:
			vbd_connect(vbd);
			break;
		case XENBUS_CLOSE:
			state_set(vbd, XENBUS_CLOSING);
			break;
		case XENBUS_DISCONNECT:
		case XENBUS_FINISH:
		case XENBUS_VANISH:
			ring_release(vbd, action, false);
			break;
		}
	}
}

/* While the ring drains with answers (a shutdown), the guest's end may go away under it. */
static void drain_watch(struct vbd *vbd)
{
	struct xenbus_view view = {.own = vbd->own, .ring_attached = vbd->rings.queues};

	if (!vbd->rings.queues || vbd_nodes_read_view(&vbd->nodes, &view) ||
	    xenbus_next(&view) != XENBUS_VANISH)
		return;
	vbd->after_drain = XENBUS_VANISH;
	queue_set_abandon(vbd->rings.queues);
}

static void store_ready(struct loop_watch *watch, uint32_t events)
{
	struct vbd *vbd = container_of(watch, struct vbd, store_watch);
	char path[STORE_PATH_MAX], token[64];
	int ret;

	(void)events;
	/* What fired does not matter: everything is read again, once for all of them. */
	while ((ret = store_next_event(vbd->store, path, sizeof(path), token, sizeof(token))) == 1)
		;
	if (ret < 0) {
		store_lost(vbd, "lost the connection to xenstore", ret);
		return;
	}
	if (vbd->after_drain != XENBUS_NOTHING)
		drain_watch(vbd);
	vbd_evaluate(vbd);
}

/* End, also if the ring is just being released for another frontend to come. */
static void vbd_finish(struct vbd *vbd, bool answer)
{
	if (vbd->ended || vbd->after_drain == XENBUS_VANISH)
		return;
	ring_release(vbd, XENBUS_FINISH, answer);
}

void vbd_shutdown(struct vbd *vbd)
{
	log_info("asked to stop");
	vbd_finish(vbd, true);
}

void vbd_guest_died(struct vbd *vbd)
{
	log_info("the guest is dead");
	vbd_finish(vbd, false);
}

void vbd_quiesce(struct vbd *vbd)
{
	if (vbd->rings.queues && vbd->after_drain == XENBUS_NOTHING)
		queue_set_quiesce(vbd->rings.queues);
}

enum vbdisk_exit vbd_exit_status(const struct vbd *vbd)
{
	return vbd->exit_status;
}

int vbd_create(struct loop *loop, struct store *store, const struct vbd_nodes *nodes,
	       const struct vbd_config *config, struct run_file *run_file, struct vbd **vbd_out,
	       struct error *error)
{
	struct vbd *vbd = calloc(1, sizeof(*vbd));
	struct xenbus_view view;
	int err;

	if (!vbd)
		return error_set(error, ENOMEM, "out of memory");
	*vbd = (struct vbd){
		.loop = loop,
		.store = store,
		.nodes = *nodes,
		.config = *config,
		.given = config->options,
		.run_file = run_file,
		.own = XENBUS_INITIALISING,
		.drain_complaint.expired = drain_complain,
		.store_retry.expired = store_retry,
		.resize_poll.expired = resize_polled,
	};
	err = vbd_nodes_read_view(&vbd->nodes, &view);
	if (err) {
		error_set(error, -err, "cannot read %s: %s", nodes->backend, strerror(-err));
		goto free_vbd;
	}
	/* InitWait: a backend died before a frontend connected. From Connected on there is a ring with
	 * requests in it, which only the process that fetched them can finish. */
	if (view.backend != XENBUS_INITIALISING && view.backend != XENBUS_INIT_WAIT) {
		err = error_set(
			error, EBADMSG,
			"%s/state is %s: a VBD can be taken up in Initialising or InitWait only; detach it and attach it again",
			nodes->backend, xenbus_state_name(view.backend));
		goto free_vbd;
	}
	vbd->found = view.backend;
	err = vbd_nodes_watch(&vbd->nodes);
	if (!err) {
		vbd->store_watch.fd = store_fd(store);
		vbd->store_watch.ready = store_ready;
		err = vbd->store_watch.fd < 0 ? vbd->store_watch.fd
					      : loop_watch(loop, &vbd->store_watch, EPOLLIN);
	}
	if (err) {
		error_set(error, -err, "cannot watch %s: %s", nodes->backend, strerror(-err));
		goto free_vbd;
	}
	*vbd_out = vbd;
	return 0;

free_vbd:
	free(vbd);
	return err;
}

void vbd_destroy(struct vbd *vbd)
{
	loop_unwatch(vbd->loop, &vbd->store_watch);
	loop_timer_stop(&vbd->drain_complaint);
	loop_timer_stop(&vbd->store_retry);
	disk_close(vbd);
	free(vbd);
}
