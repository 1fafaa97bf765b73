// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The xenstore nodes of one VBD: their names, and how each is read and written.
 *
 * Owns: the spelling of every key that a block backend reads or writes.
 * Trusts / does not trust: the backend directory is the toolstack's, and trusted; everything in the
 *   frontend directory is the guest's: range-checked, never believed.
 * Runs on: the process's main thread; waits for xenstored only.
 * Must not know: rings, grants, drivers.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "xenstore/vbd-nodes.h"

/* The ring sizes we take: 1 << order pages. xen-blkback's and QEMU's limit, too. */
/* blkif.h VDISK_*: bits of the `info` node. */
#define INFO_CDROM 1u
#define INFO_REMOVABLE 2u
#define INFO_READONLY 4u

/* ---- Addresses and paths ------------------------------------------------------------------------ */

/* The component at *@at, up to '/' or the end, as a text; *@at then points behind it. */
static int component_take(const char **at, char *text, size_t size)
{
	size_t len = strcspn(*at, "/");

	if (len >= size)
		return -EINVAL;
	memcpy(text, *at, len);
	text[len] = '\0';
	*at += len + ((*at)[len] == '/');
	return 0;
}

static int component_take_number(const char **at, uint32_t *number_out)
{
	uint64_t number = 0;
	char text[16];
	int err = component_take(at, text, sizeof(text));

	if (!err)
		err = store_number_parse(text, UINT32_MAX, &number);
	*number_out = (uint32_t)number;
	return err;
}

int vbd_address_parse(const char *path, struct vbd_address *address)
{
	const char *at = strncmp(path, "backend/", 8) ? strstr(path, "/backend/") : path;
	int err;

	if (!at)
		return -EINVAL;
	at += *at == '/' ? 9 : 8;
	err = component_take(&at, address->kind, sizeof(address->kind));
	if (!err && (!address->kind[0] ||
		     address->kind[strspn(address->kind, "abcdefghijklmnopqrstuvwxyz0123456789_")]))
		err = -EINVAL;
	if (!err)
		err = component_take_number(&at, &address->domid);
	return err ? err : component_take_number(&at, &address->devid);
}

static int backend_path_make(struct vbd_nodes *nodes, const char *path)
{
	char home[VBD_PATH_MAX];
	uint32_t domid;
	int len, err;

	if (*path == '/') {
		len = snprintf(nodes->backend, sizeof(nodes->backend), "%s", path);
	} else {
		/* Our own domain's home; absolute, since watch events would come back relative. */
		err = store_own_domid(nodes->store, &domid);
		if (!err)
			err = store_domain_path(nodes->store, domid, home, sizeof(home));
		if (err)
			return err;
		len = snprintf(nodes->backend, sizeof(nodes->backend), "%s/%s", home, path);
	}
	return len < 0 || (size_t)len >= sizeof(nodes->backend) ? -ENAMETOOLONG : 0;
}

/* The frontend's directory is in the home of the domain that the backend directory is for. */
static int frontend_check(const struct vbd_nodes *nodes, struct error *error)
{
	char home[VBD_PATH_MAX];
	int err = store_domain_path(nodes->store, nodes->address.domid, home, sizeof(home));
	size_t len = strlen(home);

	if (err)
		return error_set(error, -err, "cannot find the home of domain %u: %s",
				 nodes->address.domid, strerror(-err));
	if (strncmp(nodes->frontend, home, len) || nodes->frontend[len] != '/')
		return error_set(error, EBADMSG,
				 "%s/frontend is %s, which is not in the home of domain %u (%s)",
				 nodes->backend, nodes->frontend, nodes->address.domid, home);
	return 0;
}

int vbd_nodes_open(struct vbd_nodes *nodes, struct store *store, const char *path,
		   struct error *error)
{
	int err;

	nodes->store = store;
	if (vbd_address_parse(path, &nodes->address))
		return error_set(error, EINVAL,
				 "%s is not a VBD's path; one looks like backend/qdisk/3/51712",
				 path);
	err = backend_path_make(nodes, path);
	if (err)
		return error_set(error, -err, "cannot find %s in xenstore: %s", path,
				 strerror(-err));
	snprintf(nodes->error_dir, sizeof(nodes->error_dir), "error/backend/%s/%u/%u",
		 nodes->address.kind, nodes->address.domid, nodes->address.devid);
	nodes->frontend[0] = '\0';
	err = store_read_key(store, nodes->backend, "frontend", nodes->frontend,
			     sizeof(nodes->frontend));
	if (err)
		return error_set(error, -err, "cannot read %s/frontend: %s; is the disk attached?",
				 nodes->backend, strerror(-err));
	return frontend_check(nodes, error);
}

