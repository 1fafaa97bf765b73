// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A frontend's link to one backend: the shared ring with its grants and its event channel.
 *
 * Owns: the ring's pages, the port, pages of data shared with the backend.
 * Trusts / does not trust: a backend under test, which may never answer.
 * Runs on: one thread; only front_link_wait() and front_link_take() wait, in epoll, never in a loop.
 * Must not know: xenstore, jobs.
 */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "backend/clock.h"
#include "container.h"
#include "loopback/front-link.h"

static void events_take(struct loop_watch *watch, uint32_t events)
{
	struct front_link *link = container_of(watch, struct front_link, watch);
	uint32_t port;

	(void)events;
	while (!link->host->ops->pending(link->host, &port)) {
		link->host->ops->unmask(link->host, port);
		link->nr_events++;
	}
}

static int queue_open(struct front_link *link, struct front_queue *queue,
		      const struct blkif_abi *abi, unsigned order, struct error *error)
{
	struct xen_host *host = link->host;
	int err = host->ops->share(host, link->peer, link->nr_ring_pages, true, queue->grefs,
				   &queue->ring_pages);

	if (err)
		return error_set(error, -err, "cannot share %u ring pages with domain %u: %s",
				 link->nr_ring_pages, link->peer, strerror(-err));
	err = host->ops->alloc_unbound(host, link->peer, &queue->port);
	if (err) {
		host->ops->unshare(host, queue->ring_pages, link->nr_ring_pages);
		return error_set(error, -err, "cannot make an event channel for domain %u: %s",
				 link->peer, strerror(-err));
	}
	front_ring_init(&queue->ring, abi, queue->ring_pages, order);
	return 0;
}

static int queue_close(struct front_link *link, struct front_queue *queue, struct error *error)
{
	int err, unshare_err;

	err = link->host->ops->unbind(link->host, queue->port);
	if (err)
		error_set(error, -err, "cannot close event channel %u: %s", queue->port,
			  strerror(-err));
	unshare_err = link->host->ops->unshare(link->host, queue->ring_pages, link->nr_ring_pages);
	queue->ring_pages = NULL;
	if (!unshare_err || err)
		return err;
	return error_set(error, -unshare_err,
			 "cannot revoke the ring's pages: %s; is the backend still using them?",
			 strerror(-unshare_err));
}

static int queues_close(struct front_link *link, struct error *error)
{
	int err = 0;

	while (link->nr_queues) {
		int close_err =
			queue_close(link, &link->queues[--link->nr_queues], err ? NULL : error);

		err = err ? err : close_err;
	}
	return err;
}

int front_link_open(struct front_link *link, struct loop *loop, struct xen_host *host,
		    uint32_t peer, const struct blkif_abi *abi, unsigned order, unsigned nr_queues,
		    struct error *error)
{
	int err = 0;

	link->loop = loop;
	link->host = host;
	link->peer = peer;
	link->nr_ring_pages = 1u << order;
	link->nr_queues = 0;
	link->peer_gone = false;
	while (!err && link->nr_queues < nr_queues) {
		err = queue_open(link, &link->queues[link->nr_queues], abi, order, error);
		link->nr_queues += !err;
	}
	if (!err) {
		link->watch.fd = host->ops->poll_fd(host);
		link->watch.ready = events_take;
		err = loop_watch(loop, &link->watch, EPOLLIN);
		if (err)
			error_set(error, -err, "cannot watch the event channel: %s",
				  strerror(-err));
	}
	if (err) {
		queues_close(link, NULL);
		return err;
	}
	link->open = true;
	return 0;
}

int front_link_close(struct front_link *link, struct error *error)
{
	if (!link->open)
		return 0;
	link->open = false;
	loop_unwatch(link->loop, &link->watch);
	return queues_close(link, error);
}

int front_link_notify(struct front_link *link, unsigned idx)
{
	link->nr_notified++;
	return link->host->ops->notify(link->host, link->queues[idx].port);
}

int front_link_kick(struct front_link *link)
{
	int err = 0;

	for (unsigned i = 0; !err && i < link->nr_queues; i++)
		if (front_ring_publish(&link->queues[i].ring))
			err = front_link_notify(link, i);
	return err;
}

int front_link_wait(struct front_link *link, uint64_t deadline_ns)
{
	uint64_t now_ns = clock_now_ns(), wait_ms;
	int nr;

	if (now_ns >= deadline_ns)
		return -ETIMEDOUT;
	wait_ms = (deadline_ns - now_ns + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC;
	nr = loop_step(link->loop, wait_ms > INT_MAX ? INT_MAX : (int)wait_ms);
	return nr < 0 ? nr : 0;
}

int front_link_take(struct front_link *link, struct front_response *response, uint64_t deadline_ns)
{
	for (;;) {
		int ret = front_ring_take(&link->queues[0].ring, response);

		if (ret)
			return ret < 0 ? ret : 0;
		if (front_ring_arm(&link->queues[0].ring))
			continue;
		if (link->peer_gone)
			return -ENOTCONN;
		ret = front_link_wait(link, deadline_ns);
		if (ret)
			return ret;
	}
}

int front_pages_share(struct front_link *link, unsigned nr, bool writable,
		      struct front_pages *pages, struct error *error)
{
	void *addr;
	int err;

	*pages = (struct front_pages){.grefs = calloc(nr, sizeof(*pages->grefs)), .nr = nr};
	if (!pages->grefs)
		return error_set(error, ENOMEM, "out of memory for %u grant references", nr);
	err = link->host->ops->share(link->host, link->peer, nr, writable, pages->grefs, &addr);
	if (err) {
		free(pages->grefs);
		*pages = (struct front_pages){0};
		return error_set(
			error, -err,
			"cannot share %u pages of data with domain %u: %s; a smaller --depth or --block-size needs fewer, and on a Xen host the limit parameter of the module xen-gntalloc allows more",
			nr, link->peer, strerror(-err));
	}
	pages->addr = addr;
	return 0;
}

int front_pages_revoke(struct front_link *link, struct front_pages *pages)
{
	int err;

	if (!pages->addr)
		return 0;
	err = link->host->ops->unshare(link->host, pages->addr, pages->nr);
	free(pages->grefs);
	*pages = (struct front_pages){0};
	return err;
}
