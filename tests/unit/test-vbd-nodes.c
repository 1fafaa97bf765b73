// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Names and numbers in xenstore: addresses, the frontend's keys in all spellings, and states that are only
 * written over the life they belong to.
 *
 * Owns: nothing. Trusts: xen/io/blkif.h for the keys and their ranges; Linux's __xenbus_switch_state() for
 *   not bringing back a removed directory; faults.md R11, R20, R21. Runs on: the test.
 * Must not know: rings.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>

#include "tests/unit/fake-xenstore.h"
#include "tests/unit/unit.h"
#include "xenstore/vbd-nodes.h"

#define BACKEND "/local/domain/0/backend/qdisk/3/51712"
#define FRONTEND "/local/domain/3/device/vbd/51712"

static struct store *store;
static struct vbd_nodes nodes;

/* What libxl writes at attach (device_disk_add()). */
static int set_up(void **state)
{
	struct error error;

	(void)state;
	fake_store_reset();
	fake_store_set(BACKEND "/frontend", FRONTEND);
	fake_store_set(BACKEND "/params", "aio:/srv/a:b.img");
	fake_store_set(BACKEND "/mode", "w");
	fake_store_set(BACKEND "/device-type", "disk");
	fake_store_set(BACKEND "/removable", "0");
	fake_store_set(BACKEND "/online", "1");
	fake_store_set(BACKEND "/state", "1");
	fake_store_set(FRONTEND "/state", "1");
	if (store_open(&store))
		return -1;
	return vbd_nodes_open(&nodes, store, "backend/qdisk/3/51712", &error);
}

static int tear_down(void **state)
{
	(void)state;
	store_close(store);
	fake_store_reset();
	return 0;
}

/* ---- Addresses and numbers ---------------------------------------------------------------------- */

