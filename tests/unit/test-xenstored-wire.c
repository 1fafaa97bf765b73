// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The xenstore server on its socket: libxenstore's clients, guests, and hostile bytes.
 *
 * Owns: a host in a child. Trusts: nothing. Runs on: the test. Must not know: the server's inside.
 */
#include "config.h"

#include "test-loopback-host.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <xen/io/xs_wire.h>

#include "loopback/xenstored-wire.h"
#include "xenstore/store.h"

static struct test_host host;

static int start(void **state)
{
	(void)state;
	test_host_start(&host);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	test_host_stop(&host);
	return 0;
}

/* Each case leaves no connection, watch or transaction behind. */
static int audit(void **state)
{
	(void)state;
	assert_int_equal(test_host_count(&host, "watches"), 0);
	assert_int_equal(test_host_count(&host, "transactions"), 0);
	assert_int_equal(test_host_findings(&host), 0);
	return 0;
}

static void socket_path(unsigned domid, char path[108])
{
	if (domid)
		snprintf(path, 108, "%s/xenstored-%u", host.dir, domid);
	else
		snprintf(path, 108, "%s/xenstored", host.dir);
}

static struct store *store_of(unsigned domid)
{
	struct store *store;
	char path[108];

	socket_path(domid, path);
	setenv("XENSTORED_PATH", path, 1);
	assert_int_equal(store_open(&store), 0);
	return store;
}

/* --- A client of raw bytes --- */

static int raw_open(unsigned domid)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	socket_path(domid, address.sun_path);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static void raw_send(int fd, uint32_t type, uint32_t tx_id, const void *payload, uint32_t len)
{
	struct xsd_sockmsg header = {.type = type, .req_id = 77, .tx_id = tx_id, .len = len};

	assert_int_equal(send(fd, &header, sizeof(header), MSG_NOSIGNAL), sizeof(header));
	if (len)
		assert_int_equal(send(fd, payload, len, MSG_NOSIGNAL), len);
}

/* The next message: its type, its payload with a NUL behind. -1 at the connection's end. */
static int raw_receive(int fd, char *payload, uint32_t *len_out)
{
	struct xsd_sockmsg header;

	if (recv(fd, &header, sizeof(header), MSG_WAITALL) != sizeof(header))
		return -1;
	assert_true(header.len <= XENSTORE_PAYLOAD_MAX);
	if (header.len)
		assert_int_equal(recv(fd, payload, header.len, MSG_WAITALL), header.len);
	payload[header.len] = '\0';
	if (len_out)
		*len_out = header.len;
	return (int)header.type;
}

/* Send one request, expect an error of this name, or with NULL none. */
static void raw_expect(int fd, uint32_t type, uint32_t tx_id, const void *payload, uint32_t len,
		       const char *error)
{
	char reply[XENSTORE_PAYLOAD_MAX + 1];
	int got;

	raw_send(fd, type, tx_id, payload, len);
	got = raw_receive(fd, reply, NULL);
	if (error) {
		assert_int_equal(got, XS_ERROR);
		assert_string_equal(reply, error);
	} else {
		assert_int_equal(got, (int)type);
	}
}

#define TEXT(text) text, (uint32_t)sizeof(text) /* with its NUL */
#define BYTES(text) text, (uint32_t)sizeof(text) - 1

/* --- Through libxenstore --- */

static void test_read_write_list(void **state)
{
	struct store *store = store_of(0);
	char value[STORE_VALUE_MAX], **names;
	uint64_t number;
	unsigned nr;

	(void)state;
	assert_int_equal(store_write_key(store, "/t/a", "k", "%d", 42), 0);
	assert_int_equal(store_read(store, "/t/a/k", value, sizeof(value)), 0);
	assert_string_equal(value, "42");
	assert_int_equal(store_read_number(store, "/t/a", "k", 100, &number), 0);
	assert_int_equal(number, 42);
	assert_int_equal(store_read(store, "/t/none", value, sizeof(value)), -ENOENT);
	assert_int_equal(store_mkdir(store, "/t/b"), 0);
	assert_int_equal(store_list(store, "/t", &names, &nr), 0);
	assert_int_equal(nr, 2);
	assert_string_equal(names[0], "a");
	assert_string_equal(names[1], "b");
	free(names);
	assert_int_equal(store_remove(store, "/t"), 0);
	assert_int_equal(store_list(store, "/t", &names, &nr), -ENOENT);
	assert_int_equal(store_domain_path(store, 7, value, sizeof(value)), 0);
	assert_string_equal(value, "/local/domain/7");
	store_close(store);
}

