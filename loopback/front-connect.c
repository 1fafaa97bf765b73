// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The xenbus side of a frontend: finds its VBD, connects and disconnects as Linux' blkfront does.
 *
 * Owns: the frontend's nodes in xenstore, the states it writes, the link while it is connected.
 * Trusts / does not trust: a backend under test, which may refuse, vanish, or never move.
 * Runs on: one thread; connect and disconnect sleep until the backend moves, or time is up.
 * Must not know: jobs, hostile rows.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "backend/clock.h"
#include "container.h"
#include "loopback/front-connect.h"

#define VDEV_XVD_MAJOR 202u
#define VDEV_EXTENDED (1u << 28)
#define WATCH_TOKEN "backend-state"

/* ---- Names -------------------------------------------------------------------------------------- */

/* xen-vbd-interface(7): xvda..xvdp with partitions 0..15 are 202<<8 | disk<<4 | partition; whatever is
 * beyond is 1<<28 | disk<<8 | partition. */
static int vdev_from_name(const char *name, unsigned *vdev_out)
{
	unsigned disk = 0, partition = 0;

	if (strncmp(name, "xvd", 3) || name[3] < 'a' || name[3] > 'z')
		return -EINVAL;
	for (name += 3; *name >= 'a' && *name <= 'z'; name++) {
		disk = disk * 26 + (unsigned)(*name - 'a') + 1;
		if (disk > 1u << 20)
			return -EINVAL;
	}
	disk--;
	for (; *name; name++) {
		if (*name < '0' || *name > '9' || partition > 25)
			return -EINVAL;
		partition = partition * 10 + (unsigned)(*name - '0');
	}
	if (partition > 255)
		return -EINVAL;
	*vdev_out = disk < 16 && partition < 16 ? VDEV_XVD_MAJOR << 8 | disk << 4 | partition
						: VDEV_EXTENDED | disk << 8 | partition;
	return 0;
}

int front_vdev_parse(const char *text, unsigned *vdev_out)
{
	unsigned long vdev;
	char *end;

	if (*text < '0' || *text > '9')
		return vdev_from_name(text, vdev_out);
	errno = 0;
	vdev = strtoul(text, &end, 10);
	if (errno || *end || vdev > UINT32_MAX)
		return -EINVAL;
	*vdev_out = (unsigned)vdev;
	return 0;
}

/* ---- States ------------------------------------------------------------------------------------- */

static int backend_state_read(struct front *front)
{
	uint64_t state;
	int err = store_read_number(front->store, front->backend, "state", XENBUS_CLOSED, &state);

	if (err == -ENOENT || err == -EACCES)
		state = XENBUS_CLOSED; /* taken away: it will not serve us any more */
	else if (err == -EINVAL)
		state = XENBUS_UNKNOWN;
	else if (err)
		return err;
	front->backend_state = (enum xenbus_state)state;
	return 0;
}

/* Connected once more: the disk may have another size (Linux blkback_changed()). */
static void size_read(struct front *front)
{
	uint64_t nr_sectors512;

	if (store_read_number(front->store, front->backend, "sectors", UINT64_MAX,
			      &nr_sectors512) ||
	    nr_sectors512 == front->disk.nr_sectors512)
		return;
	front->disk.nr_sectors512 = nr_sectors512;
	front->nr_resizes++;
}

/* While a job runs: Closing asks us to end, Closed means that nobody answers any more. */
static void store_ready(struct loop_watch *watch, uint32_t events)
{
	struct front *front = container_of(watch, struct front, store_watch);
	char path[STORE_PATH_MAX], token[64];
	int ret;

	(void)events;
	while ((ret = store_next_event(front->store, path, sizeof(path), token, sizeof(token))) ==
	       1)
		;
	if (!ret)
		ret = backend_state_read(front);
	if (ret) {
		/* Without xenstore we cannot even close in order; the next use of it says so. */
		loop_unwatch(front->loop, watch);
		front->link.peer_gone = true;
		return;
	}
	if (!front->connected)
		return;
	if (front->backend_state == XENBUS_CONNECTED)
		size_read(front);
	else if (front->backend_state == XENBUS_CLOSING)
		front->link.stop = true;
	else
		front->link.peer_gone = true;
}

static int own_state_write(struct front *front, enum xenbus_state state, struct error *error)
{
	int err = store_write_key(front->store, front->frontend, "state", "%u", state);

	if (err)
		return error_set(error, -err, "cannot write %s/state: %s", front->frontend,
				 strerror(-err));
	front->own = state;
	return 0;
}

static int states_report(const struct front *front, int errnum, const char *what,
			 struct error *error)
{
	return error_set(error, errnum, "%s: frontend %s is %s (%u), backend %s is %s (%u)", what,
			 front->frontend, xenbus_state_name(front->own), front->own, front->backend,
			 xenbus_state_name(front->backend_state), front->backend_state);
}

