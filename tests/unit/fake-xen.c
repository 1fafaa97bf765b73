// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A Xen host inside the test.
 *
 * Owns: the arena, and the checks that hold for every use of xen-ops.h (pieces within a page, no more of
 *   them than reserved, everything released once). Trusts: the test. Runs on: the test.
 * Must not know: rings.
 */
#include "config.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "container.h"
#include "tests/unit/fake-xen.h"
#include "tests/unit/unit.h"

static struct fake_xen *to_fake(struct xen_host *host)
{
	return container_of(host, struct fake_xen, host);
}

uint8_t *fake_page(struct fake_xen *fake, uint32_t gref)
{
	assert_true(gref < FAKE_PAGES);
	return fake->pages + (size_t)gref * XEN_PAGE_SIZE;
}

static int fake_map(struct xen_host *host, uint32_t domid, const uint32_t *grefs, unsigned nr,
		    bool writable, void **addr_out)
{
	struct fake_xen *fake = to_fake(host);

	assert_int_equal(domid, FAKE_DOMID);
	assert_true(writable);
	if (++fake->nr_map_calls == fake->fail_map)
		return -ENOSPC;
	if (fake->map_error)
		return fake->map_error;
	for (unsigned i = 0; i < nr; i++) {
		if (grefs[i] >= FAKE_PAGES || fake->revoked[grefs[i]])
			return -EINVAL;
		assert_int_equal(grefs[i], grefs[0] + i); /* all that an arena can map */
	}
	for (unsigned i = 0; i < nr; i++)
		fake->nr_maps[grefs[i]]++;
	fake->nr_mapped += nr;
	*addr_out = fake_page(fake, grefs[0]);
	return 0;
}

static int fake_unmap(struct xen_host *host, void *addr, unsigned nr)
{
	struct fake_xen *fake = to_fake(host);

	size_t first = (size_t)((uint8_t *)addr - fake->pages) / XEN_PAGE_SIZE;

	fake->nr_unmap_calls++;
	assert_true(first + nr <= FAKE_PAGES);
	for (unsigned i = 0; i < nr; i++) {
		assert_true(fake->nr_maps[first + i] > 0);
		fake->nr_maps[first + i]--;
	}
	fake->nr_mapped -= nr;
	return fake->unmap_error;
}

static int fake_copy_reserve(struct xen_host *host, unsigned nr_max)
{
	struct fake_xen *fake = to_fake(host);

	if (fake->reserve_error)
		return fake->reserve_error;
	fake->nr_reserved = nr_max;
	return 0;
}

static int piece_copy(struct fake_xen *fake, enum xen_copy_direction direction,
		      const struct xen_copy *piece)
{
	uint8_t *peer;

	assert_true(piece->offset_bytes + piece->len_bytes <= XEN_PAGE_SIZE);
	assert_true(piece->len_bytes > 0);
	/* gntdev cuts at page borders of the local side; one piece must stay one. */
	assert_int_equal((uintptr_t)piece->local % XEN_PAGE_SIZE, piece->offset_bytes);
	if (++fake->nr_pieces == fake->fail_piece)
		return -EIO;
	if (piece->gref >= FAKE_PAGES || fake->revoked[piece->gref])
		return -EINVAL;
	peer = fake_page(fake, piece->gref) + piece->offset_bytes;
	if (direction == XEN_COPY_FROM_PEER)
		memcpy(piece->local, peer, piece->len_bytes);
	else
		memcpy(peer, piece->local, piece->len_bytes);
	if (fake->after_piece && direction == XEN_COPY_FROM_PEER)
		fake->after_piece(fake, piece);
	return 0;
}

static int fake_copy(struct xen_host *host, uint32_t domid, enum xen_copy_direction direction,
		     struct xen_copy *pieces, unsigned nr)
{
	struct fake_xen *fake = to_fake(host);

	assert_int_equal(domid, FAKE_DOMID);
	assert_true(nr > 0 && nr <= fake->nr_reserved);
	fake->nr_copy_calls++;
	if (fake->leave_status)
		return 0;
	for (unsigned i = 0; i < nr; i++)
		pieces[i].status = fake->copy_error ? fake->copy_error
						    : piece_copy(fake, direction, &pieces[i]);
	return fake->copy_error;
}

static int fake_bind(struct xen_host *host, uint32_t domid, uint32_t remote_port,
		     uint32_t *port_out)
{
	struct fake_xen *fake = to_fake(host);

	assert_int_equal(domid, FAKE_DOMID);
	if (fake->bind_error)
		return fake->bind_error;
	assert_int_equal(remote_port, FAKE_REMOTE_PORT);
	fake->nr_bound++;
	*port_out = FAKE_LOCAL_PORT;
	return 0;
}

static int fake_unbind(struct xen_host *host, uint32_t port)
{
	struct fake_xen *fake = to_fake(host);

	assert_int_equal(port, FAKE_LOCAL_PORT);
	assert_int_equal(fake->nr_bound, 1);
	fake->nr_bound--;
	return fake->unbind_error;
}

static int fake_notify(struct xen_host *host, uint32_t port)
{
	struct fake_xen *fake = to_fake(host);

	assert_int_equal(port, FAKE_LOCAL_PORT);
	fake->nr_notify++;
	if (fake->notify_error_times && !--fake->notify_error_times) {
		int last = fake->notify_error;

		fake->notify_error = 0;
		return last;
	}
	return fake->notify_error;
}

static int fake_poll_fd(struct xen_host *host)
{
	return to_fake(host)->event_fd;
}

static int fake_pending(struct xen_host *host, uint32_t *port_out)
{
	uint64_t count;

	if (read(to_fake(host)->event_fd, &count, sizeof(count)) != sizeof(count))
		return -EAGAIN;
	*port_out = FAKE_LOCAL_PORT;
	return 0;
}

static int fake_unmask(struct xen_host *host, uint32_t port)
{
	assert_int_equal(port, FAKE_LOCAL_PORT);
	to_fake(host)->nr_unmask++;
	return 0;
}

static const struct xen_host_ops fake_ops = {
	.map = fake_map,
	.unmap = fake_unmap,
	.copy_reserve = fake_copy_reserve,
	.copy = fake_copy,
	.bind = fake_bind,
	.unbind = fake_unbind,
	.notify = fake_notify,
	.poll_fd = fake_poll_fd,
	.pending = fake_pending,
	.unmask = fake_unmask,
};

void fake_xen_init(struct fake_xen *fake)
{
	memset(fake, 0, sizeof(*fake));
	fake->host.ops = &fake_ops;
	fake->pages = mmap(NULL, FAKE_PAGES * XEN_PAGE_SIZE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(fake->pages, MAP_FAILED);
	fake->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	assert_true(fake->event_fd >= 0);
}

void fake_xen_free(struct fake_xen *fake)
{
	assert_int_equal(fake->nr_mapped, 0);
	assert_int_equal(fake->nr_bound, 0);
	munmap(fake->pages, FAKE_PAGES * XEN_PAGE_SIZE);
	close(fake->event_fd);
}