static void test_long_directory(void **state)
{
	struct store *store = store_of(0);
	char name[64], **names;
	unsigned nr;

	(void)state;
	/* 600 names of 20 bytes: three parts. */
	for (unsigned i = 0; i < 600; i++) {
		snprintf(name, sizeof(name), "/long/name-%014u", i);
		assert_int_equal(store_mkdir(store, name), 0);
	}
	assert_int_equal(store_list(store, "/long", &names, &nr), 0);
	assert_int_equal(nr, 600);
	for (unsigned i = 0; i < nr; i++) {
		snprintf(name, sizeof(name), "name-%014u", i);
		assert_string_equal(names[i], name);
	}
	free(names);
	assert_int_equal(store_remove(store, "/long"), 0);
	store_close(store);
}

/* The next event within a second must be this one. */
static void expect_event(struct store *store, const char *path, const char *token)
{
	struct pollfd ready = {.fd = store_fd(store), .events = POLLIN};
	char got_path[STORE_PATH_MAX], got_token[64];
	int got;

	while (!(got = store_next_event(store, got_path, sizeof(got_path), got_token,
					sizeof(got_token))))
		assert_int_equal(poll(&ready, 1, 1000), 1);
	assert_int_equal(got, 1);
	assert_string_equal(got_path, path);
	assert_string_equal(got_token, token);
}

/* A round trip: an event sent before is here by now. */
static void expect_no_event(struct store *store)
{
	char path[STORE_PATH_MAX], token[64];

	assert_int_equal(store_domain_path(store, 0, path, sizeof(path)), 0);
	assert_int_equal(store_next_event(store, path, sizeof(path), token, sizeof(token)), 0);
}

static void test_watch(void **state)
{
	struct store *watcher = store_of(0), *writer = store_of(0);

	(void)state;
	assert_int_equal(store_watch(watcher, "/w/a", "t"), 0);
	expect_event(watcher, "/w/a", "t"); /* once at the start */
	assert_int_equal(store_watch(watcher, "/w/a", "t"), -EEXIST);
	assert_int_equal(store_write_key(writer, "/w/a", "b", "1"), 0);
	expect_event(watcher, "/w/a/b", "t");
	assert_int_equal(store_write_key(writer, "/w", "ab", "1"), 0); /* a neighbour */
	expect_no_event(watcher);
	/* Below a removed subtree, and above. */
	assert_int_equal(store_watch(watcher, "/w/a/b", "below"), 0);
	expect_event(watcher, "/w/a/b", "below");
	assert_int_equal(store_watch(watcher, "/w/a/none", "none"), 0);
	expect_event(watcher, "/w/a/none", "none");
	assert_int_equal(store_remove(writer, "/w"), 0);
	expect_event(watcher, "/w/a", "t");
	expect_event(watcher, "/w/a/b", "below");
	expect_no_event(watcher);
	/* No more after unwatch. */
	assert_int_equal(store_unwatch(watcher, "/w/a", "t"), 0);
	assert_int_equal(store_unwatch(watcher, "/w/a", "t"), -ENOENT);
	assert_int_equal(store_write_key(writer, "/w/a", "c", "1"), 0);
	expect_no_event(watcher);
	assert_int_equal(store_remove(writer, "/w"), 0);
	store_close(watcher);
	store_close(writer);
}

struct transaction_test {
	struct store *other;
	unsigned nr_runs;
};

static int transaction_body(struct store *store, void *arg)
{
	struct transaction_test *test = arg;
	char value[16];

	assert_int_equal(store_read(store, "/x/a", value, sizeof(value)), 0);
	assert_int_equal(store_write_key(store, "/x", "b", "from %s", value), 0);
	if (!test->nr_runs++) /* disturb the first try */
		assert_int_equal(store_write_key(test->other, "/x", "a", "2"), 0);
	return 0;
}