#define STATE_BIT(state) (1u << (state))
#define STATES_CLOSED (STATE_BIT(XENBUS_CLOSING) | STATE_BIT(XENBUS_CLOSED))

/* Sleep until the backend's state is one of @wanted; -ECONNREFUSED if it comes to one of @refused. */
static int backend_wait(struct front *front, unsigned wanted, unsigned refused,
			const char *for_what, struct error *error)
{
	uint64_t deadline_ns = clock_now_ns() + front->config.timeout_ns;
	char what[96];
	int err;

	for (;;) {
		/* Our own writes raise no event for us; look first, then sleep. */
		err = backend_state_read(front);
		if (err)
			return error_set(error, -err, "cannot read %s/state: %s", front->backend,
					 strerror(-err));
		if (STATE_BIT(front->backend_state) & wanted)
			return 0;
		if (STATE_BIT(front->backend_state) & refused)
			return states_report(
				front, ECONNREFUSED,
				"cannot connect, the backend refuses (its log says why)", error);
		/* Asked to end: closing goes on, connecting does not. */
		if (front->link.stop && refused)
			return states_report(front, ECANCELED, "stopped while connecting", error);
		err = front_link_wait(&front->link, deadline_ns);
		if (err == -ETIMEDOUT) {
			snprintf(what, sizeof(what), "waited %llu s for %s",
				 (unsigned long long)(front->config.timeout_ns / NSEC_PER_SEC),
				 for_what);
			return states_report(front, ETIMEDOUT, what, error);
		}
		if (err)
			return error_set(error, -err, "cannot wait for the backend: %s",
					 strerror(-err));
	}
}

/* ---- Opening ------------------------------------------------------------------------------------ */

int front_open(struct front *front, struct loop *loop, struct store *store, struct xen_host *host,
	       const struct front_connect_config *config, struct error *error)
{
	char path[FRONT_PATH_MAX + 16];
	uint64_t number;
	int err;

	*front = (struct front){.loop = loop, .store = store, .host = host, .config = *config};
	front->link.loop = loop; /* needed to wait before the link is open */
	snprintf(front->frontend, sizeof(front->frontend), "device/vbd/%u", config->vdev);
	err = store_read_key(store, front->frontend, "backend", front->backend,
			     sizeof(front->backend));
	if (err)
		return error_set(
			error, -err,
			"cannot read %s/backend: %s; is a disk with this --vdev attached to this domain?",
			front->frontend, strerror(-err));
	err = store_read_number(store, front->frontend, "backend-id", UINT16_MAX, &number);
	if (err)
		return error_set(error, -err, "cannot read %s/backend-id: %s", front->frontend,
				 strerror(-err));
	front->backend_domid = (uint32_t)number;
	err = store_read_number(store, front->frontend, "state", XENBUS_CLOSED, &number);
	if (err)
		return error_set(error, -err, "cannot read %s/state: %s", front->frontend,
				 strerror(-err));
	front->own = (enum xenbus_state)number;

	snprintf(path, sizeof(path), "%s/state", front->backend);
	err = store_watch(store, path, WATCH_TOKEN);
	if (err)
		return error_set(error, -err, "cannot watch %s: %s", path, strerror(-err));
	front->store_watch.fd = store_fd(store);
	front->store_watch.ready = store_ready;
	err = front->store_watch.fd < 0 ? front->store_watch.fd
					: loop_watch(loop, &front->store_watch, EPOLLIN);
	if (err)
		return error_set(error, -err, "cannot wait for xenstore events: %s",
				 strerror(-err));
	return 0;
}

void front_close(struct front *front)
{
	char path[FRONT_PATH_MAX + 16];

	loop_unwatch(front->loop, &front->store_watch);
	snprintf(path, sizeof(path), "%s/state", front->backend);
	/* The connection is closed next, which ends the watch in any case. */
	store_unwatch(front->store, path, WATCH_TOKEN);
}

/* ---- Connecting --------------------------------------------------------------------------------- */

/* As Linux' xenbus_reset_frontend(): lead a device that somebody used before back to the start. */
static int device_reset(struct front *front, struct error *error)
{
	int err = backend_state_read(front);

	if (err)
		return error_set(error, -err, "cannot read %s/state: %s", front->backend,
				 strerror(-err));
	if (front->own == XENBUS_INITIALISING)
		return backend_wait(front, STATE_BIT(XENBUS_INIT_WAIT), STATES_CLOSED,
				    "the backend to be ready (InitWait)", error);
	if (front->own != XENBUS_CLOSED) {
		err = own_state_write(front, XENBUS_CLOSING, error);
		if (!err)
			err = backend_wait(front, STATES_CLOSED, 0,
					   "the backend to close an old connection", error);
		if (!err)
			err = own_state_write(front, XENBUS_CLOSED, error);
		if (err)
			return err;
	}
	err = backend_wait(front, STATE_BIT(XENBUS_CLOSED) | STATE_BIT(XENBUS_INIT_WAIT), 0,
			   "the backend to have closed an old connection", error);
	if (!err)
		err = own_state_write(front, XENBUS_INITIALISING, error);
	if (!err)
		err = backend_wait(front, STATE_BIT(XENBUS_INIT_WAIT), 0,
				   "the backend to be ready again (InitWait)", error);
	return err;
}

