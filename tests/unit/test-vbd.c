// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A VBD's whole life in one process: vbd.c and everything under it, over a fake xenstore, a fake Xen host and
 * a mock driver, with a frontend made of ring.h's macros.
 *
 * Owns: disk_open(), in the driver table's place. Trusts: backend/vbd.h; xen-contract.md §3 for what the
 *   toolstack and a frontend write. Runs on: the test. Must not know: how the steps are done.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "backend/blkif-abi.h"
#include "backend/clock.h"
#include "backend/event-loop.h"
#include "backend/run-file.h"
#include "backend/vbd.h"
#include "driver.h"
#include "tests/unit/fake-xen.h"
#include "tests/unit/fake-xenstore.h"
#include "tests/unit/unit.h"
#include "tests/unit/wire.h"

#define BACKEND "/local/domain/0/backend/qdisk/7/51712"
#define FRONTEND "/local/domain/7/device/vbd/51712"
#define ERROR_NODE "/local/domain/0/error/backend/qdisk/7/51712/error"
#define RING_GREF 8

/* ---- A disk ------------------------------------------------------------------------------------- */

struct test_disk {
	struct disk disk;
	struct disk_queue queue;
	struct request_list submitted, done;
	bool holds; /* requests stay with the driver until released */
	unsigned nr_open, nr_queues, nr_opens, nr_synced;
	int open_error, event_fd, flush_status;
	uint64_t size_bytes;
	unsigned flags;
	dev_t device;
	char spec[64];
};

static struct test_disk disk;

static void disk_close(struct disk *closed)
{
	assert_ptr_equal(closed, &disk.disk);
	assert_int_equal(disk.nr_queues, 0);
	disk.nr_open--;
}

static int disk_sync(struct disk *synced)
{
	(void)synced;
	disk.nr_synced++;
	return 0;
}

static int disk_refresh(struct disk *refreshed, uint64_t *size_bytes_out)
{
	(void)refreshed;
	*size_bytes_out = disk.size_bytes;
	return 0;
}

static int disk_queue_create(struct disk *of, unsigned depth, struct disk_queue **queue_out,
			     struct error *error)
{
	(void)depth;
	(void)error;
	assert_ptr_equal(of, &disk.disk);
	disk.queue.disk = of;
	disk.nr_queues++;
	*queue_out = &disk.queue;
	return 0;
}

static void disk_queue_destroy(struct disk_queue *queue)
{
	(void)queue;
	assert_true(TAILQ_EMPTY(&disk.submitted) && TAILQ_EMPTY(&disk.done));
	disk.nr_queues--;
}

static void disk_submit(struct disk_queue *queue, struct request *request)
{
	(void)queue;
	request->status = request->op == REQUEST_FLUSH ? disk.flush_status : 0;
	if (disk.holds)
		TAILQ_INSERT_TAIL(&disk.submitted, request, link);
	else
		TAILQ_INSERT_TAIL(&disk.done, request, link);
}

static void disk_release(void)
{
	uint64_t one = 1;

	disk.holds = false;
	TAILQ_CONCAT(&disk.done, &disk.submitted, link);
	assert_int_equal(write(disk.event_fd, &one, sizeof(one)), sizeof(one));
}

static void disk_kick(struct disk_queue *queue)
{
	(void)queue;
}

static int disk_poll_fd(struct disk_queue *queue)
{
	(void)queue;
	return disk.event_fd;
}

static unsigned disk_reap(struct disk_queue *queue, struct request_list *done)
{
	struct request *request;
	unsigned nr = 0;

	(void)queue;
	TAILQ_FOREACH(request, &disk.done, link)
		nr++;
	TAILQ_CONCAT(done, &disk.done, link);
	return nr;
}

static const struct driver test_driver = {
	.name = "test",
	.close = disk_close,
	.sync = disk_sync,
	.refresh = disk_refresh,
	.queue_create = disk_queue_create,
	.queue_destroy = disk_queue_destroy,
	.submit = disk_submit,
	.kick = disk_kick,
	.poll_fd = disk_poll_fd,
	.reap = disk_reap,
};

