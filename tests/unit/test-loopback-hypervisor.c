// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Grants and event channels of the loopback host: two handles, two processes, races and deaths.
 *
 * Owns: a host in a child. Trusts: nothing. Runs on: the test. Must not know: the server's inside.
 */
#include "config.h"

#include "test-loopback-host.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "loopback/loopback-protocol.h"

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

/* Each case leaves nothing shared, mapped or bound. */
static int audit(void **state)
{
	(void)state;
	assert_int_equal(test_host_count(&host, "grants_shared"), 0);
	assert_int_equal(test_host_count(&host, "grants_mapped"), 0);
	assert_int_equal(test_host_count(&host, "ports_allocated"), 0);
	assert_int_equal(test_host_count(&host, "zombies"), 0);
	assert_int_equal(test_host_findings(&host), 0);
	return 0;
}

static struct xen_host *open_as(uint32_t domid)
{
	struct error error = {""};
	struct xen_host *xen;
	int err = xen_loopback_open(host.dir, domid, &xen, &error);

	if (err)
		fail_msg("%s", error.text);
	return xen;
}

static bool readable(struct xen_host *xen, int timeout_ms)
{
	struct pollfd ready = {.fd = xen->ops->poll_fd(xen), .events = POLLIN};

	return poll(&ready, 1, timeout_ms) == 1;
}

/* --- Grants --- */

static void test_share_map(void **state)
{
	struct xen_host *front = open_as(1), *back = open_as(0);
	uint32_t grefs[4], mixed[4];
	uint8_t *shared, *mapped;

	(void)state;
	assert_int_equal(front->ops->share(front, 0, 4, true, grefs, (void **)&shared), 0);
	for (unsigned i = 0; i < 4 * XEN_PAGE_SIZE; i++)
		assert_int_equal(shared[i], 0);
	for (unsigned i = 0; i < 4; i++)
		shared[i * XEN_PAGE_SIZE] = (uint8_t)('a' + i);
	/* Any order, even one twice, side by side. */
	mixed[0] = grefs[2];
	mixed[1] = grefs[3];
	mixed[2] = grefs[0];
	mixed[3] = grefs[2];
	assert_int_equal(back->ops->map(back, 1, mixed, 4, true, (void **)&mapped), 0);
	assert_int_equal(mapped[0], 'c');
	assert_int_equal(mapped[XEN_PAGE_SIZE], 'd');
	assert_int_equal(mapped[2 * XEN_PAGE_SIZE], 'a');
	mapped[3 * XEN_PAGE_SIZE + 1] = 'z';
	assert_int_equal(shared[2 * XEN_PAGE_SIZE + 1], 'z');
	assert_int_equal(test_host_count(&host, "grants_shared"), 4);
	assert_int_equal(test_host_count(&host, "grants_mapped"), 4);
	assert_int_equal(back->ops->unmap(back, mapped, 3), -EINVAL);
	assert_int_equal(back->ops->unmap(back, mapped, 4), 0);
	assert_int_equal(back->ops->unmap(back, mapped, 4), -EINVAL);
	assert_int_equal(front->ops->unshare(front, shared, 4), 0);
	/* Its next user finds zeros. */
	assert_int_equal(front->ops->share(front, 0, 4, true, grefs, (void **)&shared), 0);
	assert_int_equal(shared[2 * XEN_PAGE_SIZE + 1], 0);
	assert_int_equal(front->ops->unshare(front, shared, 4), 0);
	front->ops->close(front);
	back->ops->close(back);
}

static void test_map_refused(void **state)
{
	struct xen_host *front = open_as(1), *back = open_as(0), *other = open_as(2);
	uint32_t grefs[2], bad[2];
	void *shared, *mapped;

	(void)state;
	assert_int_equal(front->ops->share(front, 0, 2, false, grefs, &shared), 0);
	assert_int_equal(back->ops->map(back, 1, grefs, 2, true, &mapped), -EACCES); /* read-only */
	assert_int_equal(other->ops->map(other, 1, grefs, 2, false, &mapped),
			 -EACCES); /* not for it */
	bad[0] = grefs[0];
	bad[1] = grefs[1] + 1;
	assert_int_equal(back->ops->map(back, 1, bad, 2, false, &mapped),
			 -EINVAL); /* all or nothing */
	bad[1] = UINT32_MAX;
	assert_int_equal(back->ops->map(back, 1, bad, 2, false, &mapped), -EINVAL);
	assert_int_equal(back->ops->map(back, 1, bad, 0, false, &mapped), -EINVAL);
	assert_int_equal(back->ops->map(back, 3, grefs, 2, false, &mapped), -ESRCH);
	assert_int_equal(test_host_count(&host, "grants_mapped"), 0);
	assert_int_equal(back->ops->map(back, 1, grefs, 2, false, &mapped), 0);
	assert_int_equal(back->ops->unmap(back, mapped, 2), 0);
	front->ops->close(front);
	back->ops->close(back);
	other->ops->close(other);
}