static int watch_key(struct vbd_nodes *nodes, const char *dir, const char *key)
{
	char path[VBD_PATH_MAX + 16];

	snprintf(path, sizeof(path), "%s/%s", dir, key);
	return store_watch(nodes->store, path, key);
}

int vbd_nodes_watch(struct vbd_nodes *nodes)
{
	int err = watch_key(nodes, nodes->backend, "state");

	if (!err)
		err = watch_key(nodes, nodes->backend, "online");
	if (!err)
		err = watch_key(nodes, nodes->frontend, "state");
	return err;
}

/* ---- Reading ------------------------------------------------------------------------------------ */

/* A state node: 0, or -ENOENT. Garbage reads as Unknown. */
static int state_read(struct vbd_nodes *nodes, const char *dir, enum xenbus_state *state)
{
	uint64_t number;
	int err = store_read_number(nodes->store, dir, "state", XENBUS_CLOSED, &number);

	*state = err ? XENBUS_UNKNOWN : (enum xenbus_state)number;
	return err == -EINVAL ? 0 : err;
}

int vbd_nodes_read_view(struct vbd_nodes *nodes, struct xenbus_view *view)
{
	uint64_t online = 0;
	int err = state_read(nodes, nodes->backend, &view->backend);

	if (err && err != -ENOENT)
		return err;
	view->backend_exists = !err;
	err = store_read_number(nodes->store, nodes->backend, "online", 1, &online);
	if (err && err != -ENOENT && err != -EINVAL)
		return err;
	/* Only the toolstack's 0, or no key at all, ends a disk's life; a text that is neither does not. */
	view->online = online || err == -EINVAL;
	err = state_read(nodes, nodes->frontend, &view->frontend);
	/* A frontend that took its nodes away, or took away our right to read them, has left. */
	if (err == -ENOENT || err == -EACCES)
		view->frontend = XENBUS_CLOSED;
	else if (err)
		return err;
	return 0;
}

/* A key that is not there leaves @flag as it is. */
static int flag_read(struct vbd_nodes *nodes, const char *key, bool *flag)
{
	uint64_t number;
	int err = store_read_number(nodes->store, nodes->backend, key, 1, &number);

	if (!err)
		*flag = number;
	return err == -ENOENT ? 0 : err;
}

int vbd_nodes_read_disk(struct vbd_nodes *nodes, struct vbd_disk_spec *spec, struct error *error)
{
	char text[16];
	const char *key = "params";
	int err = store_read_key(nodes->store, nodes->backend, key, spec->params,
				 sizeof(spec->params));

	if (err)
		goto fail;
	key = "mode";
	err = store_read_key(nodes->store, nodes->backend, key, text, sizeof(text));
	if (err)
		goto fail;
	if (strcmp(text, "r") && strcmp(text, "w"))
		return error_set(error, EINVAL, "%s/mode is \"%s\": only r and w are known",
				 nodes->backend, text);
	spec->writable = text[0] == 'w';
	key = "device-type";
	err = store_read_key(nodes->store, nodes->backend, key, text, sizeof(text));
	if (err && err != -ENOENT)
		goto fail;
	spec->cdrom = !err && !strcmp(text, "cdrom");
	key = "removable";
	spec->removable = false;
	err = flag_read(nodes, key, &spec->removable);
	if (err)
		goto fail;
	key = "discard-enable";
	spec->discard = true;
	err = flag_read(nodes, key, &spec->discard);
	if (!err)
		return 0;
fail:
	return error_set(error, -err, "cannot read %s/%s: %s", nodes->backend, key, strerror(-err));
}

struct ring_reading {
	struct vbd_nodes *nodes;
	const struct vbd_ring_limits *limits;
	struct vbd_ring_keys *keys;
	bool order_spelled; /* ring-page-order or num-ring-pages is there */
	struct error *error;
};