static void addresses(void **state)
{
	static const struct {
		const char *path;
		const char *kind; /* NULL: refused */
		uint32_t domid, devid;
	} rows[] = {
		{"backend/qdisk/3/51712", "qdisk", 3, 51712},
		{"/local/domain/0/backend/qdisk/3/51712", "qdisk", 3, 51712},
		{"/local/domain/5/backend/vbd3/0/268439808", "vbd3", 0, 268439808},
		{"backend/qdisk/3/51712/state", "qdisk", 3, 51712},
		{"backend/qdisk/3/51712/", "qdisk", 3, 51712},
		{"backend/qdisk/4294967295/4294967295", "qdisk", 4294967295u, 4294967295u},
		{"backend/qdisk/3", NULL, 0, 0},
		{"backend/qdisk/3/", NULL, 0, 0},
		{"backend/qdisk", NULL, 0, 0},
		{"backend/", NULL, 0, 0},
		{"", NULL, 0, 0},
		{"frontend/qdisk/3/51712", NULL, 0, 0},
		{"backend//3/51712", NULL, 0, 0},
		{"backend/QDISK/3/51712", NULL, 0, 0},
		{"backend/sixteen_or_more_/3/51712", NULL, 0, 0},
		{"backend/fifteen_letters/3/51712", "fifteen_letters", 3, 51712},
		/* What strtoul() would have taken for another VBD's number. */
		{"backend/qdisk/-1/51712", NULL, 0, 0},
		{"backend/qdisk/+3/51712", NULL, 0, 0},
		{"backend/qdisk/ 3/51712", NULL, 0, 0},
		{"backend/qdisk/3/0x10", NULL, 0, 0},
		{"backend/qdisk/3/51712x", NULL, 0, 0},
		{"backend/qdisk/4294967299/51712", NULL, 0, 0},
		{"backend/qdisk/3/18446744073709603328", NULL, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct vbd_address address;
		int err = vbd_address_parse(rows[i].path, &address);

		if (err != (rows[i].kind ? 0 : -EINVAL))
			fail_msg("%s: %d", rows[i].path, err);
		if (err)
			continue;
		assert_string_equal(address.kind, rows[i].kind);
		assert_int_equal(address.domid, rows[i].domid);
		assert_int_equal(address.devid, rows[i].devid);
	}
}

static void numbers(void **state)
{
	static const char *const bad[] = {"",
					  " 1",
					  "1 ",
					  "-1",
					  "+1",
					  "0x1",
					  "1a",
					  "1.0",
					  "\n",
					  "1\n",
					  "18446744073709551616",
					  "99999999999999999999",
					  "\xd9\xa1"};
	uint64_t number;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(store_number_parse(bad[i], UINT64_MAX, &number), -EINVAL);
	assert_int_equal(store_number_parse("18446744073709551615", UINT64_MAX, &number), 0);
	assert_true(number == UINT64_MAX);
	assert_int_equal(store_number_parse("000000000000000000000000000012", 12, &number), 0);
	assert_int_equal(number, 12);
	assert_int_equal(store_number_parse("13", 12, &number), -EINVAL);
	assert_int_equal(store_number_parse("0", 0, &number), 0);
}

static void opening(void **state)
{
	struct vbd_nodes other;
	struct error error;

	(void)state;
	assert_string_equal(nodes.backend, BACKEND);
	assert_string_equal(nodes.frontend, FRONTEND);
	assert_int_equal(vbd_nodes_open(&other, store, BACKEND, &error), 0);
	assert_string_equal(other.backend, BACKEND);
	assert_int_equal(vbd_nodes_open(&other, store, "backend/qdisk/4/51712", &error), -ENOENT);
	assert_int_equal(vbd_nodes_open(&other, store, "qdisk/3/51712", &error), -EINVAL);
	assert_non_null(strstr(error.text, "qdisk/3/51712"));
	/* Another domain's nodes are none of a frontend's, whatever the path begins with. */
	fake_store_set(BACKEND "/frontend", "/local/domain/33/device/vbd/51712");
	assert_int_equal(vbd_nodes_open(&other, store, BACKEND, &error), -EBADMSG);
	assert_non_null(strstr(error.text, "/local/domain/33/device/vbd/51712"));
}

/* ---- Reading ------------------------------------------------------------------------------------ */

/* Nothing that a guest does to its own nodes looks like a failure of xenstore. */
static void hostile_frontend_states(void **state)
{
	static const char *const texts[] = {
		"",   "x",
		"-1", "7",
		"8",  "99999999999999999999999999999",
		"3 ", "a text which is longer than any number can be, much"};
	struct xenbus_view view = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		fake_store_set(FRONTEND "/state", texts[i]);
		assert_int_equal(vbd_nodes_read_view(&nodes, &view), 0);
		assert_int_equal(view.frontend, XENBUS_UNKNOWN);
	}
	fake_store_set_bytes(FRONTEND "/state", "3\0", 2);
	assert_int_equal(vbd_nodes_read_view(&nodes, &view), 0);
	assert_int_equal(view.frontend, XENBUS_UNKNOWN);
	for (int number = 0; number <= 6; number++) {
		fake_store_set_number(FRONTEND "/state", (unsigned)number);
		assert_int_equal(vbd_nodes_read_view(&nodes, &view), 0);
		assert_int_equal(view.frontend, number);
	}
	/* Gone, or made unreadable for us: the frontend has left. */
	fake_store_knobs.denied = FRONTEND "/state";
	assert_int_equal(vbd_nodes_read_view(&nodes, &view), 0);
	assert_int_equal(view.frontend, XENBUS_CLOSED);
	fake_store_knobs.denied = NULL;
	fake_store_remove(FRONTEND);
	assert_int_equal(vbd_nodes_read_view(&nodes, &view), 0);
	assert_int_equal(view.frontend, XENBUS_CLOSED);
}