/* A revoked grant stays mapped where it is mapped, and its page is nobody else's until then. */
static void test_revoke_while_mapped(void **state)
{
	struct xen_host *front = open_as(1), *back = open_as(0);
	uint32_t gref, again[8];
	uint8_t *shared, *mapped, *next;

	(void)state;
	assert_int_equal(front->ops->share(front, 0, 1, true, &gref, (void **)&shared), 0);
	shared[0] = 'x';
	assert_int_equal(back->ops->map(back, 1, &gref, 1, true, (void **)&mapped), 0);
	assert_int_equal(front->ops->unshare(front, shared, 1), 0);
	assert_int_equal(front->ops->share(front, 0, 8, true, again, (void **)&next), 0);
	for (unsigned i = 0; i < 8; i++)
		assert_int_not_equal(again[i], gref);
	memset(next, 'y', 8 * XEN_PAGE_SIZE);
	assert_int_equal(mapped[0], 'x');
	assert_int_equal(back->ops->unmap(back, mapped, 1), 0);
	front->ops->close(front);
	back->ops->close(back);
}

static void test_copy(void **state)
{
	struct xen_host *front = open_as(1), *back = open_as(0);
	uint32_t rw, ro;
	uint8_t *rw_page, *ro_page, local[XEN_PAGE_SIZE] = {0};
	struct xen_copy pieces[5];

	(void)state;
	assert_int_equal(front->ops->share(front, 0, 1, true, &rw, (void **)&rw_page), 0);
	assert_int_equal(front->ops->share(front, 0, 1, false, &ro, (void **)&ro_page), 0);
	assert_int_equal(back->ops->copy_reserve(back, 5), 0);
	strcpy((char *)rw_page + 100, "hello");
	strcpy((char *)ro_page, "world");
	pieces[0] = (struct xen_copy){local, rw, 100, 6, -1};
	pieces[1] = (struct xen_copy){local + 8, ro, 0, 6, -1};
	pieces[2] = (struct xen_copy){local, ro + 1, 0, 6, -1}; /* no such grant */
	pieces[3] = (struct xen_copy){local, UINT32_MAX, 0, 6, -1};
	pieces[4] = (struct xen_copy){local, rw, 4095, 2, -1}; /* over the page */
	assert_int_equal(back->ops->copy(back, 1, XEN_COPY_FROM_PEER, pieces, 5), 0);
	assert_int_equal(pieces[0].status, 0);
	assert_int_equal(pieces[1].status, 0);
	assert_int_equal(pieces[2].status, -EINVAL);
	assert_int_equal(pieces[3].status, -EINVAL);
	assert_int_equal(pieces[4].status, -EINVAL);
	assert_string_equal((char *)local, "hello");
	assert_string_equal((char *)local + 8, "world");

	memset(local, 'w', sizeof(local));
	pieces[0] = (struct xen_copy){local, rw, 0, XEN_PAGE_SIZE, -1};
	pieces[1] = (struct xen_copy){local, ro, 0, 6, -1};
	assert_int_equal(back->ops->copy(back, 1, XEN_COPY_TO_PEER, pieces, 2), 0);
	assert_int_equal(pieces[0].status, 0);
	assert_int_equal(pieces[1].status, -EACCES);
	assert_int_equal(rw_page[XEN_PAGE_SIZE - 1], 'w');
	assert_string_equal((char *)ro_page, "world");

	/* Revoked between two copies. */
	assert_int_equal(front->ops->unshare(front, rw_page, 1), 0);
	assert_int_equal(back->ops->copy(back, 1, XEN_COPY_TO_PEER, pieces, 1), 0);
	assert_int_equal(pieces[0].status, -EINVAL);
	/* No such domain. */
	assert_int_equal(back->ops->copy(back, 3, XEN_COPY_TO_PEER, pieces, 1), 0);
	assert_int_equal(pieces[0].status, -ESRCH);
	front->ops->close(front);
	back->ops->close(back);
}

