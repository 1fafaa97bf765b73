// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One VBD's life: from its nodes in xenstore to its disk and its ring, until it ends.
 *
 *   evaluate:  read both ends' states -> xenbus_next() -> do it -> look again
 *
 * Owns: the disk, the queue, and the order in which they come and go.
 * Trusts / does not trust: the toolstack's nodes; not the frontend's.
 * Runs on: the main thread of a vbdisk process. Opening a disk may block; the rest does not.
 * Must not know: the layout of a ring, the kind of driver, who started the process.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "backend/clock.h"
#include "backend/log.h"
#include "backend/queue.h"
#include "backend/run-file.h"
#include "backend/transport-blkif.h"
#include "backend/vbd.h"
#include "container.h"

/* After this long without an end, say what we wait for. */
#define DRAIN_COMPLAINT_NS (10 * NSEC_PER_SEC)

struct vbd {
	struct loop *loop;
	struct store *store;
	struct xen_host *host;
	struct vbd_nodes nodes;
	const char *run_dir;
	struct run_file *run_file;

	struct vbd_disk_spec spec;
	struct disk *disk;
	struct queue *queue;	 /* NULL while no ring is attached */
	enum xenbus_state own;	 /* the state we wrote last; Initialising until we wrote one */
	enum xenbus_state found; /* the state at our start: what must still be there to advertise */

	/* While the queue drains nothing else happens; this is done afterwards. */
	enum xenbus_action after_drain;
	bool flush_failed; /* on this queue or one before: the disk is not to be trusted any more */
	bool store_lost;
	bool ended;
	enum vbdisk_exit exit_status;

	struct loop_watch store_watch;
	struct loop_timer drain_complaint;
	struct log_limit connect_log, release_log, refuse_log; /* a guest may reconnect for ever */
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
	if (!vbd->queue) {
		log_error("%s: %s; nothing can be served without xenstore", what, strerror(-err));
		vbd_end(vbd, VBDISK_EXIT_NO_XEN);
		return;
	}
	log_error(
		"%s: %s; the guest is served on, but its end will not be noticed: end this process (SIGTERM) when the guest is gone",
		what, strerror(-err));
}

/* Write a state. A stale one is no error: the toolstack was faster, and the next look shows it. */
static void state_set(struct vbd *vbd, enum xenbus_state state)
{
	int err;

	if (vbd->store_lost)
		return;
	err = vbd_nodes_set_state(&vbd->nodes, state, vbd->own);
	if (!err) {
		vbd->own = state;
		log_debug("state %s", xenbus_state_name(state));
	} else if (err != -ESTALE) {
		store_lost(vbd, "cannot write our state", err);
	}
}

static void drain_complain(struct loop_timer *timer)
{
	struct vbd *vbd = container_of(timer, struct vbd, drain_complaint);

	log_warning(
		"still waiting for %u requests in flight to %s before the VBD can close; the storage does not answer",
		queue_nr_in_flight(vbd->queue), vbd->spec.params);
}

/* The ring is gone; what remains of DISCONNECT, FINISH or VANISH. */
static void after_ring(struct vbd *vbd, enum xenbus_action action)
{
	switch (action) {
	case XENBUS_DISCONNECT:
		state_set(vbd, XENBUS_CLOSED);
		break;
	case XENBUS_FINISH:
		state_set(vbd, XENBUS_CLOSED);
		vbd_end(vbd, vbd->exit_status);
		break;
	default:
		vbd_end(vbd, vbd->exit_status);
	}
}

static void queue_drained(void *arg)
{
	struct vbd *vbd = arg;
	const struct dataplane_stats *stats = queue_stats(vbd->queue);

	log_limited(
		&vbd->release_log, LOG_LEVEL_INFO,
		"ring released: %llu reads, %llu writes, %llu flushes, %llu failed, %llu refused",
		(unsigned long long)stats->nr_reads, (unsigned long long)stats->nr_writes,
		(unsigned long long)stats->nr_flushes, (unsigned long long)stats->nr_failed,
		(unsigned long long)stats->nr_refused);
	loop_timer_stop(&vbd->drain_complaint);
	queue_destroy(vbd->queue);
	vbd->queue = NULL;
	after_ring(vbd, vbd->after_drain);
	vbd->after_drain = XENBUS_NOTHING;
	vbd_evaluate(vbd);
}