static void views(void **state)
{
	struct xenbus_view view = {0};

	(void)state;
	assert_int_equal(vbd_nodes_read_view(&nodes, &view), 0);
	assert_true(view.backend_exists && view.online);
	assert_int_equal(view.backend, XENBUS_INITIALISING);
	fake_store_set(BACKEND "/online", "7"); /* faults.md X07 */
	assert_int_equal(vbd_nodes_read_view(&nodes, &view), 0);
	assert_true(view.online);
	fake_store_set(BACKEND "/online", "0");
	assert_int_equal(vbd_nodes_read_view(&nodes, &view), 0);
	assert_false(view.online);
	fake_store_remove(BACKEND);
	assert_int_equal(vbd_nodes_read_view(&nodes, &view), 0);
	assert_false(view.backend_exists || view.online);
	fake_store_knobs.lost = true;
	assert_int_equal(vbd_nodes_read_view(&nodes, &view), -EBADF);
}

static void disks(void **state)
{
	struct vbd_disk_spec spec;
	struct error error;

	(void)state;
	assert_int_equal(vbd_nodes_read_disk(&nodes, &spec, &error), 0);
	assert_string_equal(spec.params, "aio:/srv/a:b.img");
	assert_true(spec.writable && !spec.cdrom && !spec.removable);
	assert_true(spec.discard); /* libxl before 4.5 wrote no discard-enable */
	fake_store_set(BACKEND "/discard-enable", "0");
	fake_store_set(BACKEND "/mode", "r");
	fake_store_set(BACKEND "/device-type", "cdrom");
	fake_store_set(BACKEND "/removable", "1");
	assert_int_equal(vbd_nodes_read_disk(&nodes, &spec, &error), 0);
	assert_true(!spec.writable && spec.cdrom && spec.removable && !spec.discard);
	/* A mode we do not know must not become one that writes. */
	fake_store_set(BACKEND "/mode", "w!");
	assert_int_equal(vbd_nodes_read_disk(&nodes, &spec, &error), -EINVAL);
	fake_store_remove(BACKEND "/mode");
	assert_int_equal(vbd_nodes_read_disk(&nodes, &spec, &error), -ENOENT);
	assert_non_null(strstr(error.text, "mode"));
}

/* "key=value key=value ..." into the frontend's directory. */
static void frontend_write(const char *keys)
{
	char copy[512], path[128], *save = NULL;

	fake_store_remove(FRONTEND);
	snprintf(copy, sizeof(copy), "%s", keys);
	for (char *key = strtok_r(copy, " ", &save); key; key = strtok_r(NULL, " ", &save)) {
		char *value = strchr(key, '=');

		assert_non_null(value);
		*value++ = '\0';
		snprintf(path, sizeof(path), FRONTEND "/%s", key);
		fake_store_set(path, value);
	}
}

static const struct vbd_ring_limits limits = {.order = 4, .queues = 4};

