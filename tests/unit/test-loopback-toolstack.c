// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The toolstack's part: device numbers, the nodes of a VBD, attach, detach, destroy, wait.
 *
 * Owns: a host in a child. Trusts: nothing. Runs on: the test. Must not know: how nodes are
 * written.
 */
#include "config.h"

#include "test-loopback-host.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>

#include "xenstore/store.h"

#define BACKEND "/local/domain/0/backend/qdisk/1/51712"
#define FRONTEND "/local/domain/1/device/vbd/51712"
#define LIBXL "/libxl/1/device/vbd/51712"

static struct test_host host;
static struct store *dom0;

static const struct toolstack_disk xvda = {
	.domid = 1,
	.vdev = 51712,
	.vdev_text = "xvda",
	.kind = "qdisk",
	.params = "aio:/no/such:image, or so",
	.writable = true,
};

static int start(void **state)
{
	char path[108];

	(void)state;
	test_host_start(&host);
	snprintf(path, sizeof(path), "%s/xenstored", host.dir);
	setenv("XENSTORED_PATH", path, 1);
	assert_int_equal(store_open(&dom0), 0);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	store_close(dom0);
	test_host_stop(&host);
	return 0;
}

static void assert_key(const char *dir, const char *key, const char *expected)
{
	char value[STORE_VALUE_MAX];
	int err = store_read_key(dom0, dir, key, value, sizeof(value));

	if (err)
		fail_msg("%s/%s: %s", dir, key, strerror(-err));
	assert_string_equal(value, expected);
}

static void assert_gone(const char *path)
{
	char value[STORE_VALUE_MAX];

	assert_int_equal(store_read(dom0, path, value, sizeof(value)), -ENOENT);
}