static bool key_is_rings(const char *key)
{
	static const char *const keys[] = {
		"ring-page-order", "num-ring-pages",	     "protocol",
		"event-channel",   "multi-queue-num-queues", "feature-persistent"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (!strcmp(key, keys[i]))
			return true;
	return !strncmp(key, "ring-ref", strlen("ring-ref")) ||
	       !strncmp(key, "queue-", strlen("queue-")) ||
	       !strncmp(key, "feature-", strlen("feature-"));
}

/* What another connection with other options wrote must not be read with ours. */
static int keys_remove(struct store *store, const char *dir)
{
	char path[FRONT_PATH_MAX + 64], **names;
	unsigned nr;
	int err = store_list(store, dir, &names, &nr);

	if (err)
		return err;
	for (unsigned i = 0; !err && i < nr; i++) {
		if (!key_is_rings(names[i]))
			continue;
		snprintf(path, sizeof(path), "%s/%.48s", dir, names[i]);
		err = store_remove(store, path);
	}
	free(names);
	return err;
}

static int order_write(struct front *front)
{
	enum front_spelling spelling = front->config.spelling;
	unsigned order = front->config.ring_order;

	if (spelling == FRONT_SPELLING_NUM_PAGES)
		return store_write_key(front->store, front->frontend, "num-ring-pages", "%u",
				       1u << order);
	if (order || spelling != FRONT_SPELLING_AUTO)
		return store_write_key(front->store, front->frontend, "ring-page-order", "%u",
				       order);
	return 0;
}

static int queue_write(struct front *front, const char *dir, const struct front_queue *queue)
{
	unsigned order = front->config.ring_order;
	struct store *store = front->store;
	char key[24];
	int err = 0;

	if (!order && front->config.spelling != FRONT_SPELLING_REF0)
		err = store_write_key(store, dir, "ring-ref", "%u", queue->grefs[0]);
	else
		for (unsigned i = 0; !err && i < 1u << order; i++) {
			snprintf(key, sizeof(key), "ring-ref%u", i);
			err = store_write_key(store, dir, key, "%u", queue->grefs[i]);
		}
	return err ? err : store_write_key(store, dir, "event-channel", "%u", queue->port);
}

/* One queue is written flat, as Linux does. */
static int queues_write(struct front *front)
{
	const struct front_link *link = &front->link;
	char dir[FRONT_PATH_MAX + 24];
	int err;

	if (link->nr_queues == 1)
		return queue_write(front, front->frontend, &link->queues[0]);
	err = store_write_key(front->store, front->frontend, "multi-queue-num-queues", "%u",
			      link->nr_queues);
	for (unsigned i = 0; !err && i < link->nr_queues; i++) {
		snprintf(dir, sizeof(dir), "%s/queue-%u", front->frontend, i);
		err = queue_write(front, dir, &link->queues[i]);
	}
	return err;
}

static int odd_key_write(struct front *front)
{
	const struct front_connect_config *config = &front->config;
	char path[FRONT_PATH_MAX + 64];

	if (config->odd_value)
		return store_write_key(front->store, front->frontend, config->odd_key, "%s",
				       config->odd_value);
	snprintf(path, sizeof(path), "%s/%s", front->frontend, config->odd_key);
	return store_remove(front->store, path);
}

static int keys_write(struct store *store, void *arg)
{
	struct front *front = arg;
	int err = keys_remove(store, front->frontend);

	if (!err)
		err = order_write(front);
	if (!err)
		err = queues_write(front);
	if (!err && front->config.persistent)
		err = store_write_key(store, front->frontend, "feature-persistent", "1");
	if (!err && front->config.protocol)
		err = store_write_key(store, front->frontend, "protocol", "%s",
				      front->config.protocol);
	if (!err && front->config.odd_key)
		err = odd_key_write(front);
	if (!err)
		err = store_write_key(store, front->frontend, "state", "%u", XENBUS_INITIALISED);
	return err;
}

static int number_read(struct front *front, const char *key, uint64_t *number_out)
{
	return store_read_number(front->store, front->backend, key, UINT64_MAX, number_out);
}

/* A feature that is not named is not offered. */
static int feature_read(struct front *front, const char *key, uint64_t *number_out)
{
	int err = number_read(front, key, number_out);

	if (err != -ENOENT)
		return err;
	*number_out = 0;
	return 0;
}

static int disk_read(struct front *front, struct error *error)
{
	struct front_disk *disk = &front->disk;
	uint64_t flush, barrier, discard, secure, persistent;
	const char *key;
	int err;

	/* blkfront gives up without these three. */
	if ((err = number_read(front, key = "sectors", &disk->nr_sectors512)) ||
	    (err = number_read(front, key = "sector-size", &disk->sector_bytes)) ||
	    (err = number_read(front, key = "info", &disk->info)) ||
	    (err = feature_read(front, key = "feature-flush-cache", &flush)) ||
	    (err = feature_read(front, key = "feature-barrier", &barrier)) ||
	    (err = feature_read(front, key = "feature-discard", &discard)) ||
	    (err = feature_read(front, key = "discard-secure", &secure)) ||
	    (err = feature_read(front, key = "discard-granularity",
				&disk->discard_granularity_bytes)) ||
	    (err = feature_read(front, key = "discard-alignment",
				&disk->discard_alignment_bytes)) ||
	    (err = feature_read(front, key = "feature-persistent", &persistent)) ||
	    (err = feature_read(front, key = "feature-max-indirect-segments",
				&disk->max_indirect_segments)))
		return error_set(error, ECONNREFUSED,
				 "cannot connect, %s/%s is not there or no number: %s",
				 front->backend, key, strerror(-err));
	if (!disk->nr_sectors512 || disk->sector_bytes < BLKIF_SECTOR_BYTES ||
	    disk->sector_bytes & (disk->sector_bytes - 1))
		return error_set(error, ECONNREFUSED,
				 "cannot connect, %s says %llu sectors and a sector size of %llu",
				 front->backend, (unsigned long long)disk->nr_sectors512,
				 (unsigned long long)disk->sector_bytes);
	disk->flush = flush;
	disk->barrier = barrier;
	disk->discard = discard;
	disk->discard_secure = secure;
	disk->persistent = persistent;
	return 0;
}

/* Read before the rings are made (blkif.h: it is there before InitWait). */
static int queues_offered(struct front *front, struct error *error)
{
	int err = feature_read(front, "multi-queue-max-queues", &front->disk.max_queues);

	if (err)
		return error_set(error, ECONNREFUSED,
				 "cannot connect, %s/multi-queue-max-queues is no number",
				 front->backend);
	if (!front->disk.max_queues)
		front->disk.max_queues = 1;
	if (front->config.nr_queues > front->disk.max_queues)
		return error_set(error, ECONNREFUSED,
				 "cannot connect with %u queues, the backend offers %llu",
				 front->config.nr_queues,
				 (unsigned long long)front->disk.max_queues);
	return 0;
}

int front_connect(struct front *front, struct error *error)
{
	uint64_t start_ns = clock_now_ns();
	const struct blkif_abi *abi = blkif_abi_find(front->config.protocol);
	int err = device_reset(front, error);

	if (err)
		return err;
	/* A protocol that nobody knows has no layout; it is written to be refused. */
	if (!abi)
		abi = &blkif_abi_x86_64;
	err = queues_offered(front, error);
	if (err)
		return err;
	err = front_link_open(&front->link, front->loop, front->host, front->backend_domid, abi,
			      front->config.ring_order, front->config.nr_queues, error);
	if (err)
		return err;
	err = store_transaction(front->store, keys_write, front);
	if (err)
		return error_set(error, -err, "cannot write the ring's keys to %s: %s",
				 front->frontend, strerror(-err));
	front->own = XENBUS_INITIALISED;
	err = backend_wait(front, STATE_BIT(XENBUS_CONNECTED), STATES_CLOSED,
			   "the backend to connect", error);
	if (!err)
		err = disk_read(front, error);
	if (!err)
		err = own_state_write(front, XENBUS_CONNECTED, error);
	if (err)
		return err;
	front->connected = true;
	front->connect_us = (clock_now_ns() - start_ns) / 1000;
	return 0;
}

static int states_close(struct front *front, struct error *error)
{
	int err = own_state_write(front, XENBUS_CLOSING, error);

	if (!err)
		err = backend_wait(front, STATES_CLOSED, 0, "the backend to close (Closing)",
				   error);
	if (!err)
		err = own_state_write(front, XENBUS_CLOSED, error);
	if (!err)
		err = backend_wait(front, STATE_BIT(XENBUS_CLOSED), 0,
				   "the backend to let go of the ring (Closed)", error);
	return err;
}

int front_disconnect(struct front *front, struct error *error)
{
	int close_err, err = 0;

	front->connected = false;
	if (front->link.open)
		err = states_close(front, error);
	close_err = front_link_close(&front->link, err ? NULL : error);
	return err ? err : close_err;
}