static void rings(void **state)
{
	static const struct {
		const char *keys;
		int err; /* 0 or any negative */
		unsigned order;
		uint32_t first_gref, last_gref;
	} rows[] = {
		/* Linux with one page, with and without the order; tapback's and blkback's spelling. */
		{"ring-ref=8 event-channel=15 protocol=x86_64-abi", 0, 0, 8, 8},
		{"ring-page-order=0 ring-ref=8 event-channel=15", 0, 0, 8, 8},
		{"ring-page-order=0 ring-ref0=8 event-channel=15", 0, 0, 8, 8},
		{"num-ring-pages=1 ring-ref=8 event-channel=15", 0, 0, 8, 8},
		{"num-ring-pages=1 ring-ref0=8 event-channel=15", 0, 0, 8, 8},
		{"ring-page-order=1 ring-ref0=8 ring-ref1=9 event-channel=15", 0, 1, 8, 9},
		{"num-ring-pages=2 ring-ref0=8 ring-ref1=9 event-channel=15", 0, 1, 8, 9},
		{"ring-page-order=2 ring-ref0=8 ring-ref1=1 ring-ref2=2 ring-ref3=9 event-channel=15",
		 0, 2, 8, 9},
		{"multi-queue-num-queues=1 ring-ref=8 event-channel=15", 0, 0, 8, 8},
		{"ring-ref=4294967295 event-channel=4294967295", 0, 0, 4294967295u, 4294967295u},
		/* R20: over the limit, or no number at all. */
		{"ring-page-order=5 ring-ref0=8 event-channel=15", -1, 0, 0, 0},
		{"ring-page-order=31 ring-ref0=8 event-channel=15", -1, 0, 0, 0},
		{"ring-page-order=4294967295 ring-ref0=8 event-channel=15", -1, 0, 0, 0},
		{"ring-page-order=-1 ring-ref0=8 event-channel=15", -1, 0, 0, 0},
		{"ring-page-order=x ring-ref=8 event-channel=15", -1, 0, 0, 0},
		{"num-ring-pages=0 ring-ref=8 event-channel=15", -1, 0, 0, 0},
		{"num-ring-pages=3 ring-ref0=8 ring-ref1=9 ring-ref2=10 event-channel=15", -1, 0, 0,
		 0},
		{"num-ring-pages=32 ring-ref0=8 event-channel=15", -1, 0, 0, 0},
		/* Missing and mangled keys. */
		{"event-channel=15", -1, 0, 0, 0},
		{"ring-ref=8", -1, 0, 0, 0},
		{"ring-ref0=8 event-channel=15", -1, 0, 0, 0},
		{"ring-page-order=1 ring-ref0=8 event-channel=15", -1, 0, 0, 0},
		{"ring-page-order=0 event-channel=15", -1, 0, 0, 0},
		{"ring-ref=4294967296 event-channel=15", -1, 0, 0, 0},
		{"ring-ref=-8 event-channel=15", -1, 0, 0, 0},
		{"ring-ref=8 event-channel=", -1, 0, 0, 0},
		{"ring-ref=8 event-channel=4294967296", -1, 0, 0, 0},
		{"ring-ref=8 event-channel=15 protocol=a-name-that-is-longer-than-any-protocol's",
		 -1, 0, 0, 0},
		/* R21: more queues than were offered. */
		{"multi-queue-num-queues=5 ring-ref=8 event-channel=15", -1, 0, 0, 0},
		/* ... or not where two of them should be, or half of them. */
		{"multi-queue-num-queues=2 ring-ref=8 event-channel=15", -1, 0, 0, 0},
		{"multi-queue-num-queues=2 queue-0/ring-ref=8 queue-0/event-channel=15 queue-1/event-channel=16",
		 -1, 0, 0, 0},
		{"ring-ref=8 event-channel=15 feature-persistent=yes", -1, 0, 0, 0},
		{"multi-queue-num-queues=0 ring-ref=8 event-channel=15", -1, 0, 0, 0},
		{"multi-queue-num-queues=abc ring-ref=8 event-channel=15", -1, 0, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct vbd_ring_keys keys;
		struct error error = {""};
		int err;

		frontend_write(rows[i].keys);
		err = vbd_nodes_read_ring(&nodes, &limits, &keys, &error);
		if ((err < 0) != (rows[i].err < 0))
			fail_msg("%s: %d (%s)", rows[i].keys, err, error.text);
		if (err) {
			/* The text names the directory, for the person. */
			if (!strstr(error.text, FRONTEND))
				fail_msg("%s: \"%s\"", rows[i].keys, error.text);
			continue;
		}
		assert_int_equal(keys.order, rows[i].order);
		assert_int_equal(keys.queues[0].grefs[0], rows[i].first_gref);
		assert_int_equal(keys.queues[0].grefs[(1u << keys.order) - 1], rows[i].last_gref);
	}
}

/* The layout that Linux blkfront writes for two queues of two pages (dump of a 6.12 guest). */
static void queues(void **state)
{
	struct vbd_ring_keys keys;
	struct error error;

	(void)state;
	frontend_write("multi-queue-num-queues=2 ring-page-order=1 feature-persistent=1 "
		       "queue-0/ring-ref0=8 queue-0/ring-ref1=9 queue-0/event-channel=15 "
		       "queue-1/ring-ref0=18 queue-1/ring-ref1=19 queue-1/event-channel=16");
	assert_int_equal(vbd_nodes_read_ring(&nodes, &limits, &keys, &error), 0);
	assert_int_equal(keys.nr_queues, 2);
	assert_int_equal(keys.order, 1);
	assert_true(keys.persistent);
	assert_int_equal(keys.queues[0].grefs[0], 8);
	assert_int_equal(keys.queues[0].grefs[1], 9);
	assert_int_equal(keys.queues[0].event_channel, 15);
	assert_int_equal(keys.queues[1].grefs[0], 18);
	assert_int_equal(keys.queues[1].grefs[1], 19);
	assert_int_equal(keys.queues[1].event_channel, 16);
	/* What was offered is the limit, not what could be. */
	assert_int_equal(
		vbd_nodes_read_ring(&nodes, &(struct vbd_ring_limits){1, 1}, &keys, &error),
		-EINVAL);
	assert_int_equal(
		vbd_nodes_read_ring(&nodes, &(struct vbd_ring_limits){0, 2}, &keys, &error),
		-EINVAL);
}

static void protocols(void **state)
{
	struct vbd_ring_keys keys;
	struct error error;

	(void)state;
	frontend_write("ring-ref=8 event-channel=15 protocol=foo");
	assert_int_equal(vbd_nodes_read_ring(&nodes, &limits, &keys, &error), 0);
	assert_true(keys.has_protocol);
	assert_string_equal(keys.protocol, "foo");
	frontend_write("ring-ref=8 event-channel=15");
	assert_int_equal(vbd_nodes_read_ring(&nodes, &limits, &keys, &error), 0);
	assert_false(keys.has_protocol);
}

/* blkback's directory after its hotplug script (write_dev() in block-common.sh: hexadecimal numbers). */
static void devices_of_blkback(void **state)
{
	char path[VBD_PATH_MAX];

	(void)state;
	assert_int_equal(vbd_nodes_find_device(&nodes, 253, 1, true, path, sizeof(path)), -ENOENT);
	fake_store_set("/local/domain/0/backend/vbd/5/51712/physical-device", "fd:1");
	fake_store_set("/local/domain/0/backend/vbd/5/51712/mode", "w");
	fake_store_set("/local/domain/0/backend/vbd/7/51712/physical-device", "fd:2");
	fake_store_set("/local/domain/0/backend/vbd/7/51712/mode", "r");
	assert_int_equal(vbd_nodes_find_device(&nodes, 253, 1, true, path, sizeof(path)), 0);
	assert_string_equal(path, "backend/vbd/5/51712");
	assert_int_equal(vbd_nodes_find_device(&nodes, 253, 1, false, path, sizeof(path)), 0);
	/* Two readers go together; a reader and a writer do not. */
	assert_int_equal(vbd_nodes_find_device(&nodes, 253, 2, false, path, sizeof(path)), -ENOENT);
	assert_int_equal(vbd_nodes_find_device(&nodes, 253, 2, true, path, sizeof(path)), 0);
	assert_int_equal(vbd_nodes_find_device(&nodes, 253, 3, true, path, sizeof(path)), -ENOENT);
	assert_int_equal(vbd_nodes_find_device(&nodes, 25, 31, true, path, sizeof(path)), -ENOENT);
	fake_store_set("/local/domain/0/backend/vbd/5/51712/physical-device", "fd:1x");
	assert_int_equal(vbd_nodes_find_device(&nodes, 253, 1, true, path, sizeof(path)), -ENOENT);
}

/* ---- Writing ------------------------------------------------------------------------------------ */

static void states_stay_within_their_life(void **state)
{
	(void)state;
	assert_int_equal(vbd_nodes_set_state(&nodes, XENBUS_CLOSING, XENBUS_INITIALISING), 0);
	assert_string_equal(fake_store_get(BACKEND "/state"), "5");
	/* The next generation of the path. */
	fake_store_set(BACKEND "/state", "1");
	assert_int_equal(vbd_nodes_set_state(&nodes, XENBUS_CLOSED, XENBUS_CLOSING), -ESTALE);
	assert_string_equal(fake_store_get(BACKEND "/state"), "1");
	/* The toolstack has ended it. */
	fake_store_set(BACKEND "/state", "6");
	assert_int_equal(vbd_nodes_set_state(&nodes, XENBUS_CONNECTED, XENBUS_INIT_WAIT), -ESTALE);
	assert_string_equal(fake_store_get(BACKEND "/state"), "6");
	/* The toolstack's 5 is no end: 6 is what it waits for. */
	fake_store_set(BACKEND "/state", "5");
	assert_int_equal(vbd_nodes_set_state(&nodes, XENBUS_CLOSED, XENBUS_CONNECTED), 0);
	/* A removed directory stays removed. */
	fake_store_remove(BACKEND);
	assert_int_equal(vbd_nodes_set_state(&nodes, XENBUS_CLOSED, XENBUS_CONNECTED), -ESTALE);
	assert_null(fake_store_get(BACKEND "/state"));
}

static void remove_backend(void)
{
	fake_store_remove(BACKEND);
}

/* The toolstack is quicker than our commit: tried again on what is there now. */
static void conflicts(void **state)
{
	(void)state;
	fake_store_knobs.nr_conflicts = 5;
	assert_int_equal(vbd_nodes_set_state(&nodes, XENBUS_INIT_WAIT, XENBUS_INITIALISING), 0);
	assert_string_equal(fake_store_get(BACKEND "/state"), "2");
	fake_store_knobs.before_commit = remove_backend;
	assert_int_equal(vbd_nodes_set_state(&nodes, XENBUS_CONNECTED, XENBUS_INIT_WAIT), -ESTALE);
	assert_null(fake_store_get(BACKEND "/state"));
	/* Not for ever. */
	fake_store_set(BACKEND "/state", "1");
	fake_store_knobs.nr_conflicts = 1000000;
	assert_int_equal(vbd_nodes_set_state(&nodes, XENBUS_INIT_WAIT, XENBUS_INITIALISING),
			 -EBUSY);
	assert_true(fake_store_nr_calls() < 10000);
}

static const struct vbd_features features = {
	.rings = {.order = 4, .queues = 4},
	.nr_sectors512 = 131072,
	.sector_bytes = 512,
	.physical_sector_bytes = 4096,
	.max_indirect = 256,
	.flush = true,
	.discard = true,
	.discard_granularity_bytes = 4096,
	.discard_alignment_bytes = 512,
};

static void advertise(void **state)
{
	static const char *const rows[][2] = {
		/* blkif.h: sectors are 512-byte units; info 4 is VDISK_READONLY */
		{"sectors", "131072"},
		{"sector-size", "512"},
		{"physical-sector-size", "4096"},
		{"feature-flush-cache", "1"},
		{"info", "0"},
		{"max-ring-page-order", "4"},
		{"max-ring-pages", "16"},
		{"multi-queue-max-queues", "4"},
		{"feature-max-indirect-segments", "256"},
		{"feature-discard", "1"},
		{"discard-granularity", "4096"},
		{"discard-alignment", "512"},
		{"discard-secure", "0"},
		/* What is not offered is said not to be: another backend may have offered it. */
		{"feature-persistent", "0"},
		{"feature-barrier", "0"},
		{"state", "2"},
	};
	struct vbd_disk_spec spec;
	struct error error;
	char path[128];

	(void)state;
	assert_int_equal(vbd_nodes_read_disk(&nodes, &spec, &error), 0);
	assert_int_equal(vbd_nodes_advertise(&nodes, &spec, &features, XENBUS_INITIALISING), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(path, sizeof(path), BACKEND "/%s", rows[i][0]);
		assert_string_equal(fake_store_get(path), rows[i][1]);
	}
	/* Over another state, over another disk, over nothing: not. */
	assert_int_equal(vbd_nodes_advertise(&nodes, &spec, &features, XENBUS_INITIALISING),
			 -ESTALE);
	fake_store_set(BACKEND "/state", "6");
	fake_store_set(BACKEND "/params", "aio:/srv/other.img");
	assert_int_equal(vbd_nodes_advertise(&nodes, &spec, &features, XENBUS_CLOSED), -ESTALE);
	assert_string_equal(fake_store_get(BACKEND "/state"), "6");
	fake_store_remove(BACKEND);
	assert_int_equal(vbd_nodes_advertise(&nodes, &spec, &features, XENBUS_CLOSED), -ESTALE);
	assert_null(fake_store_get(BACKEND "/sectors"));
}

/* At Connected the guest reads the size and the indirect limit that hold for this ring. */
static void connecting_and_resizing(void **state)
{
	struct vbd_features late = features;
	struct vbd_disk_spec spec;
	struct error error;

	(void)state;
	assert_int_equal(vbd_nodes_read_disk(&nodes, &spec, &error), 0);
	assert_int_equal(vbd_nodes_advertise(&nodes, &spec, &features, XENBUS_INITIALISING), 0);
	/* Another size before a frontend has come: no state is written. */
	assert_int_equal(vbd_nodes_resize(&nodes, 131080, XENBUS_INIT_WAIT), 0);
	assert_string_equal(fake_store_get(BACKEND "/sectors"), "131080");
	assert_string_equal(fake_store_get(BACKEND "/state"), "2");
	late.nr_sectors512 = 131088;
	late.max_indirect = 32;
	assert_int_equal(vbd_nodes_connect(&nodes, &late, XENBUS_INIT_WAIT), 0);
	assert_string_equal(fake_store_get(BACKEND "/sectors"), "131088");
	assert_string_equal(fake_store_get(BACKEND "/feature-max-indirect-segments"), "32");
	assert_string_equal(fake_store_get(BACKEND "/state"), "4");
	assert_int_equal(vbd_nodes_resize(&nodes, 262144, XENBUS_CONNECTED), 0);
	assert_string_equal(fake_store_get(BACKEND "/sectors"), "262144");
	/* The toolstack has ended it meanwhile. */
	fake_store_set(BACKEND "/state", "6");
	assert_int_equal(vbd_nodes_resize(&nodes, 131072, XENBUS_CONNECTED), -ESTALE);
	assert_string_equal(fake_store_get(BACKEND "/sectors"), "262144");
	fake_store_remove(BACKEND);
	assert_int_equal(vbd_nodes_connect(&nodes, &late, XENBUS_INIT_WAIT), -ESTALE);
	assert_null(fake_store_get(BACKEND "/state"));
}

static void info_bits(void **state)
{
	struct vbd_disk_spec spec;
	struct error error;

	(void)state;
	fake_store_set(BACKEND "/mode", "r");
	fake_store_set(BACKEND "/device-type", "cdrom");
	fake_store_set(BACKEND "/removable", "1");
	assert_int_equal(vbd_nodes_read_disk(&nodes, &spec, &error), 0);
	assert_int_equal(vbd_nodes_advertise(&nodes, &spec, &features, XENBUS_INITIALISING), 0);
	assert_string_equal(fake_store_get(BACKEND "/info"), "7");
}

static void errors_reach_the_person(void **state)
{
	(void)state;
	assert_int_equal(vbd_nodes_report_error(&nodes, "100% gone: %s"), 0);
	assert_string_equal(fake_store_get("/local/domain/0/error/backend/qdisk/3/51712/error"),
			    "100% gone: %s");
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest cases[] = {
		CASE(addresses),
		CASE(numbers),
		CASE(opening),
		CASE(hostile_frontend_states),
		CASE(views),
		CASE(disks),
		CASE(rings),
		CASE(queues),
		CASE(protocols),
		CASE(devices_of_blkback),
		CASE(states_stay_within_their_life),
		CASE(conflicts),
		CASE(advertise),
		CASE(connecting_and_resizing),
		CASE(info_bits),
		CASE(errors_reach_the_person),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