static int transaction_fails(struct store *store, void *arg)
{
	(void)arg;
	assert_int_equal(store_write_key(store, "/x", "never", "1"), 0);
	return -EXDEV;
}

static void test_transaction(void **state)
{
	struct store *store = store_of(0), *other = store_of(0);
	struct transaction_test test = {.other = other};
	char value[16];

	(void)state;
	assert_int_equal(store_write_key(other, "/x", "a", "1"), 0);
	assert_int_equal(store_watch(other, "/x/b", "t"), 0);
	expect_event(other, "/x/b", "t");
	assert_int_equal(store_transaction(store, transaction_body, &test), 0);
	assert_int_equal(test.nr_runs, 2);
	assert_int_equal(store_read(other, "/x/b", value, sizeof(value)), 0);
	assert_string_equal(value, "from 2");
	expect_event(other, "/x/b", "t"); /* once: the first try never happened */
	expect_no_event(other);
	assert_int_equal(store_transaction(store, transaction_fails, NULL), -EXDEV);
	assert_int_equal(store_read(other, "/x/never", value, sizeof(value)), -ENOENT);
	assert_int_equal(store_remove(store, "/x"), 0);
	store_close(store);
	store_close(other);
}

static void test_guest(void **state)
{
	struct store *guest = store_of(1), *dom0 = store_of(0);
	char value[64], path[64];

	(void)state;
	/* Relative paths are its home's. */
	assert_int_equal(store_read(guest, "domid", value, sizeof(value)), 0);
	assert_string_equal(value, "1");
	assert_int_equal(store_write_key(guest, "data", "k", "v"), 0);
	assert_int_equal(store_read(dom0, "/local/domain/1/data/k", value, sizeof(value)), 0);
	assert_int_equal(store_watch(guest, "data/k", "rel"), 0);
	expect_event(guest, "data/k", "rel");
	assert_int_equal(store_write_key(dom0, "/local/domain/1/data", "k", "w"), 0);
	expect_event(guest, "data/k", "rel");
	/* It does not see or touch what is not its own. */
	assert_int_equal(store_write_key(guest, "device", "k", "v"), -EACCES);
	assert_int_equal(store_read(guest, "/local/domain/2/data", value, sizeof(value)), -EACCES);
	assert_int_equal(store_read(guest, "/libxl/1/x", value, sizeof(value)), -EACCES);
	/* Nor by watching. */
	assert_int_equal(store_watch(guest, "/local/domain/0/secret", "s"), 0);
	expect_event(guest, "/local/domain/0/secret", "s");
	assert_int_equal(store_write_key(dom0, "/local/domain/0/secret", "k", "v"), 0);
	assert_int_equal(store_remove(dom0, "/local/domain/0/secret"), 0);
	expect_no_event(guest);
	/* Until it may. */
	assert_int_equal(store_mkdir(dom0, "/local/domain/0/secret"), 0);
	assert_int_equal(store_set_owner_reader(dom0, "/local/domain/0/secret", 0, 1), 0);
	expect_event(guest, "/local/domain/0/secret", "s");
	assert_int_equal(store_remove(dom0, "/local/domain/0/secret"), 0);
	expect_event(guest, "/local/domain/0/secret", "s");
	/* Quotas of watches. */
	for (unsigned i = 2; i < XENSTORED_QUOTA_WATCHES; i++) {
		snprintf(path, sizeof(path), "data/%u", i);
		assert_int_equal(store_watch(guest, path, "q"), 0);
	}
	assert_int_equal(store_watch(guest, "data/more", "q"), -E2BIG);
	assert_int_equal(store_remove(guest, "data/k"), 0);
	store_close(guest);
	store_close(dom0);
}