/* Domain 0 as its own frontend, as with xl block-attach 0. */
static void test_same_domain(void **state)
{
	struct xen_host *front = open_as(0), *back = open_as(0);
	uint32_t gref, port, bound, fired;
	uint8_t *shared, *mapped;

	(void)state;
	assert_int_equal(front->ops->share(front, 0, 1, true, &gref, (void **)&shared), 0);
	assert_int_equal(front->ops->alloc_unbound(front, 0, &port), 0);
	assert_int_equal(back->ops->map(back, 0, &gref, 1, true, (void **)&mapped), 0);
	assert_int_equal(back->ops->bind(back, 0, port, &bound), 0);
	assert_int_equal(back->ops->notify(back, bound), 0);
	assert_true(readable(front, 0));
	assert_int_equal(front->ops->pending(front, &fired), 0);
	assert_int_equal(fired, port);
	front->ops->close(front);
	back->ops->close(back);
}

static void test_refuse_grant(void **state)
{
	struct xen_host *front = open_as(1), *back = open_as(0);
	struct error error = {""};
	uint32_t grefs[2];
	uint8_t local[4] = {0};
	void *shared, *mapped;
	struct xen_copy pieces[5];

	(void)state;
	assert_int_equal(front->ops->share(front, 0, 2, true, grefs, &shared), 0);
	assert_int_equal(toolstack_refuse_grant(host.toolstack, 3, 2, &error), 0);
	for (unsigned i = 0; i < 5; i++)
		pieces[i] = (struct xen_copy){local, grefs[0], 0, 4, -1};
	assert_int_equal(back->ops->copy(back, 1, XEN_COPY_FROM_PEER, pieces, 5), 0);
	assert_int_equal(pieces[1].status, 0);
	assert_int_equal(pieces[2].status, -EACCES);
	assert_int_equal(pieces[3].status, -EACCES);
	assert_int_equal(pieces[4].status, 0);
	assert_int_equal(toolstack_refuse_grant(host.toolstack, 2, 1, &error), 0);
	assert_int_equal(back->ops->map(back, 1, grefs, 2, true, &mapped), -EACCES);
	assert_int_equal(back->ops->map(back, 1, grefs, 2, true, &mapped), 0);
	front->ops->close(front);
	back->ops->close(back);
}

static void test_grants_run_out(void **state)
{
	struct xen_host *front = open_as(1);
	uint32_t *grefs = calloc(LOOPBACK_NR_GREFS, sizeof(*grefs));
	void *all, *more;

	(void)state;
	assert_int_equal(front->ops->share(front, 0, LOOPBACK_NR_GREFS, true, grefs, &all),
			 -ENOSPC);
	assert_int_equal(front->ops->share(front, 0, LOOPBACK_NR_GREFS - LOOPBACK_FIRST_GREF, true,
					   grefs, &all),
			 0);
	assert_int_equal(front->ops->share(front, 0, 1, true, grefs, &more), -ENOSPC);
	assert_int_equal(front->ops->unshare(front, all, LOOPBACK_NR_GREFS - LOOPBACK_FIRST_GREF),
			 0);
	assert_int_equal(front->ops->share(front, 0, 0, true, grefs, &more), -EINVAL);
	free(grefs);
	front->ops->close(front);
}

/* --- Events --- */