int disk_open(const char *spec, unsigned flags, struct disk **disk_out, struct error *error)
{
	disk.flags = flags;
	assert_int_equal(disk.nr_open, 0); /* never twice */
	disk.nr_opens++;
	if (disk.open_error)
		return error_set(error, -disk.open_error, "cannot open %s", spec);
	snprintf(disk.spec, sizeof(disk.spec), "%s", spec);
	disk.nr_open = 1;
	disk.disk = (struct disk){
		.driver = &test_driver,
		.device = disk.device,
		.limits = {.size_bytes = disk.size_bytes,
			   .logical_block_bytes = 512,
			   .physical_block_bytes = 512,
			   .memory_align_bytes = 512,
			   .can_write = true,
			   .can_flush = true},
	};
	*disk_out = &disk.disk;
	return 0;
}

/* ---- The life ----------------------------------------------------------------------------------- */

struct life {
	struct fake_xen fake;
	struct store *store;
	struct loop *loop;
	struct vbd *vbd;
	struct run_file run_file;
	struct wire_ring front;
	int real_stderr_fd;
	struct xen_host_ops host_ops;
	unsigned nr_handles;
	struct vbd_config config;
};

static struct life life;

static void host_close(struct xen_host *host)
{
	(void)host;
	life.nr_handles--;
}

static int host_open(void *arg, struct xen_host **host_out, struct error *error)
{
	(void)arg;
	(void)error;
	life.nr_handles++;
	*host_out = &life.fake.host;
	return 0;
}

static void vbd_begin(void)
{
	struct vbd_nodes nodes;
	struct error error;

	assert_int_equal(vbd_nodes_open(&nodes, life.store, "backend/qdisk/7/51712", &error), 0);
	assert_int_equal(vbd_create(life.loop, life.store, &nodes, &life.config, &life.run_file,
				    &life.vbd, &error),
			 0);
	vbd_evaluate(life.vbd);
}

static int set_up(void **state)
{
	int null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	pid_t pid;

	(void)state;
	life.real_stderr_fd = dup(STDERR_FILENO);
	dup2(null_fd, STDERR_FILENO);
	close(null_fd);
	memset(&disk, 0, sizeof(disk));
	TAILQ_INIT(&disk.submitted);
	TAILQ_INIT(&disk.done);
	disk.size_bytes = 64u << 20;
	disk.event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	fake_xen_init(&life.fake);
	life.host_ops = *life.fake.host.ops;
	life.host_ops.close = host_close;
	life.fake.host.ops = &life.host_ops;
	life.config = (struct vbd_config){.run_dir = ".", .host_open = host_open};
	vbd_options_init(&life.config.options);
	life.config.options.workers = 0; /* so that the test can step it */
	life.config.options.queues = 4;
	fake_store_reset();
	fake_store_set(BACKEND "/frontend", FRONTEND);
	fake_store_set(BACKEND "/params", "aio:/a");
	fake_store_set(BACKEND "/mode", "w");
	fake_store_set(BACKEND "/online", "1");
	fake_store_set(BACKEND "/state", "1");
	fake_store_set(FRONTEND "/state", "1");
	if (store_open(&life.store) || loop_create(&life.loop) || loop_mailbox_open(life.loop))
		return -1;
	return run_file_hold(&life.run_file, ".", "test-vbd-run-file", &pid);
}

/* The audit: nothing mapped, bound, open; no descriptor watched. */
static int tear_down(void **state)
{
	(void)state;
	vbd_destroy(life.vbd);
	run_file_release(&life.run_file);
	loop_destroy(life.loop);
	store_close(life.store);
	fake_store_reset();
	fake_xen_free(&life.fake);
	assert_int_equal(disk.nr_open, 0);
	assert_int_equal(disk.nr_queues, 0);
	assert_int_equal(life.nr_handles, 0);
	close(disk.event_fd);
	dup2(life.real_stderr_fd, STDERR_FILENO);
	close(life.real_stderr_fd);
	return 0;
}

/* Until nothing moves. A loop that never rests is a bug of its own. */
static void settle(void)
{
	for (int i = 0; i < 200; i++)
		if (!loop_step(life.loop, 0))
			return;
	fail_msg("the VBD does not come to rest");
}