/* ring-page-order, or its older twin num-ring-pages; neither means one page. */
static int order_read(struct ring_reading *reading)
{
	const struct vbd_ring_limits *limits = reading->limits;
	const char *frontend = reading->nodes->frontend;
	struct vbd_ring_keys *keys = reading->keys;
	uint64_t number = 0;
	int err = store_read_number(reading->nodes->store, frontend, "ring-page-order",
				    limits->order, &number);

	keys->order = (unsigned)number;
	reading->order_spelled = err != -ENOENT;
	if (err != -ENOENT)
		return err ? error_set(reading->error, -err,
				       "%s/ring-page-order is not a number from 0 to %u", frontend,
				       limits->order)
			   : 0;
	err = store_read_number(reading->nodes->store, frontend, "num-ring-pages",
				1u << limits->order, &number);
	if (err == -ENOENT)
		return 0;
	reading->order_spelled = true;
	if (err || !number || number & (number - 1))
		return error_set(reading->error, EINVAL,
				 "%s/num-ring-pages is not a power of two from 1 to %u", frontend,
				 1u << limits->order);
	while (1u << keys->order < number)
		keys->order++;
	return 0;
}

static int gref_read(struct ring_reading *reading, const char *dir, const char *key, uint32_t *gref)
{
	uint64_t number;
	int err = store_read_number(reading->nodes->store, dir, key, UINT32_MAX, &number);

	if (err)
		return error_set(reading->error, -err, "%s/%s is no grant reference: %s", dir, key,
				 strerror(-err));
	*gref = (uint32_t)number;
	return 0;
}

static int grefs_read(struct ring_reading *reading, const char *dir, uint32_t *grefs)
{
	unsigned nr_pages = 1u << reading->keys->order;
	char key[24];
	int err = -ENOENT;

	/* One page is "ring-ref", or "ring-ref0" from a frontend that spelled the order 0. */
	if (nr_pages == 1) {
		err = gref_read(reading, dir, "ring-ref", &grefs[0]);
		if (err != -ENOENT || !reading->order_spelled)
			return err;
	}
	for (unsigned i = 0; i < nr_pages; i++) {
		snprintf(key, sizeof(key), "ring-ref%u", i);
		err = gref_read(reading, dir, key, &grefs[i]);
		if (err)
			return err;
	}
	return 0;
}

static int queue_read(struct ring_reading *reading, const char *dir, struct vbd_queue_keys *queue)
{
	uint64_t number;
	int err = grefs_read(reading, dir, queue->grefs);

	if (err)
		return err;
	err = store_read_number(reading->nodes->store, dir, "event-channel", UINT32_MAX, &number);
	if (err)
		return error_set(reading->error, -err, "%s/event-channel is no port: %s", dir,
				 strerror(-err));
	queue->event_channel = (uint32_t)number;
	return 0;
}

static int queues_read(struct ring_reading *reading)
{
	const char *frontend = reading->nodes->frontend;
	struct vbd_ring_keys *keys = reading->keys;
	uint64_t number = 1;
	int err = store_read_number(reading->nodes->store, frontend, "multi-queue-num-queues",
				    reading->limits->queues, &number);

	if (err != -ENOENT && (err || !number))
		return error_set(reading->error, EINVAL,
				 "%s/multi-queue-num-queues is not a number from 1 to %u", frontend,
				 reading->limits->queues);
	keys->nr_queues = (unsigned)number;
	if (keys->nr_queues == 1)
		return queue_read(reading, frontend, &keys->queues[0]);
	err = 0;
	for (unsigned i = 0; !err && i < keys->nr_queues; i++) {
		char dir[VBD_PATH_MAX + 24];

		snprintf(dir, sizeof(dir), "%s/queue-%u", frontend, i);
		err = queue_read(reading, dir, &keys->queues[i]);
	}
	return err;
}

static int ring_read(struct store *store, void *arg)
{
	struct ring_reading *reading = arg;
	const char *frontend = reading->nodes->frontend;
	struct vbd_ring_keys *keys = reading->keys;
	uint64_t persistent = 0;
	int err =
		store_read_key(store, frontend, "protocol", keys->protocol, sizeof(keys->protocol));

	keys->has_protocol = !err;
	if (err && err != -ENOENT)
		return error_set(reading->error, -err, "cannot read %s/protocol: %s", frontend,
				 strerror(-err));
	err = store_read_number(store, frontend, "feature-persistent", 1, &persistent);
	if (err && err != -ENOENT)
		return error_set(reading->error, -err, "%s/feature-persistent is neither 0 nor 1",
				 frontend);
	keys->persistent = persistent;
	err = order_read(reading);
	return err ? err : queues_read(reading);
}