/* Let go of the ring (@answer: after answering what is in flight), then do the rest of @action. */
static void ring_release(struct vbd *vbd, enum xenbus_action action, bool answer)
{
	if (!vbd->queue) {
		after_ring(vbd, action);
		return;
	}
	vbd->after_drain = action;
	loop_timer_start(vbd->loop, &vbd->drain_complaint, DRAIN_COMPLAINT_NS);
	if (answer)
		queue_stop(vbd->queue);
	else
		queue_abandon(vbd->queue);
}

/* ---- The beginning ------------------------------------------------------------------------------ */

/* Which of our own VBDs has the image, so that the message can name it. */
static void holder_name(struct vbd *vbd, struct error *error)
{
	char name[64];
	size_t len = strlen(error->text);

	if (run_file_find(vbd->run_dir, vbd->run_file, vbd->spec.params, name, sizeof(name)))
		return;
	snprintf(error->text + len, sizeof(error->text) - len, " (VBD %s has it)", name);
}

/* A key is missing: because the whole directory is gone, or because it was never written? */
static bool vbd_vanished(struct vbd *vbd)
{
	struct xenbus_view view;

	return !vbd_nodes_read_view(&vbd->nodes, &view) && !view.backend_exists;
}

/* 0; -ESTALE if the VBD is gone; else another -errno, which has been reported. */
static int disk_open_reported(struct vbd *vbd)
{
	struct error error;
	int err = vbd_nodes_read_disk(&vbd->nodes, &vbd->spec, &error);

	if (err == -ENOENT && vbd_vanished(vbd))
		return -ESTALE;
	if (!err)
		err = disk_open(vbd->spec.params, vbd->spec.writable ? DISK_OPEN_WRITABLE : 0,
				&vbd->disk, &error);
	if (!err) {
		err = run_file_write(vbd->run_file, vbd->spec.params);
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
	if (vbd->disk)
		vbd->disk->driver->close(vbd->disk);
	vbd->disk = NULL;
}

static void vbd_advertise(struct vbd *vbd)
{
	const struct disk_limits *limits;
	struct vbd_features features;
	bool first = !vbd->disk;
	int err = first ? disk_open_reported(vbd) : 0;

	if (err == -ESTALE) {
		vbd_end(vbd, VBDISK_EXIT_OK);
		return;
	}
	if (err) {
		/* Closed, so that the guest's boot goes on without this disk instead of waiting for it. */
		state_set(vbd, XENBUS_CLOSED);
		vbd_end(vbd, VBDISK_EXIT_UNSERVABLE);
		return;
	}
	limits = &vbd->disk->limits;
	features = (struct vbd_features){
		.nr_sectors512 = limits->size_bytes / 512,
		.sector_bytes = limits->logical_block_bytes,
		.physical_sector_bytes = limits->physical_block_bytes,
		.flush = limits->can_flush,
	};
	err = vbd_nodes_advertise(&vbd->nodes, &vbd->spec, &features,
				  vbd->own == XENBUS_INITIALISING ? vbd->found : vbd->own);
	if (err == -ESTALE && vbd->own == XENBUS_INITIALISING) {
		/* Taken away, or changed, while we opened the disk: not the VBD we were started for. */
		vbd_end(vbd, VBDISK_EXIT_OK);
	} else if (err == -ESTALE) {
		/* The state has changed, which the next look shows; or params has, between two
		 * frontends: then it is another disk that is to be opened. */
		disk_close(vbd);
	} else if (err) {
		store_lost(vbd, "cannot advertise the disk", err);
	} else {
		vbd->own = XENBUS_INIT_WAIT;
		log_line(first ? LOG_LEVEL_INFO : LOG_LEVEL_DEBUG,
			 "serving %s: %llu sectors of 512 bytes, %s, logical block %u",
			 vbd->spec.params, (unsigned long long)features.nr_sectors512,
			 vbd->spec.writable ? "read-write" : "read-only", features.sector_bytes);
	}
}

/* ---- The ring ----------------------------------------------------------------------------------- */

static void queue_trouble(void *arg, enum dataplane_trouble trouble, int err)
{
	struct vbd *vbd = arg;

	switch (trouble) {
	case DATAPLANE_RING_BROKEN:
		error_report(
			vbd,
			"the guest broke its ring (more requests than slots); the ring is stopped until the frontend reconnects");
		break;
	case DATAPLANE_FLUSH_FAILED: {
		struct error error;

		vbd->flush_failed = true;
		error_set(
			&error, -err,
			"flush of %s failed: %s; this flush is never acknowledged and all writes are refused from now on: repair the storage, then detach and attach the disk",
			vbd->spec.params, strerror(-err));
		error_report(vbd, error.text);
		break;
	}
	}
}

static void queue_quiet(void *arg)
{
	struct vbd *vbd = arg;
	int err = vbd->disk->driver->sync(vbd->disk);

	if (err)
		log_error("cannot bring %s to stable storage for the suspended guest: %s",
			  vbd->spec.params, strerror(-err));
	else
		log_info("guest suspended: everything written is on stable storage");
}

static int ring_params_read(struct vbd *vbd, struct blkif_ring_params *params, struct error *error)
{
	struct vbd_ring_keys keys;
	int err = vbd_nodes_read_ring(&vbd->nodes, &keys, error);

	if (err)
		return err;
	params->abi = blkif_abi_find(keys.has_protocol ? keys.protocol : NULL);
	if (!params->abi)
		return error_set(error, EPROTONOSUPPORT, "%s/protocol \"%s\" is not known",
				 vbd->nodes.frontend, keys.protocol);
	params->order = keys.order;
	params->event_channel = keys.event_channel;
	memcpy(params->grefs, keys.grefs, sizeof(params->grefs));
	_Static_assert(sizeof(params->grefs) == sizeof(keys.grefs), "one limit of ring pages");
	return 0;
}

static int ring_attach(struct vbd *vbd, struct blkif_ring_params *params, struct error *error)
{
	const struct queue_events events = {queue_trouble, queue_drained, queue_quiet, vbd};
	struct transport *transport;
	int err = ring_params_read(vbd, params, error);

	if (!err)
		err = transport_blkif_attach(vbd->host, vbd->nodes.address.domid, params,
					     &transport, error);
	if (!err)
		err = queue_create(vbd->loop, transport, vbd->disk, &events, &vbd->queue, error);
	/* A guest that connects anew has forgotten what it wrote; the storage has not got it back. */
	if (!err && vbd->flush_failed)
		queue_distrust(vbd->queue);
	return err;
}

static void vbd_connect(struct vbd *vbd)
{
	struct blkif_ring_params params = {0};
	struct error error;
	int err;

	/* Let go of when another was asked for, and the frontend did not wait for us to say InitWait. */
	if (!vbd->disk) {
		vbd_advertise(vbd);
		return;
	}
	err = ring_attach(vbd, &params, &error);
	if (err) {
		/* As xenbus_dev_fatal(): tell why, and let the frontend close. */
		if (log_limit_pass(&vbd->refuse_log))
			error_report(vbd, error.text);
		state_set(vbd, XENBUS_CLOSING);
		return;
	}
	state_set(vbd, XENBUS_CONNECTED);
	log_limited(&vbd->connect_log, LOG_LEVEL_INFO, "connected: %s, ring of %u pages",
		    params.abi->protocol, 1u << params.order);
}

/* ---- The table's driver ------------------------------------------------------------------------- */

static bool vbd_busy(const struct vbd *vbd)
{
	return vbd->ended || vbd->store_lost || vbd->after_drain != XENBUS_NOTHING;
}

void vbd_evaluate(struct vbd *vbd)
{
	while (!vbd_busy(vbd)) {
		struct xenbus_view view = {.own = vbd->own, .ring_attached = vbd->queue};
		enum xenbus_action action;
		int err = vbd_nodes_read_view(&vbd->nodes, &view);

		if (err) {
			store_lost(vbd, "cannot read the VBD's state", err);
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
	struct xenbus_view view = {.own = vbd->own, .ring_attached = vbd->queue};

	if (!vbd->queue || vbd_nodes_read_view(&vbd->nodes, &view) ||
	    xenbus_next(&view) != XENBUS_VANISH)
		return;
	vbd->after_drain = XENBUS_VANISH;
	queue_abandon(vbd->queue);
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
	if (vbd->queue && vbd->after_drain == XENBUS_NOTHING)
		queue_quiesce(vbd->queue);
}

enum vbdisk_exit vbd_exit_status(const struct vbd *vbd)
{
	return vbd->exit_status;
}

int vbd_create(struct loop *loop, struct store *store, struct xen_host *host,
	       const struct vbd_nodes *nodes, const char *run_dir, struct run_file *run_file,
	       struct vbd **vbd_out, struct error *error)
{
	struct vbd *vbd = calloc(1, sizeof(*vbd));
	struct xenbus_view view;
	int err;

	if (!vbd)
		return error_set(error, ENOMEM, "out of memory");
	*vbd = (struct vbd){
		.loop = loop,
		.store = store,
		.host = host,
		.nodes = *nodes,
		.run_dir = run_dir,
		.run_file = run_file,
		.own = XENBUS_INITIALISING,
		.drain_complaint.expired = drain_complain,
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
	disk_close(vbd);
	free(vbd);
}