static void backend_expect(enum xenbus_state state)
{
	const char *text = fake_store_get(BACKEND "/state");

	assert_non_null(text);
	assert_int_equal(atoi(text), state);
}

static void frontend_says(enum xenbus_state state)
{
	fake_store_set_number(FRONTEND "/state", state);
	settle();
}

/* As blkfront: a fresh ring, its keys, then Initialised. */
static void frontend_offers(void)
{
	wire_x86_64.front_init(&life.front, fake_page(&life.fake, RING_GREF), XEN_PAGE_SIZE, 0);
	fake_store_set(FRONTEND "/protocol", "x86_64-abi");
	fake_store_set_number(FRONTEND "/ring-ref", RING_GREF);
	fake_store_set_number(FRONTEND "/event-channel", FAKE_REMOTE_PORT);
	frontend_says(XENBUS_INITIALISED);
}

static void connect_frontend(void)
{
	vbd_begin();
	settle();
	backend_expect(XENBUS_INIT_WAIT);
	frontend_offers();
	backend_expect(XENBUS_CONNECTED);
	frontend_says(XENBUS_CONNECTED);
}

static void request_send(uint64_t id)
{
	struct wire_request request = {
		.operation = 1, .nr_segments = 1, .id = id, .segments = {{100, 0, 7}}};
	uint64_t one = 1;

	wire_x86_64.front_put(&life.front, &request);
	wire_x86_64.front_push(&life.front);
	assert_int_equal(write(life.fake.event_fd, &one, sizeof(one)), sizeof(one));
	settle();
}

static void answer_expect(uint64_t id)
{
	struct wire_response response;

	assert_true(wire_x86_64.front_get(&life.front, &response));
	assert_int_equal(response.id, id);
	assert_int_equal(response.status, 0);
}

static void ended_expect(enum vbdisk_exit status)
{
	/* vbdisk runs the loop after the first evaluation; the end must not be lost between. A run that
	 * does not end is ended by the alarm, and with it the test. */
	alarm(60);
	assert_int_equal(loop_run(life.loop), 0);
	alarm(0);
	assert_int_equal(vbd_exit_status(life.vbd), status);
	assert_int_equal(life.fake.nr_mapped, 0);
	assert_int_equal(life.fake.nr_bound, 0);
}

static void boot_and_detach(void **state)
{
	(void)state;
	connect_frontend();
	request_send(1);
	answer_expect(1);
	fake_store_set(BACKEND "/online", "0");
	fake_store_set(BACKEND "/state", "5");
	settle();
	request_send(2); /* served on until the frontend closes */
	answer_expect(2);
	frontend_says(XENBUS_CLOSING);
	request_send(3);
	answer_expect(3);
	fake_store_set_number(FRONTEND "/state", XENBUS_CLOSED);
	ended_expect(VBDISK_EXIT_OK);
	backend_expect(XENBUS_CLOSED);
	assert_int_equal(disk.nr_opens, 1);
}

static void unservable_disk(void **state)
{
	(void)state;
	disk.open_error = -ENOENT;
	vbd_begin();
	ended_expect(VBDISK_EXIT_UNSERVABLE);
	backend_expect(XENBUS_CLOSED);
	assert_string_equal(fake_store_get(ERROR_NODE), "cannot open aio:/a");
}

static void reconnects(void **state)
{
	(void)state;
	connect_frontend();
	for (int i = 0; i < 5; i++) {
		frontend_says(XENBUS_CLOSING);
		backend_expect(XENBUS_CLOSING);
		frontend_says(XENBUS_CLOSED);
		backend_expect(XENBUS_CLOSED);
		assert_int_equal(life.fake.nr_mapped + life.fake.nr_bound, 0);
		frontend_says(XENBUS_INITIALISING);
		backend_expect(XENBUS_INIT_WAIT);
		frontend_offers();
		backend_expect(XENBUS_CONNECTED);
		request_send(7);
		answer_expect(7);
	}
	assert_int_equal(disk.nr_opens, 1); /* the same storage */
	fake_store_remove(BACKEND);
	ended_expect(VBDISK_EXIT_OK);
}