static void test_vdev(void **state)
{
	static const struct {
		const char *text;
		int err;
		uint32_t vdev;
	} rows[] = {
		{"xvda", 0, 51712},
		{"xvdb", 0, 51728},
		{"xvda1", 0, 51713},
		{"xvdp", 0, 51952},
		{"xvdq", 0, 1u << 28 | 16u << 8},
		{"xvdaa", 0, 1u << 28 | 26u << 8},
		{"xvda16", 0, 1u << 28 | 16},
		{"d0", 0, 51712},
		{"d1p2", 0, 51730},
		{"d16", 0, 1u << 28 | 16u << 8},
		{"hda", 0, 768},
		{"hdb1", 0, 833},
		{"hdc", 0, 5632},
		{"hdd", 0, 5696},
		{"sda", 0, 2048},
		{"sdb3", 0, 2067},
		{"51712", 0, 51712},
		{"0xca00", 0, 51712},
		{"", -EINVAL, 0},
		{"xvd", -EINVAL, 0},
		{"xvda1x", -EINVAL, 0},
		{"hde", -EINVAL, 0},
		{"sdq", -EINVAL, 0},
		{"xvda999", -EINVAL, 0},
		{"d", -EINVAL, 0},
		{"d1p", -EINVAL, 0},
		{"d1q", -EINVAL, 0},
		{"51712x", -EINVAL, 0},
		{"-1", -EINVAL, 0},
		{"99999999999", -EINVAL, 0},
		{"xvdaaaaaaaaaaaa", -EINVAL, 0},
		{"vda", -EINVAL, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t vdev = 0;

		if (toolstack_vdev_parse(rows[i].text, &vdev) != rows[i].err ||
		    (!rows[i].err && vdev != rows[i].vdev))
			fail_msg("%s: %u", rows[i].text, vdev);
	}
}

static void test_attach_nodes(void **state)
{
	static const char *const backend[][2] = {
		{"params", "aio:/no/such:image, or so"},
		{"frontend-id", "1"},
		{"online", "1"},
		{"removable", "0"},
		{"bootable", "1"},
		{"state", "1"},
		{"dev", "xvda"},
		{"type", "qdisk"},
		{"mode", "w"},
		{"device-type", "disk"},
		{"discard-enable", "1"},
		{"specification", "xen"},
	};
	static const char *const frontend[][2] = {
		{"backend", BACKEND},	     {"backend-id", "0"},     {"state", "1"},
		{"virtual-device", "51712"}, {"device-type", "disk"}, {"trusted", "1"},
	};
	struct error error = {""};
	struct store *guest;
	char path[108], value[64], **names;
	unsigned nr;

	(void)state;
	assert_int_equal(toolstack_attach(host.toolstack, &xvda, &error), 0);
	for (size_t i = 0; i < sizeof(backend) / sizeof(backend[0]); i++) {
		assert_key(BACKEND, backend[i][0], backend[i][1]);
		assert_key(LIBXL, backend[i][0], backend[i][1]);
	}
	assert_key(BACKEND, "frontend", FRONTEND);
	assert_key(LIBXL, "frontend", FRONTEND);
	assert_key(LIBXL, "backend", BACKEND);
	for (size_t i = 0; i < sizeof(frontend) / sizeof(frontend[0]); i++)
		assert_key(FRONTEND, frontend[i][0], frontend[i][1]);
	/* Nothing else. */
	assert_int_equal(store_list(dom0, BACKEND, &names, &nr), 0);
	assert_int_equal(nr, 13);
	free(names);
	assert_int_equal(toolstack_attach(host.toolstack, &xvda, &error), -EEXIST);

	/* The guest owns its side, and reads the other. */
	snprintf(path, sizeof(path), "%s/xenstored-1", host.dir);
	setenv("XENSTORED_PATH", path, 1);
	assert_int_equal(store_open(&guest), 0);
	assert_int_equal(store_write_key(guest, FRONTEND, "ring-ref", "8"), 0);
	assert_int_equal(store_read_key(guest, BACKEND, "state", value, sizeof(value)), 0);
	assert_int_equal(store_write_key(guest, BACKEND, "state", "4"), -EACCES);
	assert_int_equal(store_remove(guest, FRONTEND), 0);
	store_close(guest);
	snprintf(path, sizeof(path), "%s/xenstored", host.dir);
	setenv("XENSTORED_PATH", path, 1);

	/* The backend is closed already: the toolstack tidies up. */
	assert_int_equal(store_remove(dom0, BACKEND), 0);
	assert_int_equal(toolstack_detach(host.toolstack, 1, 51712, false, 0, &error), 0);
	assert_gone("/libxl/1/device");
	assert_int_equal(toolstack_detach(host.toolstack, 1, 51712, false, 0, &error), -ENOENT);
}

/* A backend in one sentence: when @key of BACKEND says @from, write @to as state; NULL: remove all.
 */
struct backend {
	pthread_t thread;
	const char *key, *from, *to;
	int err;
};

static void *backend_run(void *arg)
{
	struct backend *backend = arg;
	char event[STORE_PATH_MAX], token[8], value[16];
	struct pollfd ready = {.events = POLLIN};
	struct store *store;

	backend->err = store_open(&store);
	if (backend->err)
		return NULL;
	backend->err = store_watch(store, BACKEND, "b");
	ready.fd = store_fd(store);
	while (!backend->err &&
	       (store_read_key(store, BACKEND, backend->key, value, sizeof(value)) ||
		strcmp(value, backend->from))) {
		if (poll(&ready, 1, 5000) != 1)
			backend->err = -ETIMEDOUT;
		while (store_next_event(store, event, sizeof(event), token, sizeof(token)) > 0)
			;
	}
	if (!backend->err)
		backend->err = backend->to
				       ? store_write_key(store, BACKEND, "state", "%s", backend->to)
				       : store_remove(store, BACKEND);
	store_close(store);
	return NULL;
}

static void backend_start(struct backend *backend, const char *key, const char *from,
			  const char *to)
{
	*backend = (struct backend){.key = key, .from = from, .to = to};
	assert_int_equal(pthread_create(&backend->thread, NULL, backend_run, backend), 0);
}

static void backend_join(struct backend *backend)
{
	assert_int_equal(pthread_join(backend->thread, NULL), 0);
	assert_int_equal(backend->err, 0);
}

static void test_detach(void **state)
{
	struct error error = {""};
	struct backend backend;

	(void)state;
	assert_int_equal(toolstack_attach(host.toolstack, &xvda, &error), 0);
	assert_int_equal(toolstack_detach(host.toolstack, 1, 51712, false, 50, &error), -ETIMEDOUT);
	/* The nodes stay, and it can be tried again. */
	assert_key(BACKEND, "online", "0");
	assert_key(BACKEND, "state", "5");
	assert_key(FRONTEND, "backend", BACKEND);
	/* The first try's 5 must not be taken for the second one's. */
	assert_int_equal(store_write_key(dom0, BACKEND, "state", "4"), 0);
	backend_start(&backend, "state", "5", "6");
	assert_int_equal(toolstack_detach(host.toolstack, 1, 51712, false, 5000, &error), 0);
	backend_join(&backend);
	assert_gone(BACKEND);
	assert_gone(FRONTEND);
	assert_gone(LIBXL);
	/* Empty directories go with it, as libxl has it; the guest's own stay. */
	assert_gone("/local/domain/0/backend");
	assert_key("/local/domain/1", "domid", "1");

	/* By force. */
	assert_int_equal(toolstack_attach(host.toolstack, &xvda, &error), 0);
	assert_int_equal(toolstack_detach(host.toolstack, 1, 51712, true, 50, &error), 0);
	assert_gone(BACKEND);

	/* A backend that deletes its nodes is at fault. */
	assert_int_equal(toolstack_attach(host.toolstack, &xvda, &error), 0);
	backend_start(&backend, "state", "5", NULL);
	assert_int_equal(toolstack_detach(host.toolstack, 1, 51712, false, 5000, &error), -ENOENT);
	backend_join(&backend);
	assert_int_equal(toolstack_detach(host.toolstack, 1, 51712, false, 5000, &error), 0);
}

static void test_wait(void **state)
{
	struct error error = {""};
	struct backend backend;

	(void)state;
	assert_int_equal(toolstack_wait(host.toolstack, 1, 51712, false, 2, 10, &error), -ENOENT);
	assert_int_equal(toolstack_attach(host.toolstack, &xvda, &error), 0);
	assert_int_equal(toolstack_wait(host.toolstack, 1, 51712, false, 1, 0, &error), 0);
	assert_int_equal(toolstack_wait(host.toolstack, 1, 51712, true, 1, 0, &error), 0);
	assert_int_equal(toolstack_wait(host.toolstack, 1, 51712, false, 2, 20, &error),
			 -ETIMEDOUT);
	assert_non_null(strstr(error.text, "state is 1, not 2"));
	backend_start(&backend, "online", "1", "2");
	assert_int_equal(toolstack_wait(host.toolstack, 1, 51712, false, 2, 5000, &error), 0);
	backend_join(&backend);
	assert_int_equal(toolstack_detach(host.toolstack, 1, 51712, true, 0, &error), 0);
}

static void test_destroy_removes_all(void **state)
{
	struct error error = {""};
	struct toolstack_disk disk = xvda;
	unsigned nr_before = test_host_count(&host, "nodes");

	(void)state;
	disk.domid = 7;
	assert_int_equal(toolstack_attach(host.toolstack, &disk, &error), -ESRCH);
	assert_int_equal(toolstack_domain_create(host.toolstack, 7, false, &error), 0);
	assert_int_equal(toolstack_attach(host.toolstack, &disk, &error), 0);
	disk.vdev = 51728;
	disk.vdev_text = "xvdb";
	disk.backend_domid = 2;
	assert_int_equal(toolstack_attach(host.toolstack, &disk, &error), 0);
	assert_key("/local/domain/2/backend/qdisk/7/51728", "state", "1");
	assert_int_equal(toolstack_domain_destroy(host.toolstack, 7, false, 0, &error), 0);
	assert_int_equal(test_host_count(&host, "nodes"), nr_before);

	/* Or nothing at all. */
	assert_int_equal(toolstack_domain_create(host.toolstack, 7, false, &error), 0);
	disk.backend_domid = 0;
	assert_int_equal(toolstack_attach(host.toolstack, &disk, &error), 0);
	assert_int_equal(toolstack_domain_destroy(host.toolstack, 7, true, 0, &error), 0);
	assert_key("/local/domain/0/backend/qdisk/7/51728", "online", "1");
	assert_int_equal(store_remove(dom0, "/local/domain/0/backend"), 0);
	assert_int_equal(store_remove(dom0, "/local/domain/7"), 0);
	assert_int_equal(store_remove(dom0, "/libxl/7"), 0);
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test(test_vdev),
		cmocka_unit_test(test_attach_nodes),
		cmocka_unit_test(test_detach),
		cmocka_unit_test(test_wait),
		cmocka_unit_test(test_destroy_removes_all),
	};

	return cmocka_run_group_tests(cases, start, stop);
}