static void test_special_watches(void **state)
{
	struct store *dom0 = store_of(0), *guest = store_of(1);
	struct error error = {""};

	(void)state;
	assert_int_equal(store_watch(dom0, "@introduceDomain", "i"), 0);
	expect_event(dom0, "@introduceDomain", "i");
	assert_int_equal(store_watch(dom0, "@releaseDomain", "r"), 0);
	expect_event(dom0, "@releaseDomain", "r");
	assert_int_equal(store_watch(guest, "@releaseDomain", "r"), 0);
	expect_event(guest, "@releaseDomain", "r");
	assert_int_equal(toolstack_domain_create(host.toolstack, 9, false, &error), 0);
	expect_event(dom0, "@introduceDomain", "i");
	assert_int_equal(toolstack_domain_suspend(host.toolstack, 9, &error), 0);
	expect_event(dom0, "@releaseDomain", "r");
	assert_int_equal(toolstack_domain_destroy(host.toolstack, 9, false, 0, &error), 0);
	expect_event(dom0, "@releaseDomain", "r");
	expect_no_event(guest); /* guests may not know, unless permitted */
	store_close(dom0);
	store_close(guest);
}

static void test_destroyed_guest_is_disconnected(void **state)
{
	struct error error = {""};
	struct store *guest;
	char path[108], token[8];
	int got = 0;

	(void)state;
	assert_int_equal(toolstack_domain_create(host.toolstack, 9, false, &error), 0);
	guest = store_of(9);
	assert_int_equal(store_watch(guest, "data", "t"), 0);
	expect_event(guest, "data", "t");
	assert_int_equal(toolstack_domain_destroy(host.toolstack, 9, false, 0, &error), 0);
	/* First what happened to its nodes; then libxenstore's reader notices, a moment later. */
	for (unsigned tries = 0; tries < 5000; tries++) {
		got = store_next_event(guest, path, sizeof(path), token, sizeof(token));
		if (got < 0)
			break;
		if (!got)
			usleep(1000);
	}
	assert_int_equal(got, -ENOTCONN);
	store_close(guest);
	socket_path(9, path);
	assert_int_equal(access(path, F_OK), -1);
}

/* --- Raw --- */

static void test_errors_by_name(void **state)
{
	static const char long_path[XENSTORE_REL_PATH_MAX + 2] = {0};
	char path[XENSTORE_REL_PATH_MAX + 2];
	int dom0 = raw_open(0), guest = raw_open(1);

	(void)state;
	raw_expect(dom0, XS_READ, 0, TEXT("/none"), "ENOENT");
	raw_expect(dom0, XS_READ, 0, BYTES("/none"), "EINVAL"); /* no NUL */
	raw_expect(dom0, XS_READ, 0, TEXT("/tool\0/tool"), "EINVAL");
	raw_expect(dom0, XS_READ, 0, "", 0, "EINVAL");
	raw_expect(dom0, XS_READ, 0, TEXT(""), "EINVAL");
	raw_expect(dom0, XS_READ, 0, TEXT("//tool"), "EINVAL");
	raw_expect(dom0, XS_READ, 0, TEXT("/tool/"), "EINVAL");
	raw_expect(dom0, XS_READ, 0, TEXT("/to ol"), "EINVAL");
	raw_expect(dom0, XS_READ, 0, TEXT("@releaseDomain"), "EINVAL");
	raw_expect(dom0, XS_READ, 0, TEXT("/"), NULL);
	raw_expect(dom0, XS_RM, 0, TEXT("/"), "EINVAL");
	raw_expect(dom0, XS_RM, 0, TEXT("/none/none"), "ENOENT");
	raw_expect(dom0, XS_RM, 0, TEXT("/none"), NULL);
	raw_expect(dom0, XS_WRITE, 0, BYTES("/none"), "EINVAL");
	raw_expect(dom0, XS_READ, 5, TEXT("/tool"), "ENOENT"); /* no such transaction */
	raw_expect(dom0, XS_TRANSACTION_END, 5, TEXT("T"), "ENOENT");
	raw_expect(dom0, XS_TRANSACTION_END, 0, TEXT("X"), "EINVAL");
	raw_expect(dom0, 99, 0, TEXT("x"), "ENOSYS");
	raw_expect(dom0, XS_WATCH_EVENT, 0, TEXT("x"), "ENOSYS");
	raw_expect(dom0, XS_CONTROL, 0, TEXT("frobnicate"), "EINVAL");
	raw_expect(guest, XS_CONTROL, 0, TEXT("print\0x"), "EACCES");
	raw_expect(guest, XS_INTRODUCE, 0,
		   TEXT("3\0"
			"0\0"
			"0"),
		   "EACCES");
	raw_expect(guest, XS_RELEASE, 0, TEXT("2"), "EACCES");
	raw_expect(dom0, XS_IS_DOMAIN_INTRODUCED, 0, TEXT("x"), "EINVAL");
	raw_expect(dom0, XS_GET_DOMAIN_PATH, 0, TEXT("99999"), "EINVAL");
	raw_expect(dom0, XS_SET_PERMS, 0, TEXT("/tool\0x0"), "EINVAL");
	raw_expect(dom0, XS_SET_PERMS, 0, TEXT("/tool"), "EINVAL");
	raw_expect(guest, XS_SET_PERMS, 0, TEXT("data\0n0"), "EPERM");
	raw_expect(guest, XS_SET_PERMS, 0, TEXT("@releaseDomain\0n1"), "EACCES");
	raw_expect(guest, XS_SET_PERMS, 0, TEXT("data\0n1\0r0\0r2\0r3\0r4\0r5"), "ENOSPC");
	raw_expect(dom0, XS_UNWATCH, 0, TEXT("/none\0t"), "ENOENT");
	raw_expect(dom0, XS_DIRECTORY_PART, 0, TEXT("/tool\0-1"), "EINVAL");
	memcpy(path, long_path, sizeof(path));
	memset(path, 'x', sizeof(path) - 1);
	raw_expect(guest, XS_READ, 0, path, sizeof(path), "EINVAL"); /* relative, too long */
	close(dom0);
	close(guest);
}