static void test_event_states(void **state)
{
	struct xen_host *front = open_as(1), *back = open_as(0), *other = open_as(2);
	uint32_t port, bound, fired, ignored;

	(void)state;
	assert_int_equal(front->ops->alloc_unbound(front, 0, &port), 0);
	assert_int_equal(front->ops->notify(front, port), 0); /* dropped: nobody is there */
	assert_int_equal(front->ops->pending(front, &fired), -EAGAIN);
	assert_int_equal(other->ops->bind(other, 1, port, &ignored), -EINVAL); /* reserved for 0 */
	assert_int_equal(back->ops->bind(back, 2, port, &ignored), -EINVAL);   /* not 2's port */
	assert_int_equal(back->ops->bind(back, 1, 4000000, &ignored), -EINVAL);
	assert_int_equal(back->ops->bind(back, 3, port, &ignored), -ESRCH);
	assert_int_equal(back->ops->bind(back, 1, port, &bound), 0);
	assert_int_equal(back->ops->bind(back, 1, port, &ignored), -EINVAL); /* once only */

	/* Pending once after the bind; masked by taking it. */
	assert_true(readable(back, 0));
	assert_int_equal(back->ops->pending(back, &fired), 0);
	assert_int_equal(fired, bound);
	assert_int_equal(back->ops->pending(back, &fired), -EAGAIN);
	assert_false(readable(back, 0));
	assert_int_equal(front->ops->notify(front, port), 0);
	assert_false(readable(back, 0)); /* masked */
	assert_int_equal(back->ops->unmask(back, bound), 0);
	assert_true(readable(back, 0)); /* not forgotten */
	assert_int_equal(back->ops->pending(back, &fired), 0);
	assert_int_equal(back->ops->unmask(back, bound), 0);
	assert_int_equal(back->ops->pending(back, &fired), -EAGAIN);

	/* Several notifications are one event. */
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(front->ops->notify(front, port), 0);
	assert_int_equal(back->ops->pending(back, &fired), 0);
	assert_int_equal(back->ops->unmask(back, bound), 0);
	assert_int_equal(back->ops->pending(back, &fired), -EAGAIN);

	/* Back to unbound, and bound again. */
	assert_int_equal(back->ops->unbind(back, bound), 0);
	assert_int_equal(back->ops->unbind(back, bound), -EINVAL);
	assert_int_equal(back->ops->notify(back, bound), -EINVAL);
	assert_int_equal(front->ops->notify(front, port), 0);
	assert_int_equal(back->ops->bind(back, 1, port, &bound), 0);
	assert_int_equal(back->ops->pending(back, &fired), 0);
	assert_int_equal(fired, bound);
	assert_int_equal(back->ops->notify(back, bound), 0);
	assert_true(readable(front, 0));
	assert_int_equal(front->ops->pending(front, &fired), 0);
	assert_int_equal(fired, port);
	front->ops->close(front);
	back->ops->close(back);
	other->ops->close(other);
}

/* All ports get their turn, and the descriptor stays readable until the last is taken. */
static void test_many_ports(void **state)
{
	enum { NR = 20 };
	struct xen_host *front = open_as(1), *back = open_as(0);
	uint32_t ports[NR], bound[NR], fired;
	unsigned nr_seen[LOOPBACK_NR_PORTS] = {0};

	(void)state;
	for (unsigned i = 0; i < NR; i++) {
		assert_int_equal(front->ops->alloc_unbound(front, 0, &ports[i]), 0);
		assert_int_equal(back->ops->bind(back, 1, ports[i], &bound[i]), 0);
	}
	for (unsigned i = 0; i < 3 * NR; i++) {
		assert_true(readable(back, 0));
		assert_int_equal(back->ops->pending(back, &fired), 0);
		nr_seen[fired]++;
		assert_int_equal(back->ops->unmask(back, fired), 0);
		/* One that is always busy again at once. */
		for (unsigned j = 0; j < NR; j++)
			if (bound[j] == fired)
				assert_int_equal(front->ops->notify(front, ports[j]), 0);
	}
	for (unsigned i = 0; i < NR; i++)
		assert_int_equal(nr_seen[bound[i]], 3);
	front->ops->close(front);
	back->ops->close(back);
}

/* Descriptors of this process, without the standard ones. */
static unsigned count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned nr = 0;

	assert_non_null(dir);
	while (readdir(dir))
		nr++;
	closedir(dir);
	return nr;
}

/* What a handle costs, and that nothing leaks over many lives. */
static void test_descriptors(void **state)
{
	unsigned nr_before = count_fds();
	struct xen_host *front, *back;
	uint32_t port, bound, gref, fired;
	uint8_t local[8];
	struct xen_copy piece;
	void *shared, *mapped;

	(void)state;
	for (unsigned round = 0; round < 500; round++) {
		front = open_as(1);
		back = open_as(0);
		assert_int_equal(front->ops->share(front, 0, 1, true, &gref, &shared), 0);
		assert_int_equal(front->ops->alloc_unbound(front, 0, &port), 0);
		assert_int_equal(back->ops->map(back, 1, &gref, 1, true, &mapped), 0);
		piece = (struct xen_copy){local, gref, 0, sizeof(local), -1};
		assert_int_equal(back->ops->copy(back, 1, XEN_COPY_FROM_PEER, &piece, 1), 0);
		assert_int_equal(piece.status, 0);
		assert_int_equal(back->ops->bind(back, 1, port, &bound), 0);
		assert_int_equal(back->ops->notify(back, bound), 0);
		assert_int_equal(front->ops->pending(front, &fired), 0);
		if (!round) /* two handles: a socket, an eventfd each, and the peer's eventfd */
			assert_int_equal(count_fds() - nr_before, 5);
		front->ops->close(front);
		back->ops->close(back);
	}
	assert_int_equal(count_fds(), nr_before);
}

