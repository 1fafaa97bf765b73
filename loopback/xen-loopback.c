// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * struct xen_host_ops on the loopback host: grants and event channels of a process without Xen.
 *
 * Owns: a connection to DIR/hypervisor, the local view of arenas, mappings, shares and ports.
 * Trusts / does not trust: a peer's pages and grants may change or vanish under us; that yields an
 *   errno or other bytes, never a signal (the memory's size is sealed).
 * Runs on: one thread at a time. copy, notify, pending and unmask work in shared memory; they ask
 * the host only when a peer is new (the first copy of a domain, the first notify of a binding).
 * Must not know: blkif, rings, xenstore.
 *
 * No wake-up is lost: a sender sets PENDING and wakes the owner if the port was neither pending nor
 * masked; pending() takes the wake-up out of the descriptor before its last look; unmask() wakes
 * itself if PENDING came in between. All accesses are sequentially consistent.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <unistd.h>

#include "container.h"
#include "loopback/loopback-protocol.h"
#include "xen-ops.h"

/* Another domain's memory, mapped whole once; only pages that are used cost anything. */
struct arena {
	LIST_ENTRY(arena) link;
	uint32_t domid;
	uint8_t *base; /* struct loopback_arena, read-only, then the pages */
};

/* One map() or share(). */
struct range {
	LIST_ENTRY(range) link;
	uint8_t *addr;
	uint32_t nr, id;
	bool shared; /* by us, else mapped from a peer */
};

struct local_port {
	LIST_ENTRY(local_port) link;
	uint32_t number;
	/* The peer as of this generation; asked for again when the host has moved on. */
	uint32_t generation, peer_number;
	int peer_wake_fd; /* -1: nobody listens */
};

struct loopback_host {
	struct xen_host host;
	uint32_t domid;
	int socket_fd;
	int wake_fd;
	struct loopback_events *events;
	struct local_port *last_fired; /* pending() begins behind it, so that each gets its turn */
	LIST_HEAD(, arena) arenas;
	LIST_HEAD(, range) ranges;
	LIST_HEAD(, local_port) ports;
};

static struct loopback_host *loopback_of(struct xen_host *host)
{
	return container_of(host, struct loopback_host, host);
}

static void fd_close(int fd)
{
	if (fd >= 0)
		close(fd);
}

/* A call that brings no descriptors. */
static int host_call(struct loopback_host *loopback, const struct loopback_request *request,
		     struct loopback_reply *reply)
{
	int fds[LOOPBACK_FDS_MAX], err = loopback_call(loopback->socket_fd, request, reply, fds);

	for (unsigned i = 0; i < LOOPBACK_FDS_MAX; i++)
		fd_close(fds[i]);
	return err;
}

static int host_call_id(struct loopback_host *loopback, uint32_t operation, uint32_t id)
{
	struct loopback_request request = {.operation = operation, .id = id};
	struct loopback_reply reply;

	return host_call(loopback, &request, &reply);
}

/* --- Mappings and shares --- */

/* Lay the pages of @grefs side by side: reserve the range, then put each run of neighbours into it.
 */
static int pages_map(int arena_fd, const uint32_t *grefs, uint32_t nr, int protection,
		     uint8_t **addr_out)
{
	uint8_t *addr = mmap(NULL, (size_t)nr * XEN_PAGE_SIZE, PROT_NONE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint32_t first, end;

	if (addr == MAP_FAILED)
		return -errno;
	for (first = 0; first < nr; first = end) {
		for (end = first + 1; end < nr && grefs[end] == grefs[end - 1] + 1; end++)
			;
		if (mmap(addr + (size_t)first * XEN_PAGE_SIZE,
			 (size_t)(end - first) * XEN_PAGE_SIZE, protection, MAP_SHARED | MAP_FIXED,
			 arena_fd, (off_t)loopback_page_offset(grefs[first])) == MAP_FAILED) {
			int err = -errno;

			munmap(addr, (size_t)nr * XEN_PAGE_SIZE);
			return err;
		}
	}
	*addr_out = addr;
	return 0;
}

static struct range *range_add(struct loopback_host *loopback, uint8_t *addr, uint32_t nr,
			       uint32_t id, bool shared)
{
	struct range *range = malloc(sizeof(*range));

	if (!range)
		return NULL;
	*range = (struct range){.addr = addr, .nr = nr, .id = id, .shared = shared};
	LIST_INSERT_HEAD(&loopback->ranges, range, link);
	return range;
}

static void range_forget(struct range *range)
{
	munmap(range->addr, (size_t)range->nr * XEN_PAGE_SIZE);
	LIST_REMOVE(range, link);
	free(range);
}

static int range_release(struct loopback_host *loopback, void *addr, unsigned nr, bool shared)
{
	struct range *range;

	LIST_FOREACH(range, &loopback->ranges, link) {
		uint32_t id = range->id;

		if (range->addr != addr || range->nr != nr || range->shared != shared)
			continue;
		/* Our own view goes first: once the host knows, the page may be somebody else's. */
		range_forget(range);
		return host_call_id(loopback, shared ? LOOPBACK_UNSHARE : LOOPBACK_UNMAP, id);
	}
	return -EINVAL;
}

static int loopback_map(struct xen_host *host, uint32_t domid, const uint32_t *grefs, unsigned nr,
			bool writable, void **addr_out)
{
	struct loopback_host *loopback = loopback_of(host);
	struct loopback_request *request;
	struct loopback_reply reply;
	int fds[LOOPBACK_FDS_MAX], err;
	uint8_t *addr;

	if (nr > LOOPBACK_MAP_MAX)
		return -E2BIG;
	request = malloc(sizeof(*request) + nr * sizeof(grefs[0]));
	if (!request)
		return -ENOMEM;
	*request = (struct loopback_request){
		.operation = LOOPBACK_MAP,
		.domid = domid,
		.nr = nr,
		.flag = writable,
	};
	if (nr)
		memcpy(request->grefs, grefs, nr * sizeof(grefs[0]));
	err = loopback_call(loopback->socket_fd, request, &reply, fds);
	free(request);
	if (err)
		return err;
	err = pages_map(fds[0], grefs, nr, PROT_READ | (writable ? PROT_WRITE : 0), &addr);
	fd_close(fds[0]);
	if (err)
		goto err_unmap;
	if (!range_add(loopback, addr, nr, reply.id, false)) {
		munmap(addr, (size_t)nr * XEN_PAGE_SIZE);
		err = -ENOMEM;
		goto err_unmap;
	}
	*addr_out = addr;
	return 0;

err_unmap:
	host_call_id(loopback, LOOPBACK_UNMAP, reply.id);
	return err;
}

static int loopback_unmap(struct xen_host *host, void *addr, unsigned nr)
{
	return range_release(loopback_of(host), addr, nr, false);
}

static int loopback_share(struct xen_host *host, uint32_t domid, unsigned nr, bool writable,
			  uint32_t *grefs_out, void **addr_out)
{
	struct loopback_host *loopback = loopback_of(host);
	struct loopback_request request = {
		.operation = LOOPBACK_SHARE,
		.domid = domid,
		.nr = nr,
		.flag = writable,
	};
	struct loopback_reply reply;
	int fds[LOOPBACK_FDS_MAX], err = loopback_call(loopback->socket_fd, &request, &reply, fds);
	uint8_t *addr;

	if (err)
		return err;
	for (unsigned i = 0; i < nr; i++)
		grefs_out[i] = reply.value + i;
	err = pages_map(fds[0], grefs_out, nr, PROT_READ | PROT_WRITE, &addr);
	fd_close(fds[0]);
	if (err)
		goto err_unshare;
	if (!range_add(loopback, addr, nr, reply.id, true)) {
		munmap(addr, (size_t)nr * XEN_PAGE_SIZE);
		err = -ENOMEM;
		goto err_unshare;
	}
	*addr_out = addr;
	return 0;

err_unshare:
	host_call_id(loopback, LOOPBACK_UNSHARE, reply.id);
	return err;
}

static int loopback_unshare(struct xen_host *host, void *addr, unsigned nr)
{
	return range_release(loopback_of(host), addr, nr, true);
}

/* --- Copy --- */

static void arena_forget(struct arena *arena)
{
	munmap(arena->base, LOOPBACK_ARENA_BYTES);
	LIST_REMOVE(arena, link);
	free(arena);
}

/* The memory of @domid: known already, or asked for. */
static int arena_get(struct loopback_host *loopback, uint32_t domid, struct arena **arena_out)
{
	struct loopback_request request = {.operation = LOOPBACK_ARENA, .domid = domid};
	struct loopback_reply reply;
	struct arena *arena;
	int fds[LOOPBACK_FDS_MAX], err;

	LIST_FOREACH(arena, &loopback->arenas, link) {
		if (arena->domid != domid)
			continue;
		if (!atomic_load_explicit(&((struct loopback_arena *)arena->base)->dead,
					  memory_order_relaxed)) {
			*arena_out = arena;
			return 0;
		}
		arena_forget(arena);
		break;
	}
	err = loopback_call(loopback->socket_fd, &request, &reply, fds);
	if (err)
		return err;
	arena = malloc(sizeof(*arena));
	if (!arena) {
		err = -ENOMEM;
		goto out_close;
	}
	arena->domid = domid;
	arena->base = mmap(NULL, LOOPBACK_ARENA_BYTES, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_NORESERVE, fds[0], 0);
	if (arena->base == MAP_FAILED) {
		err = -errno;
		free(arena);
		goto out_close;
	}
	/* The grant table is the host's to write. */
	if (mprotect(arena->base, LOOPBACK_ARENA_HEAD_BYTES, PROT_READ)) {
		err = -errno;
		munmap(arena->base, LOOPBACK_ARENA_BYTES);
		free(arena);
		goto out_close;
	}
	LIST_INSERT_HEAD(&loopback->arenas, arena, link);
	*arena_out = arena;
out_close:
	fd_close(fds[0]);
	return err;
}

static int loopback_copy_reserve(struct xen_host *host, unsigned nr_max)
{
	(void)host;
	(void)nr_max; /* copy() takes no memory per piece */
	return 0;
}

static int piece_copy(struct loopback_host *loopback, uint8_t *base,
		      enum xen_copy_direction direction, const struct xen_copy *piece)
{
	struct loopback_arena *arena = (struct loopback_arena *)base;
	uint32_t grant;
	uint8_t *page;

	if (piece->gref >= LOOPBACK_NR_GREFS ||
	    (uint32_t)piece->offset_bytes + piece->len_bytes > XEN_PAGE_SIZE)
		return -EINVAL;
	grant = atomic_load_explicit(&arena->grants[piece->gref], memory_order_acquire);
	if (!(grant & LOOPBACK_GRANT_VALID))
		return -EINVAL;
	if (grant >> LOOPBACK_GRANT_PEER_SHIFT != loopback->domid ||
	    (direction == XEN_COPY_TO_PEER && !(grant & LOOPBACK_GRANT_WRITABLE)) ||
	    loopback_grant_refused(loopback->events))
		return -EACCES;
	page = base + loopback_page_offset(piece->gref) + piece->offset_bytes;
	if (direction == XEN_COPY_TO_PEER)
		memcpy(page, piece->local, piece->len_bytes);
	else
		memcpy(piece->local, page, piece->len_bytes);
	return 0;
}

static int loopback_copy(struct xen_host *host, uint32_t domid, enum xen_copy_direction direction,
			 struct xen_copy *pieces, unsigned nr)
{
	struct loopback_host *loopback = loopback_of(host);
	struct arena *arena = NULL;
	int err = arena_get(loopback, domid, &arena);

	for (unsigned i = 0; i < nr; i++)
		pieces[i].status = err ? err
				       : piece_copy(loopback, arena->base, direction, &pieces[i]);
	/* A peer that is gone fails its pieces, as Xen's GNTST_bad_domain does; the call itself
	 * worked. */
	return err == -ESRCH ? 0 : err;
}

/* --- Ports --- */

static struct local_port *port_find(struct loopback_host *loopback, uint32_t number)
{
	struct local_port *port;

	LIST_FOREACH(port, &loopback->ports, link)
		if (port->number == number)
			return port;
	return NULL;
}

static struct loopback_port *port_shared(struct loopback_host *loopback, uint32_t number)
{
	return &loopback->events->ports[number];
}

/* A new port from BIND or ALLOC_UNBOUND. */
static int port_open(struct loopback_host *loopback, const struct loopback_request *request,
		     uint32_t *port_out)
{
	struct loopback_reply reply;
	struct local_port *port = malloc(sizeof(*port));
	int err;

	if (!port)
		return -ENOMEM;
	err = host_call(loopback, request, &reply);
	if (err) {
		free(port);
		return err;
	}
	*port = (struct local_port){
		.number = reply.value,
		/* Never right, so that the first notify() asks. */
		.generation = atomic_load(&port_shared(loopback, reply.value)->generation) - 1,
		.peer_wake_fd = -1,
	};
	LIST_INSERT_HEAD(&loopback->ports, port, link);
	*port_out = port->number;
	return 0;
}

static void port_forget(struct loopback_host *loopback, struct local_port *port)
{
	if (loopback->last_fired == port)
		loopback->last_fired = NULL;
	fd_close(port->peer_wake_fd);
	LIST_REMOVE(port, link);
	free(port);
}

static int loopback_bind(struct xen_host *host, uint32_t domid, uint32_t remote_port,
			 uint32_t *port_out)
{
	struct loopback_request request = {
		.operation = LOOPBACK_BIND,
		.domid = domid,
		.id = remote_port,
	};

	return port_open(loopback_of(host), &request, port_out);
}

static int loopback_alloc_unbound(struct xen_host *host, uint32_t domid, uint32_t *port_out)
{
	struct loopback_request request = {.operation = LOOPBACK_ALLOC_UNBOUND, .domid = domid};

	return port_open(loopback_of(host), &request, port_out);
}

static int loopback_unbind(struct xen_host *host, uint32_t number)
{
	struct loopback_host *loopback = loopback_of(host);
	struct local_port *port = port_find(loopback, number);

	if (!port)
		return -EINVAL;
	port_forget(loopback, port);
	return host_call_id(loopback, LOOPBACK_UNBIND, number);
}

/* Make a descriptor readable. A full counter means that it is readable already. */
static int wake(int wake_fd)
{
	uint64_t one = 1;

	return write(wake_fd, &one, sizeof(one)) < 0 && errno != EAGAIN ? -errno : 0;
}

static int port_ask_peer(struct loopback_host *loopback, struct local_port *port)
{
	struct loopback_request request = {.operation = LOOPBACK_PORT_PEER, .id = port->number};
	struct loopback_reply reply;
	int fds[LOOPBACK_FDS_MAX], err = loopback_call(loopback->socket_fd, &request, &reply, fds);

	if (err)
		return err;
	fd_close(port->peer_wake_fd);
	port->peer_wake_fd = fds[0];
	port->generation = reply.id;
	port->peer_number = reply.value < LOOPBACK_NR_PORTS ? reply.value : 0;
	return 0;
}

static int loopback_notify(struct xen_host *host, uint32_t number)
{
	struct loopback_host *loopback = loopback_of(host);
	struct local_port *port = port_find(loopback, number);
	uint32_t before;
	int err;

	if (!port)
		return -EINVAL;
	if (atomic_load(&port_shared(loopback, number)->generation) != port->generation) {
		err = port_ask_peer(loopback, port);
		if (err)
			return err;
	}
	if (!port->peer_number)
		return 0; /* unbound: Xen drops it too, the peer looks once when it binds */
	before = atomic_fetch_or(&port_shared(loopback, port->peer_number)->state,
				 LOOPBACK_PORT_PENDING);
	return before & (LOOPBACK_PORT_PENDING | LOOPBACK_PORT_MASKED) ? 0
								       : wake(port->peer_wake_fd);
}

static int loopback_poll_fd(struct xen_host *host)
{
	return loopback_of(host)->wake_fd;
}

/* Turn pending into masked if @port may fire. */
static bool port_take(struct loopback_host *loopback, const struct local_port *port)
{
	uint32_t pending = LOOPBACK_PORT_PENDING;

	return atomic_compare_exchange_strong(&port_shared(loopback, port->number)->state, &pending,
					      LOOPBACK_PORT_MASKED);
}

static struct local_port *ports_take(struct loopback_host *loopback)
{
	struct local_port *first, *port;

	first = loopback->last_fired ? LIST_NEXT(loopback->last_fired, link) : NULL;
	for (port = first; port; port = LIST_NEXT(port, link))
		if (port_take(loopback, port))
			return port;
	LIST_FOREACH(port, &loopback->ports, link) {
		if (port == first)
			break; /* from here on we have looked */
		if (port_take(loopback, port))
			return port;
	}
	return NULL;
}

static int loopback_pending(struct xen_host *host, uint32_t *port_out)
{
	struct loopback_host *loopback = loopback_of(host);
	struct local_port *port = ports_take(loopback);
	uint64_t count;

	if (!port) {
		/* Quiet the descriptor, then look again: an event from here on makes it readable.
		 */
		if (read(loopback->wake_fd, &count, sizeof(count)) < 0)
			return errno == EAGAIN || errno == EINTR ? -EAGAIN : -errno;
		port = ports_take(loopback);
		if (!port)
			return -EAGAIN;
		/* We may have quieted it for others, too. */
		wake(loopback->wake_fd);
	}
	loopback->last_fired = port;
	*port_out = port->number;
	return 0;
}

static int loopback_unmask(struct xen_host *host, uint32_t number)
{
	struct loopback_host *loopback = loopback_of(host);

	if (!port_find(loopback, number))
		return -EINVAL;
	if (atomic_fetch_and(&port_shared(loopback, number)->state, ~LOOPBACK_PORT_MASKED) &
	    LOOPBACK_PORT_PENDING)
		return wake(loopback->wake_fd);
	return 0;
}

/* --- The handle --- */

static void loopback_close(struct xen_host *host)
{
	struct loopback_host *loopback = loopback_of(host);
	struct local_port *port;
	struct range *range;
	struct arena *arena;

	while ((range = LIST_FIRST(&loopback->ranges)))
		range_forget(range);
	while ((arena = LIST_FIRST(&loopback->arenas)))
		arena_forget(arena);
	while ((port = LIST_FIRST(&loopback->ports)))
		port_forget(loopback, port);
	/* Wait until the host has released it all; a host that is gone has nothing to release. */
	host_call_id(loopback, LOOPBACK_GOODBYE, 0);
	munmap(loopback->events, sizeof(*loopback->events));
	close(loopback->wake_fd);
	close(loopback->socket_fd);
	free(loopback);
}

static const struct xen_host_ops loopback_ops = {
	.map = loopback_map,
	.unmap = loopback_unmap,
	.copy_reserve = loopback_copy_reserve,
	.copy = loopback_copy,
	.bind = loopback_bind,
	.share = loopback_share,
	.unshare = loopback_unshare,
	.alloc_unbound = loopback_alloc_unbound,
	.unbind = loopback_unbind,
	.notify = loopback_notify,
	.poll_fd = loopback_poll_fd,
	.pending = loopback_pending,
	.unmask = loopback_unmask,
	.close = loopback_close,
};

int xen_loopback_open(const char *dir, uint32_t domid, struct xen_host **host_out,
		      struct error *error)
{
	struct loopback_host *loopback = calloc(1, sizeof(*loopback));
	int fds[LOOPBACK_FDS_MAX], err;

	if (!loopback)
		return error_set(error, ENOMEM, "no memory for the loopback host's handle");
	loopback->host.ops = &loopback_ops;
	loopback->domid = domid;
	LIST_INIT(&loopback->arenas);
	LIST_INIT(&loopback->ranges);
	LIST_INIT(&loopback->ports);
	loopback->socket_fd = loopback_hello(dir, domid, true, fds, error);
	if (loopback->socket_fd < 0) {
		err = loopback->socket_fd;
		goto err_free;
	}
	loopback->wake_fd = fds[1];
	loopback->events = mmap(NULL, sizeof(*loopback->events), PROT_READ | PROT_WRITE, MAP_SHARED,
				fds[0], 0);
	if (loopback->events == MAP_FAILED) {
		err = error_set(error, errno,
				"cannot map the event memory of the loopback host in %s: %s", dir,
				strerror(errno));
		goto err_close;
	}
	fd_close(fds[0]);
	*host_out = &loopback->host;
	return 0;

err_close:
	fd_close(fds[0]);
	fd_close(fds[1]);
	close(loopback->socket_fd);
err_free:
	free(loopback);
	return err;
}

/* --- Domains --- */

struct loopback_domains {
	struct xen_domains domains;
	int socket_fd;
};

static int loopback_domains_state(struct xen_domains *domains, uint32_t domid,
				  enum xen_domain_state *state_out)
{
	struct loopback_domains *loopback = container_of(domains, struct loopback_domains, domains);
	struct loopback_request request = {.operation = LOOPBACK_DOMAIN_STATE, .domid = domid};
	struct loopback_reply reply;
	int fds[LOOPBACK_FDS_MAX], err = loopback_call(loopback->socket_fd, &request, &reply, fds);

	if (err)
		return err;
	*state_out = (enum xen_domain_state)reply.value;
	return 0;
}

static void loopback_domains_close(struct xen_domains *domains)
{
	struct loopback_domains *loopback = container_of(domains, struct loopback_domains, domains);

	close(loopback->socket_fd);
	free(loopback);
}

static const struct xen_domains_ops loopback_domains_ops = {
	.state = loopback_domains_state,
	.close = loopback_domains_close,
};

int xen_loopback_domains_open(const char *dir, struct xen_domains **domains_out,
			      struct error *error)
{
	struct loopback_domains *loopback = calloc(1, sizeof(*loopback));
	int fds[LOOPBACK_FDS_MAX];

	if (!loopback)
		return error_set(error, ENOMEM, "no memory for the loopback host's domains");
	loopback->domains.ops = &loopback_domains_ops;
	loopback->socket_fd = loopback_hello(dir, 0, false, fds, error);
	if (loopback->socket_fd < 0) {
		int err = loopback->socket_fd;

		free(loopback);
		return err;
	}
	*domains_out = &loopback->domains;
	return 0;
}