static void test_introduce(void **state)
{
	int dom0 = raw_open(0);
	char reply[XENSTORE_PAYLOAD_MAX + 1];

	(void)state;
	raw_send(dom0, XS_IS_DOMAIN_INTRODUCED, 0, TEXT("30"));
	assert_int_equal(raw_receive(dom0, reply, NULL), XS_IS_DOMAIN_INTRODUCED);
	assert_string_equal(reply, "F");
	raw_expect(dom0, XS_INTRODUCE, 0,
		   TEXT("30\0"
			"1\0"
			"2"),
		   NULL);
	raw_send(dom0, XS_IS_DOMAIN_INTRODUCED, 0, TEXT("30"));
	assert_int_equal(raw_receive(dom0, reply, NULL), XS_IS_DOMAIN_INTRODUCED);
	assert_string_equal(reply, "T");
	close(raw_open(30));
	raw_expect(dom0, XS_RELEASE, 0, TEXT("30"), NULL);
	raw_expect(dom0, XS_RELEASE, 0, TEXT("30"), "ENOENT");
	close(dom0);
}

static void test_transaction_limits(void **state)
{
	int guest = raw_open(1);
	char reply[XENSTORE_PAYLOAD_MAX + 1];
	unsigned id = 0;

	(void)state;
	for (unsigned i = 0; i < XENSTORED_QUOTA_TRANSACTIONS; i++) {
		raw_send(guest, XS_TRANSACTION_START, 0, TEXT(""));
		assert_int_equal(raw_receive(guest, reply, NULL), XS_TRANSACTION_START);
		id = (unsigned)strtoul(reply, NULL, 10);
		assert_int_not_equal(id, 0);
	}
	raw_expect(guest, XS_TRANSACTION_START, 0, TEXT(""), "ENOSPC");
	raw_expect(guest, XS_TRANSACTION_START, id, TEXT(""), "EBUSY");
	raw_expect(guest, XS_RESET_WATCHES, 0, TEXT(""), NULL);
	raw_expect(guest, XS_TRANSACTION_END, id, TEXT("F"), "ENOENT");
	close(guest);
}