/* --- Two processes --- */

/* A frontend in a process of its own, which shares a page and offers a port. It hands both over by
 * a pipe, and then does @body. */
struct peer {
	pid_t pid;
	uint32_t gref, port;
};

static void peer_start(struct peer *peer,
		       void (*body)(struct xen_host *xen, uint32_t port, uint8_t *page))
{
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	peer->pid = fork();
	assert_true(peer->pid >= 0);
	if (!peer->pid) {
		struct xen_host *front;
		uint8_t *page;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (xen_loopback_open(host.dir, 1, &front, NULL) ||
		    front->ops->share(front, 0, 1, true, &peer->gref, (void **)&page) ||
		    front->ops->alloc_unbound(front, 0, &peer->port) ||
		    write(ends[1], &peer->gref, sizeof(uint32_t)) != sizeof(uint32_t) ||
		    write(ends[1], &peer->port, sizeof(uint32_t)) != sizeof(uint32_t))
			_exit(1);
		body(front, peer->port, page);
		front->ops->close(front);
		_exit(0);
	}
	assert_int_equal(read(ends[0], &peer->gref, sizeof(uint32_t)), sizeof(uint32_t));
	assert_int_equal(read(ends[0], &peer->port, sizeof(uint32_t)), sizeof(uint32_t));
	close(ends[0]);
	close(ends[1]);
}

#define STRESS_ROUNDS 100000u

/* Two counters in the shared page: each side bumps its own, tells the other, and waits for its
 * answer by events alone. A lost wake-up is a poll() that times out. */
static int ping_pong(struct xen_host *xen, uint32_t port, _Atomic uint32_t *own,
		     _Atomic uint32_t *other, bool begin)
{
	uint32_t done = 0, fired;

	if (begin) {
		atomic_store(own, 1);
		if (xen->ops->notify(xen, port))
			return 1;
	}
	while (done < STRESS_ROUNDS) {
		if (!readable(xen, 5000))
			return 2; /* lost */
		while (!xen->ops->pending(xen, &fired)) {
			uint32_t seen;

			xen->ops->unmask(xen, fired);
			while (seen = atomic_load(other), seen > done) {
				done = seen;
				atomic_store(own, done + begin);
				if (xen->ops->notify(xen, port))
					return 3;
			}
		}
	}
	return 0;
}

static void peer_ping_pong(struct xen_host *xen, uint32_t port, uint8_t *page)
{
	_Atomic uint32_t *counters = (_Atomic uint32_t *)page;
	int err = ping_pong(xen, port, &counters[16], &counters[0], false);

	if (err)
		_exit(err);
}

static void test_no_lost_wakeup(void **state)
{
	struct xen_host *back = open_as(0);
	_Atomic uint32_t *counters;
	struct peer peer;
	uint32_t bound;
	int status;

	(void)state;
	peer_start(&peer, peer_ping_pong);
	assert_int_equal(back->ops->map(back, 1, &peer.gref, 1, true, (void **)&counters), 0);
	assert_int_equal(back->ops->bind(back, 1, peer.port, &bound), 0);
	assert_int_equal(ping_pong(back, bound, &counters[0], &counters[16], true), 0);
	assert_int_equal(waitpid(peer.pid, &status, 0), peer.pid);
	assert_int_equal(status, 0);
	back->ops->close(back);
}

/* A producer that never waits: the consumer may sleep at any moment, and must see the last count.
 */
static void peer_produce(struct xen_host *xen, uint32_t port, uint8_t *page)
{
	_Atomic uint32_t *counters = (_Atomic uint32_t *)page;

	while (!atomic_load(&counters[16])) /* until the consumer has bound */
		poll(NULL, 0, 1);
	for (uint32_t i = 1; i <= STRESS_ROUNDS; i++) {
		atomic_store(&counters[0], i);
		if (xen->ops->notify(xen, port))
			_exit(1);
	}
	while (atomic_load(&counters[16]) != STRESS_ROUNDS + 1)
		poll(NULL, 0, 1);
}