/* We look only after the frontend has gone all the way round. */
static void merged_reconnect(void **state)
{
	(void)state;
	connect_frontend();
	frontend_says(XENBUS_CLOSING);
	fake_store_set_number(FRONTEND "/state", XENBUS_CLOSED);
	frontend_says(XENBUS_INITIALISING);
	backend_expect(XENBUS_INIT_WAIT);
	frontend_offers();
	frontend_says(XENBUS_CLOSING);
	frontend_offers();
	backend_expect(XENBUS_CONNECTED);
	request_send(1);
	answer_expect(1);
	fake_store_remove(BACKEND);
	ended_expect(VBDISK_EXIT_OK);
}

/* libxl's destroy: 6 written over our head; I/O in flight outlives the ring, and is not answered. */
static void destroy_with_io_in_flight(void **state)
{
	struct wire_response response;

	(void)state;
	connect_frontend();
	disk.holds = true;
	request_send(1);
	fake_store_set(BACKEND "/online", "0");
	fake_store_set(BACKEND "/state", "6");
	settle();
	/* The guest's memory is let go of at once. */
	assert_int_equal(life.fake.nr_mapped + life.fake.nr_bound, 0);
	assert_int_equal(disk.nr_queues, 1);
	fake_store_remove(BACKEND);
	vbd_guest_died(life.vbd); /* vbdiskd tells us the same */
	settle();
	assert_int_equal(disk.nr_queues, 1);
	disk_release();
	ended_expect(VBDISK_EXIT_OK);
	assert_null(fake_store_get(BACKEND "/state"));
	assert_false(wire_x86_64.front_get(&life.front, &response));
}

/* SIGTERM while storage is slow: the answer comes first, then the end. */
static void shutdown_waits(void **state)
{
	(void)state;
	connect_frontend();
	disk.holds = true;
	request_send(1);
	vbd_shutdown(life.vbd);
	settle();
	backend_expect(XENBUS_CONNECTED);
	disk_release();
	ended_expect(VBDISK_EXIT_OK);
	backend_expect(XENBUS_CLOSED);
	answer_expect(1);
}

/* ... and the guest is destroyed meanwhile: no more waiting with its memory mapped. */
static void shutdown_overtaken_by_destroy(void **state)
{
	(void)state;
	connect_frontend();
	disk.holds = true;
	request_send(1);
	vbd_shutdown(life.vbd);
	settle();
	assert_int_equal(life.fake.nr_mapped, 1);
	fake_store_remove(BACKEND);
	settle();
	assert_int_equal(life.fake.nr_mapped + life.fake.nr_bound, 0);
	disk_release();
	ended_expect(VBDISK_EXIT_OK);
	assert_null(fake_store_get(BACKEND "/state"));
}

/* ... or libxl writes 6 over our head (device_qemu_timeout()) and removes the nodes a little later. */
static void shutdown_overtaken_by_state_6(void **state)
{
	(void)state;
	connect_frontend();
	disk.holds = true;
	request_send(1);
	vbd_shutdown(life.vbd);
	settle();
	fake_store_set(BACKEND "/state", "6");
	settle();
	assert_int_equal(life.fake.nr_mapped + life.fake.nr_bound, 0);
	disk_release();
	ended_expect(VBDISK_EXIT_OK);
}

static void shutdown_answers_first(void **state)
{
	(void)state;
	connect_frontend();
	request_send(1);
	answer_expect(1);
	vbd_shutdown(life.vbd);
	ended_expect(VBDISK_EXIT_OK);
	backend_expect(XENBUS_CLOSED);
}

static void quiesce_syncs(void **state)
{
	(void)state;
	connect_frontend();
	vbd_quiesce(life.vbd);
	settle();
	assert_int_equal(disk.nr_synced, 1);
	request_send(1); /* resumed here: served on */
	answer_expect(1);
	fake_store_remove(BACKEND);
	ended_expect(VBDISK_EXIT_OK);
}