int vbd_nodes_read_ring(struct vbd_nodes *nodes, const struct vbd_ring_limits *limits,
			struct vbd_ring_keys *keys, struct error *error)
{
	struct ring_reading reading = {nodes, limits, keys, false, error};
	int err;

	error->text[0] = '\0';
	err = store_transaction(nodes->store, ring_read, &reading);
	if (err && !error->text[0])
		error_set(error, -err, "cannot read %s: %s", nodes->frontend, strerror(-err));
	return err;
}

/* One VBD's directory of the kernel's backend. */
static bool device_conflicts(struct vbd_nodes *nodes, const char *dir, unsigned major,
			     unsigned minor, bool writable)
{
	unsigned its_major, its_minor;
	char text[32], mode[16], end;

	if (store_read_key(nodes->store, dir, "physical-device", text, sizeof(text)) ||
	    sscanf(text, "%x:%x%c", &its_major, &its_minor, &end) != 2 || its_major != major ||
	    its_minor != minor)
		return false;
	if (store_read_key(nodes->store, dir, "mode", mode, sizeof(mode)))
		return true;
	return writable || mode[0] != 'r';
}

/* The VBDs of one domain; 0 or -ENOENT. */
static int domain_find_device(struct vbd_nodes *nodes, const char *domain, unsigned major,
			      unsigned minor, bool writable, char *path, size_t size)
{
	int err = -ENOENT;
	unsigned nr = 0;
	char **names;

	if (store_list(nodes->store, domain, &names, &nr))
		return -ENOENT; /* gone since its name was read */
	for (unsigned i = 0; err && i < nr; i++) {
		int len = snprintf(path, size, "%s/%s", domain, names[i]);

		if (len > 0 && (size_t)len < size &&
		    device_conflicts(nodes, path, major, minor, writable))
			err = 0;
	}
	free(names);
	return err;
}

int vbd_nodes_find_device(struct vbd_nodes *nodes, unsigned major, unsigned minor, bool writable,
			  char *path, size_t size)
{
	char domain[VBD_PATH_MAX];
	unsigned nr = 0;
	char **names;
	int err = store_list(nodes->store, "backend/vbd", &names, &nr);

	if (err)
		return err;
	err = -ENOENT;
	for (unsigned i = 0; err && i < nr; i++) {
		snprintf(domain, sizeof(domain), "backend/vbd/%.64s", names[i]);
		err = domain_find_device(nodes, domain, major, minor, writable, path, size);
	}
	free(names);
	return err;
}

/* ---- Writing ------------------------------------------------------------------------------------ */

/* Within a transaction: is the device in the directory still the one whose state we wrote last? */
static int life_check(struct vbd_nodes *nodes, enum xenbus_state own)
{
	enum xenbus_state now;
	int err = state_read(nodes, nodes->backend, &now);

	if (err)
		return err == -ENOENT ? -ESTALE : err;
	if (now == XENBUS_INITIALISING && own != XENBUS_INITIALISING)
		return -ESTALE;
	return now == XENBUS_CLOSED && own != XENBUS_CLOSED ? -ESTALE : 0;
}

struct advertising {
	struct vbd_nodes *nodes;
	const struct vbd_disk_spec *spec;
	const struct vbd_features *features;
	enum xenbus_state expected;
};

static int spec_check(struct vbd_nodes *nodes, const struct vbd_disk_spec *spec)
{
	struct vbd_disk_spec now;
	int err = vbd_nodes_read_disk(nodes, &now, NULL);

	if (err)
		return err == -ENOENT ? -ESTALE : err;
	return strcmp(now.params, spec->params) || now.writable != spec->writable ? -ESTALE : 0;
}

/* Keys which may change between the first InitWait and Connected, or depend on the ring. */
static int late_features_write(struct store *store, const char *dir,
			       const struct vbd_features *features)
{
	int err = store_write_key(store, dir, "sectors", "%llu",
				  (unsigned long long)features->nr_sectors512);

	return err ? err
		   : store_write_key(store, dir, "feature-max-indirect-segments", "%u",
				     features->max_indirect);
}