static void test_last_event_arrives(void **state)
{
	struct xen_host *back = open_as(0);
	_Atomic uint32_t *counters;
	struct peer peer;
	uint32_t bound, fired, seen = 0;
	int status;

	(void)state;
	peer_start(&peer, peer_produce);
	assert_int_equal(back->ops->map(back, 1, &peer.gref, 1, true, (void **)&counters), 0);
	assert_int_equal(back->ops->bind(back, 1, peer.port, &bound), 0);
	atomic_store(&counters[16], 1);
	while (seen < STRESS_ROUNDS) {
		if (!readable(back, 5000))
			fail_msg("wake-up lost after %u", seen);
		if (back->ops->pending(back, &fired))
			continue;
		back->ops->unmask(back, fired);
		seen = atomic_load(&counters[0]);
	}
	atomic_store(&counters[16], STRESS_ROUNDS + 1);
	assert_int_equal(waitpid(peer.pid, &status, 0), peer.pid);
	assert_int_equal(status, 0);
	back->ops->close(back);
}

static void peer_sleep(struct xen_host *xen, uint32_t port, uint8_t *page)
{
	(void)xen;
	(void)port;
	memcpy(page, "alive", 6);
	for (;;)
		pause();
}

static void peer_kill(struct peer *peer)
{
	assert_int_equal(kill(peer->pid, SIGKILL), 0);
	assert_int_equal(waitpid(peer->pid, NULL, 0), peer->pid);
}

static void test_killed_frontend(void **state)
{
	struct xen_host *back = open_as(0);
	struct peer peer;
	uint32_t bound;
	uint8_t local[6];
	struct xen_copy piece = {local, 0, 0, sizeof(local), -1};
	void *mapped, *again;

	(void)state;
	peer_start(&peer, peer_sleep);
	piece.gref = peer.gref;
	assert_int_equal(back->ops->map(back, 1, &peer.gref, 1, true, &mapped), 0);
	assert_int_equal(back->ops->bind(back, 1, peer.port, &bound), 0);
	assert_int_equal(back->ops->copy(back, 1, XEN_COPY_FROM_PEER, &piece, 1), 0);
	assert_int_equal(piece.status, 0);
	peer_kill(&peer);
	/* What it shared is gone; what we have mapped is ours until we let go. */
	assert_int_equal(test_host_count(&host, "grants_shared"), 0);
	assert_int_equal(test_host_count(&host, "grants_mapped"), 1);
	assert_int_equal(test_host_count(&host, "ports_bound"), 0);
	assert_int_equal(back->ops->copy(back, 1, XEN_COPY_FROM_PEER, &piece, 1), 0);
	assert_int_equal(piece.status, -EINVAL);
	assert_int_equal(back->ops->map(back, 1, &peer.gref, 1, true, &again), -EINVAL);
	memset(mapped, 'x', XEN_PAGE_SIZE);
	assert_int_equal(back->ops->notify(back, bound), 0); /* to nobody */
	assert_int_equal(back->ops->unmap(back, mapped, 1), 0);
	back->ops->close(back);
}