/* R11, R20 and a bad grant: told, Closing, nothing held, and not tried again by itself; then a good one. */
static void bad_rings(void **state)
{
	static const char *const rows[][2] = {
		{"protocol", "foo"},
		{"ring-page-order", "5"},
		{"multi-queue-num-queues", "17"},
		{"feature-persistent", "2"},
		{"ring-ref", "99999"},
		{"event-channel", "x"},
	};

	(void)state;
	vbd_begin();
	settle();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char path[128];
		unsigned nr_map_calls;

		frontend_says(XENBUS_INITIALISING);
		backend_expect(XENBUS_INIT_WAIT);
		fake_store_set(FRONTEND "/protocol", "x86_64-abi");
		fake_store_set_number(FRONTEND "/ring-ref", RING_GREF);
		fake_store_set_number(FRONTEND "/event-channel", FAKE_REMOTE_PORT);
		snprintf(path, sizeof(path), FRONTEND "/%s", rows[i][0]);
		fake_store_set(path, rows[i][1]);
		fake_store_remove(ERROR_NODE);
		frontend_says(XENBUS_INITIALISED);
		backend_expect(XENBUS_CLOSING);
		assert_non_null(fake_store_get(ERROR_NODE));
		assert_int_equal(life.fake.nr_mapped + life.fake.nr_bound, 0);
		nr_map_calls = life.fake.nr_map_calls;
		frontend_says(XENBUS_CONNECTED);
		assert_int_equal(life.fake.nr_map_calls, nr_map_calls);
		fake_store_remove(path);
		frontend_says(XENBUS_CLOSED);
		backend_expect(XENBUS_CLOSED);
	}
	frontend_says(XENBUS_INITIALISING);
	frontend_offers();
	backend_expect(XENBUS_CONNECTED);
	fake_store_remove(BACKEND);
	ended_expect(VBDISK_EXIT_OK);
}

/* A frontend that closes before it begins, and then offers a ring at once: the disk must be there. */
static void closing_before_the_beginning(void **state)
{
	(void)state;
	fake_store_set(FRONTEND "/state", "5");
	vbd_begin();
	settle();
	backend_expect(XENBUS_CLOSING);
	frontend_says(XENBUS_CLOSED);
	frontend_offers();
	backend_expect(XENBUS_CONNECTED);
	request_send(1);
	answer_expect(1);
	fake_store_remove(BACKEND);
	ended_expect(VBDISK_EXIT_OK);
}

/* Between two frontends the toolstack puts another image in: that is what is served then. */
static void params_change(void **state)
{
	(void)state;
	connect_frontend();
	frontend_says(XENBUS_CLOSED);
	backend_expect(XENBUS_CLOSED);
	fake_store_set(BACKEND "/params", "aio:/b");
	frontend_says(XENBUS_INITIALISING);
	backend_expect(XENBUS_INIT_WAIT);
	assert_string_equal(disk.spec, "aio:/b");
	frontend_offers();
	request_send(1);
	answer_expect(1);
	fake_store_remove(BACKEND);
	ended_expect(VBDISK_EXIT_OK);
}

/* A state that nobody expects there, for as long as it stays: no busy loop (settle() would tell). */
static void strange_state_after_closed(void **state)
{
	(void)state;
	connect_frontend();
	frontend_says(XENBUS_CLOSED);
	for (int strange = 0; strange <= 5; strange++) {
		unsigned nr_calls;

		if (strange == XENBUS_INITIALISING)
			continue; /* the next generation */
		fake_store_set_number(BACKEND "/state", (unsigned)strange);
		nr_calls = fake_store_nr_calls();
		frontend_says(XENBUS_INITIALISING);
		frontend_says(XENBUS_INITIALISED);
		assert_true(fake_store_nr_calls() - nr_calls < 100);
	}
	fake_store_remove(BACKEND);
	ended_expect(VBDISK_EXIT_OK);
}

static void next_generation(void **state)
{
	(void)state;
	connect_frontend();
	fake_store_remove(BACKEND);
	fake_store_set(BACKEND "/online", "1");
	fake_store_set(BACKEND "/state", "1");
	ended_expect(VBDISK_EXIT_OK);
	backend_expect(XENBUS_INITIALISING); /* left to its own process */
}

/* Without xenstore a guest whose ring we have is served on; it ends by order only, and says why. */
static void xenstore_lost_with_a_ring(void **state)
{
	(void)state;
	connect_frontend();
	fake_store_set(FRONTEND "/state", "5"); /* an event to wake us */
	fake_store_knobs.lost = true;
	settle();
	request_send(1);
	answer_expect(1);
	vbd_shutdown(life.vbd);
	ended_expect(VBDISK_EXIT_NO_XEN);
}