/* All of them always, so that none is left behind by a backend that offered more. */
static int early_features_write(struct store *store, const char *dir,
				const struct vbd_features *features, unsigned info)
{
	const struct {
		const char *key;
		unsigned value;
	} keys[] = {
		{"max-ring-page-order", features->rings.order},
		{"max-ring-pages", 1u << features->rings.order},
		{"multi-queue-max-queues", features->rings.queues},
		{"feature-flush-cache", features->flush},
		{"feature-barrier", features->barrier},
		{"feature-persistent", features->persistent},
		{"feature-discard", features->discard},
		{"discard-granularity", features->discard_granularity_bytes},
		{"discard-alignment", features->discard_alignment_bytes},
		{"discard-secure", features->discard_secure},
		{"sector-size", features->sector_bytes},
		{"physical-sector-size", features->physical_sector_bytes},
		{"info", info},
	};
	int err = 0;

	for (size_t i = 0; !err && i < sizeof(keys) / sizeof(keys[0]); i++)
		err = store_write_key(store, dir, keys[i].key, "%u", keys[i].value);
	return err;
}

static int features_write(struct store *store, void *arg)
{
	const struct advertising *advertising = arg;
	const struct vbd_disk_spec *spec = advertising->spec;
	const char *dir = advertising->nodes->backend;
	enum xenbus_state now;
	int err = state_read(advertising->nodes, dir, &now);

	if (err)
		return err == -ENOENT ? -ESTALE : err;
	if (now != advertising->expected)
		return -ESTALE;
	err = spec_check(advertising->nodes, spec);
	if (!err)
		err = early_features_write(store, dir, advertising->features,
					   (spec->cdrom ? INFO_CDROM : 0) |
						   (spec->removable ? INFO_REMOVABLE : 0) |
						   (spec->writable ? 0 : INFO_READONLY));
	if (!err)
		err = late_features_write(store, dir, advertising->features);
	if (!err)
		err = store_write_key(store, dir, "state", "%u", XENBUS_INIT_WAIT);
	return err;
}

int vbd_nodes_advertise(struct vbd_nodes *nodes, const struct vbd_disk_spec *spec,
			const struct vbd_features *features, enum xenbus_state expected)
{
	struct advertising advertising = {nodes, spec, features, expected};

	return store_transaction(nodes->store, features_write, &advertising);
}

struct state_writing {
	struct vbd_nodes *nodes;
	enum xenbus_state state, own;
};

static int state_write(struct store *store, void *arg)
{
	const struct state_writing *writing = arg;
	int err = life_check(writing->nodes, writing->own);

	return err ? err
		   : store_write_key(store, writing->nodes->backend, "state", "%u", writing->state);
}

int vbd_nodes_set_state(struct vbd_nodes *nodes, enum xenbus_state state, enum xenbus_state own)
{
	struct state_writing writing = {nodes, state, own};

	return store_transaction(nodes->store, state_write, &writing);
}

struct connecting {
	struct vbd_nodes *nodes;
	const struct vbd_features *features;
	enum xenbus_state own;
};

static int connected_write(struct store *store, void *arg)
{
	const struct connecting *connecting = arg;
	const char *dir = connecting->nodes->backend;
	int err = life_check(connecting->nodes, connecting->own);

	if (!err)
		err = late_features_write(store, dir, connecting->features);
	return err ? err : store_write_key(store, dir, "state", "%u", XENBUS_CONNECTED);
}

int vbd_nodes_connect(struct vbd_nodes *nodes, const struct vbd_features *features,
		      enum xenbus_state own)
{
	struct connecting connecting = {nodes, features, own};

	return store_transaction(nodes->store, connected_write, &connecting);
}

struct resizing {
	struct vbd_nodes *nodes;
	uint64_t nr_sectors512;
	enum xenbus_state own;
};

static int size_write(struct store *store, void *arg)
{
	const struct resizing *resizing = arg;
	const char *dir = resizing->nodes->backend;
	int err = life_check(resizing->nodes, resizing->own);

	if (!err)
		err = store_write_key(store, dir, "sectors", "%llu",
				      (unsigned long long)resizing->nr_sectors512);
	if (!err && resizing->own == XENBUS_CONNECTED)
		err = store_write_key(store, dir, "state", "%u", XENBUS_CONNECTED);
	return err;
}

int vbd_nodes_resize(struct vbd_nodes *nodes, uint64_t nr_sectors512, enum xenbus_state own)
{
	struct resizing resizing = {nodes, nr_sectors512, own};

	return store_transaction(nodes->store, size_write, &resizing);
}

int vbd_nodes_report_error(struct vbd_nodes *nodes, const char *text)
{
	return store_write_key(nodes->store, nodes->error_dir, "error", "%s", text);
}