/* A backend that is killed leaves the frontend's port and grants ready for its successor. */
static void test_killed_backend(void **state)
{
	struct xen_host *front = open_as(1), *back;
	uint32_t gref, port, bound, fired;
	void *shared, *mapped;
	int ends[2];
	char byte;
	pid_t pid;

	(void)state;
	assert_int_equal(front->ops->share(front, 0, 1, true, &gref, &shared), 0);
	assert_int_equal(front->ops->alloc_unbound(front, 0, &port), 0);
	assert_int_equal(pipe(ends), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (xen_loopback_open(host.dir, 0, &back, NULL) ||
		    back->ops->map(back, 1, &gref, 1, true, &mapped) ||
		    back->ops->bind(back, 1, port, &bound) || write(ends[1], "r", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ends[0], &byte, 1), 1);
	close(ends[0]);
	close(ends[1]);
	assert_int_equal(front->ops->notify(front, port), 0);
	assert_int_equal(test_host_count(&host, "ports_bound"), 2);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(test_host_count(&host, "ports_bound"), 0);
	assert_int_equal(test_host_count(&host, "grants_mapped"), 0);
	assert_int_equal(test_host_count(&host, "ports_allocated"), 1);

	back = open_as(0);
	assert_int_equal(back->ops->map(back, 1, &gref, 1, true, &mapped), 0);
	assert_int_equal(back->ops->bind(back, 1, port, &bound), 0);
	assert_int_equal(back->ops->pending(back, &fired), 0);
	assert_int_equal(back->ops->unmask(back, bound), 0);
	assert_int_equal(front->ops->notify(front, port), 0);
	assert_true(readable(back, 0));
	assert_int_equal(back->ops->notify(back, bound), 0);
	assert_true(readable(front, 0));
	front->ops->close(front);
	back->ops->close(back);
}

/* --- Domains --- */

static enum xen_domain_state state_of(uint32_t domid)
{
	enum xen_domain_state state = XEN_DOMAIN_DEAD;
	struct xen_domains *domains;

	assert_int_equal(xen_loopback_domains_open(host.dir, &domains, NULL), 0);
	assert_int_equal(domains->ops->state(domains, domid, &state), 0);
	domains->ops->close(domains);
	return state;
}

static void test_domain_death(void **state)
{
	struct error error = {""};
	struct xen_host *front, *back = open_as(0);
	uint32_t gref, new_gref, port, bound;
	uint8_t local[4] = {0};
	struct xen_copy piece = {local, 0, 0, sizeof(local), -1};
	void *shared, *mapped;

	(void)state;
	assert_int_equal(xen_loopback_open(host.dir, 5, &front, &error), -ESRCH);
	assert_non_null(strstr(error.text, "domain-create"));
	assert_int_equal(state_of(5), XEN_DOMAIN_DEAD);
	assert_int_equal(toolstack_domain_create(host.toolstack, 5, false, &error), 0);
	assert_int_equal(toolstack_domain_create(host.toolstack, 5, false, &error), -EEXIST);
	assert_int_equal(state_of(5), XEN_DOMAIN_RUNNING);
	assert_int_equal(toolstack_domain_suspend(host.toolstack, 5, &error), 0);
	assert_int_equal(state_of(5), XEN_DOMAIN_SUSPENDED);
	assert_int_equal(toolstack_domain_resume(host.toolstack, 5, &error), 0);
	assert_int_equal(state_of(5), XEN_DOMAIN_RUNNING);

	front = open_as(5);
	assert_int_equal(front->ops->share(front, 0, 1, true, &gref, &shared), 0);
	assert_int_equal(front->ops->alloc_unbound(front, 0, &port), 0);
	assert_int_equal(back->ops->map(back, 5, &gref, 1, true, &mapped), 0);
	assert_int_equal(back->ops->bind(back, 5, port, &bound), 0);
	piece.gref = gref;
	assert_int_equal(back->ops->copy(back, 5, XEN_COPY_FROM_PEER, &piece, 1), 0);
	assert_int_equal(piece.status, 0);

	assert_int_equal(toolstack_domain_destroy(host.toolstack, 5, false, 0, &error), 0);
	assert_int_equal(state_of(5), XEN_DOMAIN_DEAD);
	assert_int_equal(back->ops->copy(back, 5, XEN_COPY_FROM_PEER, &piece, 1), 0);
	assert_int_equal(piece.status, -ESRCH);
	memset(mapped, 'x', XEN_PAGE_SIZE); /* a zombie's page is still there */
	assert_int_equal(back->ops->notify(back, bound), 0);
	assert_int_equal(front->ops->share(front, 0, 1, true, &new_gref, &shared), -ENOTCONN);
	front->ops->close(front);
	assert_int_equal(test_host_count(&host, "zombies"), 1);
	assert_int_equal(toolstack_domain_create(host.toolstack, 5, false, &error), -EBUSY);
	assert_int_equal(back->ops->unmap(back, mapped, 1), 0);
	assert_int_equal(test_host_count(&host, "zombies"), 0);

	/* The number again, with other memory: the old view is not used. */
	assert_int_equal(toolstack_domain_create(host.toolstack, 5, false, &error), 0);
	front = open_as(5);
	assert_int_equal(front->ops->share(front, 0, 1, true, &new_gref, &shared), 0);
	memcpy(shared, "new", 4);
	piece.gref = new_gref;
	assert_int_equal(back->ops->copy(back, 5, XEN_COPY_FROM_PEER, &piece, 1), 0);
	assert_int_equal(piece.status, 0);
	assert_string_equal((char *)local, "new");
	front->ops->close(front);
	assert_int_equal(toolstack_domain_destroy(host.toolstack, 5, false, 0, &error), 0);
	assert_int_equal(toolstack_domain_destroy(host.toolstack, 0, false, 0, &error), -EPERM);
	back->ops->close(back);
}

/* --- Hostile clients --- */

static void test_memory_cannot_shrink(void **state)
{
	struct loopback_request request = {.operation = LOOPBACK_ARENA, .domid = 1};
	struct loopback_reply reply;
	int fds[LOOPBACK_FDS_MAX], socket_fd = loopback_hello(host.dir, 1, false, fds, NULL);

	(void)state;
	assert_true(socket_fd >= 0);
	assert_int_equal(loopback_call(socket_fd, &request, &reply, fds), 0);
	assert_int_equal(ftruncate(fds[0], 0), -1);
	assert_int_equal(errno, EPERM);
	close(fds[0]);
	close(socket_fd);
}

static void test_hostile_calls(void **state)
{
	static const struct loopback_request rows[] = {
		{.operation = 0},
		{.operation = 1000},
		{.operation = LOOPBACK_HELLO}, /* twice */
		{.operation = LOOPBACK_UNMAP, .id = 1},
		{.operation = LOOPBACK_UNSHARE, .id = 1},
		{.operation = LOOPBACK_UNBIND, .id = UINT32_MAX},
		{.operation = LOOPBACK_UNBIND, .id = 0},
		{.operation = LOOPBACK_PORT_PEER, .id = UINT32_MAX},
		{.operation = LOOPBACK_SHARE, .domid = 0, .nr = UINT32_MAX},
		{.operation = LOOPBACK_SHARE, .domid = UINT32_MAX, .nr = 1},
		{.operation = LOOPBACK_ALLOC_UNBOUND, .domid = UINT32_MAX},
		{.operation = LOOPBACK_ALLOC_UNBOUND, .domid = 0}, /* without events */
		{.operation = LOOPBACK_BIND, .domid = 0, .id = UINT32_MAX},
		{.operation = LOOPBACK_DOMAIN_CREATE, .domid = 8}, /* not domain 0 */
		{.operation = LOOPBACK_DOMAIN_DESTROY, .domid = 2},
		{.operation = LOOPBACK_REFUSE_GRANT, .id = UINT32_MAX, .nr = 1},
	};
	struct loopback_reply reply;
	char noise[64];
	int fds[LOOPBACK_FDS_MAX], socket_fd = loopback_hello(host.dir, 1, false, fds, NULL);

	(void)state;
	assert_true(socket_fd >= 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (loopback_call(socket_fd, &rows[i], &reply, fds) >= 0)
			fail_msg("row %zu was accepted", i);
	close(socket_fd);
	/* Packets of odd sizes end their connection only. */
	for (size_t len = 1; len < sizeof(noise); len += 7) {
		socket_fd = loopback_hello(host.dir, 1, false, fds, NULL);
		assert_true(socket_fd >= 0);
		memset(noise, LOOPBACK_MAP, sizeof(noise));
		assert_int_equal(send(socket_fd, noise, len, 0), len);
		assert_true(recv(socket_fd, noise, sizeof(noise), 0) >= 0 || errno == ECONNRESET);
		close(socket_fd);
	}
	socket_fd = loopback_hello(host.dir, 1, false, fds, NULL);
	assert_true(socket_fd >= 0);
	close(socket_fd);
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test_setup_teardown(test_share_map, NULL, audit),
		cmocka_unit_test_setup_teardown(test_map_refused, NULL, audit),
		cmocka_unit_test_setup_teardown(test_revoke_while_mapped, NULL, audit),
		cmocka_unit_test_setup_teardown(test_copy, NULL, audit),
		cmocka_unit_test_setup_teardown(test_same_domain, NULL, audit),
		cmocka_unit_test_setup_teardown(test_refuse_grant, NULL, audit),
		cmocka_unit_test_setup_teardown(test_grants_run_out, NULL, audit),
		cmocka_unit_test_setup_teardown(test_event_states, NULL, audit),
		cmocka_unit_test_setup_teardown(test_many_ports, NULL, audit),
		cmocka_unit_test_setup_teardown(test_descriptors, NULL, audit),
		cmocka_unit_test_setup_teardown(test_no_lost_wakeup, NULL, audit),
		cmocka_unit_test_setup_teardown(test_last_event_arrives, NULL, audit),
		cmocka_unit_test_setup_teardown(test_killed_frontend, NULL, audit),
		cmocka_unit_test_setup_teardown(test_killed_backend, NULL, audit),
		cmocka_unit_test_setup_teardown(test_domain_death, NULL, audit),
		cmocka_unit_test_setup_teardown(test_memory_cannot_shrink, NULL, audit),
		cmocka_unit_test_setup_teardown(test_hostile_calls, NULL, audit),
	};

	return cmocka_run_group_tests(cases, start, stop);
}