/* Without a ring there is nothing to wait for. */
static void xenstore_lost_without_a_ring(void **state)
{
	(void)state;
	vbd_begin();
	settle();
	fake_store_set(FRONTEND "/state", "3");
	fake_store_knobs.lost = true;
	ended_expect(VBDISK_EXIT_NO_XEN);
}

/* R01: told once, quiet afterwards, and the next connection is whole. */
static void broken_ring(void **state)
{
	uint64_t one = 1;

	(void)state;
	connect_frontend();
	blkif_put32(fake_page(&life.fake, RING_GREF), 0, 33);
	assert_int_equal(write(life.fake.event_fd, &one, sizeof(one)), sizeof(one));
	settle();
	assert_non_null(strstr(fake_store_get(ERROR_NODE), "broke its ring"));
	frontend_says(XENBUS_CLOSED);
	backend_expect(XENBUS_CLOSED);
	frontend_says(XENBUS_INITIALISING);
	frontend_offers();
	request_send(1);
	answer_expect(1);
	fake_store_remove(BACKEND);
	ended_expect(VBDISK_EXIT_OK);
}

/* An empty drive is closed, so that no guest waits for it, and nothing is reported as wrong. */
static void empty_drive(void **state)
{
	(void)state;
	fake_store_set(BACKEND "/device-type", "cdrom");
	fake_store_set(BACKEND "/params", "aio:");
	fake_store_set(BACKEND "/mode", "r");
	vbd_begin();
	ended_expect(VBDISK_EXIT_OK);
	backend_expect(XENBUS_CLOSED);
	assert_null(fake_store_get(ERROR_NODE));
	assert_int_equal(disk.nr_opens, 0);
}

/* Grown storage: the bounds first, then the guest hears of it (sectors and state in one transaction);
 * shrunk storage is told only when a person says so. */
static void resize(void **state)
{
	(void)state;
	connect_frontend();
	assert_string_equal(fake_store_get(BACKEND "/sectors"), "131072");
	disk.size_bytes = 128u << 20;
	vbd_size_changed(life.vbd);
	settle();
	assert_string_equal(fake_store_get(BACKEND "/sectors"), "262144");
	backend_expect(XENBUS_CONNECTED);
	disk.size_bytes = 32u << 20;
	vbd_size_changed(life.vbd);
	settle();
	assert_string_equal(fake_store_get(BACKEND "/sectors"), "65536");
	request_send(1);
	answer_expect(1);
	fake_store_remove(BACKEND);
	ended_expect(VBDISK_EXIT_OK);
}

/* The same by itself, every few seconds while a guest is connected; never smaller. */
static void resize_poll(void **state)
{
	uint64_t now_ns = 1000 * NSEC_PER_SEC;

	(void)state;
	clock_set_fake(now_ns);
	connect_frontend();
	disk.size_bytes = 32u << 20;
	clock_set_fake(now_ns += 5 * NSEC_PER_SEC);
	settle();
	assert_string_equal(fake_store_get(BACKEND "/sectors"), "131072");
	disk.size_bytes = 65u << 20;
	clock_set_fake(now_ns += 5 * NSEC_PER_SEC);
	settle();
	assert_string_equal(fake_store_get(BACKEND "/sectors"), "133120");
	/* Found at the next connection, too, when nobody looked between. */
	frontend_says(XENBUS_CLOSED);
	disk.size_bytes = 66u << 20;
	frontend_says(XENBUS_INITIALISING);
	frontend_offers();
	assert_string_equal(fake_store_get(BACKEND "/sectors"), "135168");
	/* Smaller: for a frontend that comes, not for one that is there. */
	frontend_says(XENBUS_CLOSED);
	disk.size_bytes = 16u << 20;
	frontend_says(XENBUS_INITIALISING);
	frontend_offers();
	assert_string_equal(fake_store_get(BACKEND "/sectors"), "32768");
	fake_store_remove(BACKEND);
	ended_expect(VBDISK_EXIT_OK);
}