/* Bytes that end a connection, and no other one. */
static void test_malformed_closes_only_itself(void **state)
{
	struct xsd_sockmsg header = {.type = XS_READ, .len = XENSTORE_PAYLOAD_MAX + 1};
	int bystander = raw_open(1);
	char reply[XENSTORE_PAYLOAD_MAX + 1];
	uint32_t seed = 1;

	(void)state;
	for (unsigned domid = 0; domid < 2; domid++) {
		int fd = raw_open(domid);

		assert_int_equal(send(fd, &header, sizeof(header), MSG_NOSIGNAL), sizeof(header));
		assert_int_equal(raw_receive(fd, reply, NULL), -1);
		close(fd);
	}
	/* Half a message, then gone. */
	for (unsigned len = 1; len < 24; len += 5) {
		int fd = raw_open(1);
		char half[24] = {[0] = XS_WRITE, [12] = 100};

		assert_int_equal(send(fd, half, len, MSG_NOSIGNAL), len);
		close(fd);
	}
	/* Noise. */
	for (unsigned round = 0; round < 200; round++) {
		int fd = raw_open(1);
		uint32_t noise[300];

		for (unsigned i = 0; i < 300; i++) {
			seed = seed * 1664525 + 1013904223;
			noise[i] = seed >> 8;
		}
		/* Mostly plausible headers, so that the noise gets past them. */
		noise[0] = noise[0] % 24;
		noise[2] = 0;
		noise[3] = noise[3] % 1100;
		(void)!send(fd, noise, sizeof(noise), MSG_NOSIGNAL);
		shutdown(fd, SHUT_WR);
		while (recv(fd, noise, sizeof(noise), 0) > 0)
			;
		close(fd);
	}
	raw_expect(bystander, XS_READ, 0, TEXT("domid"), NULL);
	close(bystander);
}

/* A guest that asks and never reads: it is not served any more; events make it too much. */
static void test_slow_reader(void **state)
{
	int slow = raw_open(1);
	struct store *dom0 = store_of(0);
	char token[2000], reply[XENSTORE_PAYLOAD_MAX + 1];
	char watch[16 + sizeof(token)];
	int type;

	(void)state;
	memset(token, 't', sizeof(token) - 1);
	token[sizeof(token) - 1] = '\0';
	memcpy(watch, "data", 5);
	memcpy(watch + 5, token, sizeof(token));
	raw_expect(slow, XS_WATCH, 0, watch, 5 + sizeof(token), NULL);
	for (unsigned i = 0; i < 2000; i++)
		assert_int_equal(store_write_key(dom0, "/local/domain/1/data", "k", "%u", i), 0);
	assert_int_equal(test_host_count(&host, "watches"), 0); /* it is gone, with its watch */
	do
		type = raw_receive(slow, reply, NULL);
	while (type == XS_WATCH_EVENT);
	assert_int_equal(type, -1);
	close(slow);
	assert_int_equal(store_remove(dom0, "/local/domain/1/data/k"), 0);
	store_close(dom0);
}

/* Requests without end, answers read late: everything is answered, nothing is lost. */
static void test_pipelined_requests(void **state)
{
	enum { NR = 4000 };
	int fd = raw_open(1);
	char reply[XENSTORE_PAYLOAD_MAX + 1];
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (!pid) {
		for (unsigned i = 0; i < NR; i++)
			raw_send(fd, XS_GET_PERMS, 0, TEXT("data"));
		_exit(0);
	}
	poll(NULL, 0, 50); /* let it pile up */
	for (unsigned i = 0; i < NR; i++)
		assert_int_equal(raw_receive(fd, reply, NULL), XS_GET_PERMS);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test_setup_teardown(test_read_write_list, NULL, audit),
		cmocka_unit_test_setup_teardown(test_long_directory, NULL, audit),
		cmocka_unit_test_setup_teardown(test_watch, NULL, audit),
		cmocka_unit_test_setup_teardown(test_transaction, NULL, audit),
		cmocka_unit_test_setup_teardown(test_guest, NULL, audit),
		cmocka_unit_test_setup_teardown(test_special_watches, NULL, audit),
		cmocka_unit_test_setup_teardown(test_destroyed_guest_is_disconnected, NULL, audit),
		cmocka_unit_test_setup_teardown(test_errors_by_name, NULL, audit),
		cmocka_unit_test_setup_teardown(test_introduce, NULL, audit),
		cmocka_unit_test_setup_teardown(test_transaction_limits, NULL, audit),
		cmocka_unit_test_setup_teardown(test_malformed_closes_only_itself, NULL, audit),
		cmocka_unit_test_setup_teardown(test_slow_reader, NULL, audit),
		cmocka_unit_test_setup_teardown(test_pipelined_requests, NULL, audit),
	};

	return cmocka_run_group_tests(cases, start, stop);
}