static void flush_send(uint64_t id)
{
	struct wire_request request = {.operation = 3, .id = id};
	uint64_t one = 1;

	wire_x86_64.front_put(&life.front, &request);
	wire_x86_64.front_push(&life.front);
	assert_int_equal(write(life.fake.event_fd, &one, sizeof(one)), sizeof(one));
	settle();
}

/* xen-contract.md §4.3: an empty flush is never answered with an error. Held: the alarm is raised. */
static void flush_failure_holds(void **state)
{
	struct wire_response response;

	(void)state;
	connect_frontend();
	disk.flush_status = -EIO;
	flush_send(1);
	assert_false(wire_x86_64.front_get(&life.front, &response));
	assert_non_null(strstr(fake_store_get(ERROR_NODE), "flush"));
	backend_expect(XENBUS_CONNECTED);
	/* The next life of the frontend is not trusted either. */
	disk.flush_status = 0;
	frontend_says(XENBUS_CLOSED);
	frontend_says(XENBUS_INITIALISING);
	frontend_offers();
	flush_send(2);
	assert_false(wire_x86_64.front_get(&life.front, &response));
	fake_store_remove(BACKEND);
	ended_expect(VBDISK_EXIT_OK);
}

/* flush-failure=fail: the disk is closed under the guest, and is not connected again. */
static void flush_failure_fails(void **state)
{
	struct wire_response response;

	(void)state;
	life.config.options.close_on_flush_error = true;
	connect_frontend();
	disk.flush_status = -EIO;
	flush_send(1);
	assert_false(wire_x86_64.front_get(&life.front, &response));
	backend_expect(XENBUS_CLOSING);
	assert_int_equal(life.fake.nr_mapped + life.fake.nr_bound, 0);
	frontend_says(XENBUS_CLOSED);
	frontend_says(XENBUS_INITIALISING);
	frontend_offers();
	backend_expect(XENBUS_CLOSING);
	assert_int_equal(life.fake.nr_mapped + life.fake.nr_bound, 0);
	fake_store_remove(BACKEND);
	ended_expect(VBDISK_EXIT_OK);
}

/* A xenstore that refuses is not a lost one: asked again, and the life goes on. */
static void xenstore_refuses_for_a_while(void **state)
{
	uint64_t now_ns = 1000 * NSEC_PER_SEC;

	(void)state;
	clock_set_fake(now_ns);
	vbd_begin();
	settle();
	fake_store_knobs.nr_conflicts = 1500; /* more than a transaction is tried again for */
	frontend_offers();
	for (int i = 0; i < 5; i++) {
		clock_set_fake(now_ns += 2 * NSEC_PER_SEC);
		settle();
	}
	frontend_says(XENBUS_CLOSED);
	frontend_says(XENBUS_INITIALISING);
	frontend_offers();
	backend_expect(XENBUS_CONNECTED);
	request_send(1);
	answer_expect(1);
	fake_store_remove(BACKEND);
	ended_expect(VBDISK_EXIT_OK);
}

/* R21: two rings, of which the second cannot be had: none is attached. */
static void half_a_multi_queue(void **state)
{
	(void)state;
	vbd_begin();
	settle();
	fake_store_set(FRONTEND "/protocol", "x86_64-abi");
	fake_store_set(FRONTEND "/multi-queue-num-queues", "2");
	fake_store_set_number(FRONTEND "/queue-0/ring-ref", RING_GREF);
	fake_store_set_number(FRONTEND "/queue-0/event-channel", FAKE_REMOTE_PORT);
	fake_store_set_number(FRONTEND "/queue-1/ring-ref", 99999);
	fake_store_set_number(FRONTEND "/queue-1/event-channel", FAKE_REMOTE_PORT);
	frontend_says(XENBUS_INITIALISED);
	backend_expect(XENBUS_CLOSING);
	assert_non_null(fake_store_get(ERROR_NODE));
	assert_int_equal(life.fake.nr_mapped + life.fake.nr_bound, 0);
	assert_int_equal(life.nr_handles, 0);
	fake_store_remove(BACKEND);
	ended_expect(VBDISK_EXIT_OK);
}

/* A device that blkback serves to somebody is refused, and let go of again. */
static void device_of_blkback(void **state)
{
	(void)state;
	disk.device = makedev(253, 1);
	fake_store_set("/local/domain/0/backend/vbd/5/51712/physical-device", "fd:1");
	fake_store_set("/local/domain/0/backend/vbd/5/51712/mode", "w");
	vbd_begin();
	ended_expect(VBDISK_EXIT_UNSERVABLE);
	backend_expect(XENBUS_CLOSED);
	assert_non_null(strstr(fake_store_get(ERROR_NODE), "backend/vbd/5/51712"));
	assert_int_equal(disk.nr_open, 0);
}

/* Options behind the target are this disk's; another target has its own. */
static void options_of_one_disk(void **state)
{
	(void)state;
	fake_store_set(BACKEND "/params", "aio:/a,b,barrier=1,ring-order=0");
	connect_frontend();
	assert_string_equal(disk.spec, "aio:/a,b");
	assert_string_equal(fake_store_get(BACKEND "/feature-barrier"), "1");
	assert_string_equal(fake_store_get(BACKEND "/max-ring-page-order"), "0");
	frontend_says(XENBUS_CLOSED);
	fake_store_set(BACKEND "/params", "aio:/c");
	frontend_says(XENBUS_INITIALISING);
	assert_string_equal(disk.spec, "aio:/c");
	assert_string_equal(fake_store_get(BACKEND "/feature-barrier"), "0");
	assert_string_equal(fake_store_get(BACKEND "/max-ring-page-order"), "4");
	fake_store_remove(BACKEND);
	ended_expect(VBDISK_EXIT_OK);
}

static void bad_options_of_one_disk(void **state)
{
	(void)state;
	fake_store_set(BACKEND "/params", "aio:/a,sector=9");
	vbd_begin();
	ended_expect(VBDISK_EXIT_UNSERVABLE);
	backend_expect(XENBUS_CLOSED);
	assert_non_null(strstr(fake_store_get(ERROR_NODE), "sector"));
	assert_int_equal(disk.nr_opens, 0);
}

/* Any walk of a frontend and of the toolstack's online: no crash, no loop, and in the end a detach that
 * ends. */
static void random_walk(void **state)
{
	uint32_t seed = 12345;

	(void)state;
	vbd_begin();
	settle();
	for (int step = 0; step < 3000; step++) {
		unsigned what;

		seed = seed * 1664525u + 1013904223u;
		what = seed >> 8;
		if (what % 10 == 9)
			frontend_offers();
		else
			fake_store_set_number(FRONTEND "/state", what % 10 % 7);
		if (what >> 8 & 1)
			settle();
		assert_true(life.fake.nr_mapped <= 1 && life.fake.nr_bound <= 1);
	}
	settle();
	fake_store_set(BACKEND "/online", "0");
	fake_store_set(BACKEND "/state", "5");
	settle();
	fake_store_set_number(FRONTEND "/state", XENBUS_CLOSED);
	ended_expect(VBDISK_EXIT_OK);
	backend_expect(XENBUS_CLOSED);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest cases[] = {
		CASE(boot_and_detach),
		CASE(unservable_disk),
		CASE(reconnects),
		CASE(merged_reconnect),
		CASE(destroy_with_io_in_flight),
		CASE(shutdown_answers_first),
		CASE(shutdown_waits),
		CASE(shutdown_overtaken_by_destroy),
		CASE(shutdown_overtaken_by_state_6),
		CASE(quiesce_syncs),
		CASE(bad_rings),
		CASE(closing_before_the_beginning),
		CASE(params_change),
		CASE(strange_state_after_closed),
		CASE(next_generation),
		CASE(xenstore_lost_with_a_ring),
		CASE(xenstore_lost_without_a_ring),
		CASE(broken_ring),
		CASE(empty_drive),
		CASE(resize),
		CASE(resize_poll),
		CASE(flush_failure_holds),
		CASE(flush_failure_fails),
		CASE(xenstore_refuses_for_a_while),
		CASE(half_a_multi_queue),
		CASE(device_of_blkback),
		CASE(options_of_one_disk),
		CASE(bad_options_of_one_disk),
		CASE(random_walk),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
