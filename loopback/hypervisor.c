// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The hypervisor of the loopback host: domains, grants and event channels for its clients.
 *
 * Owns: DIR/hypervisor, its clients, the truth about who shares, maps and binds what.
 * Trusts / does not trust: a client may send anything, stop reading, or die at any moment; only its
 *   own things suffer. Shared memory is written, never believed.
 * Runs on: the host's one thread, from its event loop; never blocks.
 * Must not know: xenstore.
 *
 * A grant is usable while it is shared; its page is free for others only once no mapping is left,
 * because a mapping outlives the revocation, as on Xen. A dead domain stays (a zombie) as long as one
 * of its pages is mapped.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backend/log.h"
#include "container.h"
#include "loopback/hypervisor.h"
#include "loopback/loopback-protocol.h"

/* The host's knowledge of one gref; shared memory only repeats it. */
struct grant {
	bool shared;
	bool writable;
	uint16_t peer_domid;
	uint32_t nr_mappings;
};

struct domain {
	LIST_ENTRY(domain) link;
	uint32_t domid;
	enum xen_domain_state state;
	int arena_fd;
	struct loopback_arena *arena; /* the head only: the host never looks into pages */
	struct grant *grants;         /* [LOOPBACK_NR_GREFS] */
	unsigned nr_mappings;         /* of all its grants */
};

struct mapping {
	LIST_ENTRY(mapping) link;
	uint32_t id;
	struct domain *domain; /* whose pages */
	uint32_t nr;
	uint32_t grefs[];
};

struct share {
	LIST_ENTRY(share) link;
	uint32_t id;
	struct domain *domain;
	uint32_t first, nr;
};

struct port {
	LIST_ENTRY(port) link; /* its owner's */
	struct client *owner;  /* NULL: free */
	struct port *peer;     /* NULL: unbound, and remote_domid may bind */
	uint32_t remote_domid;
};

struct client {
	LIST_ENTRY(client) link;
	struct hypervisor *hypervisor;
	struct loop_watch watch;
	struct domain *domain; /* NULL before HELLO */
	uint32_t pid;
	uint32_t next_id;
	int wake_fd; /* -1 unless it wants events */
	bool broken; /* to be closed once its call is done */
	LIST_HEAD(, mapping) mappings;
	LIST_HEAD(, share) shares;
	LIST_HEAD(, port) ports;
};

struct hypervisor {
	struct loop *loop;
	const struct hypervisor_hooks *hooks;
	void *hook_arg;
	struct sockaddr_un address;
	struct loop_watch listener;
	struct client *asking;
	bool stopping;
	struct log_limit malformed_limit;
	int events_fd;
	struct loopback_events *events;
	uint32_t next_port;
	struct port ports[LOOPBACK_NR_PORTS];
	LIST_HEAD(, domain) domains;
	LIST_HEAD(, client) clients;
	union {
		struct loopback_request request;
		uint8_t bytes[sizeof(struct loopback_request) + LOOPBACK_MAP_MAX * sizeof(uint32_t)];
	} packet; /* the call in hand */
};

/* What a call sends back besides its status. */
struct answer {
	struct loopback_reply reply;
	int fds[LOOPBACK_FDS_MAX];
	int own_fd; /* to be closed after sending, or -1 */
};

static void answer_fd(struct answer *answer, int fd)
{
	answer->fds[answer->reply.nr_fds++] = fd;
}

/* --- Domains --- */

/* A memfd that no client can shrink under another's mapping (that would be SIGBUS). */
static int memory_create(const char *name, size_t bytes)
{
	int err, fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)bytes) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

/* The domain of this number, alive or zombie: a zombie keeps its number busy, as on Xen. */
static struct domain *domain_find(struct hypervisor *hypervisor, uint32_t domid)
{
	struct domain *domain;

	LIST_FOREACH(domain, &hypervisor->domains, link)
		if (domain->domid == domid)
			return domain;
	return NULL;
}

static struct domain *domain_find_alive(struct hypervisor *hypervisor, uint32_t domid)
{
	struct domain *domain = domain_find(hypervisor, domid);

	return domain && domain->state != XEN_DOMAIN_DEAD ? domain : NULL;
}

static void domain_free(struct domain *domain)
{
	LIST_REMOVE(domain, link);
	munmap(domain->arena, LOOPBACK_ARENA_HEAD_BYTES);
	close(domain->arena_fd);
	free(domain->grants);
	free(domain);
}

static int domain_create(struct hypervisor *hypervisor, uint32_t domid)
{
	struct domain *domain;
	int err;

	if (domid > LOOPBACK_DOMID_MAX)
		return -EINVAL;
	domain = domain_find(hypervisor, domid);
	if (domain)
		return domain->state == XEN_DOMAIN_DEAD ? -EBUSY : -EEXIST;
	domain = calloc(1, sizeof(*domain));
	if (!domain)
		return -ENOMEM;
	domain->domid = domid;
	domain->state = XEN_DOMAIN_RUNNING;
	domain->grants = calloc(LOOPBACK_NR_GREFS, sizeof(domain->grants[0]));
	if (!domain->grants) {
		err = -ENOMEM;
		goto err_free;
	}
	domain->arena_fd = memory_create("vbdisk-loopback-arena", LOOPBACK_ARENA_BYTES);
	if (domain->arena_fd < 0) {
		err = domain->arena_fd;
		goto err_free;
	}
	domain->arena = mmap(NULL, LOOPBACK_ARENA_HEAD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
			     domain->arena_fd, 0);
	if (domain->arena == MAP_FAILED) {
		err = -errno;
		goto err_close;
	}
	LIST_INSERT_HEAD(&hypervisor->domains, domain, link);
	return 0;

err_close:
	close(domain->arena_fd);
err_free:
	free(domain->grants);
	free(domain);
	return err;
}

/* --- Grants --- */

static bool grant_in_use(const struct grant *grant)
{
	return grant->shared || grant->nr_mappings;
}

static int grants_find_free(const struct domain *domain, uint32_t nr, uint32_t *first_out)
{
	uint32_t run = 0;

	for (uint32_t gref = LOOPBACK_FIRST_GREF; gref < LOOPBACK_NR_GREFS; gref++) {
		run = grant_in_use(&domain->grants[gref]) ? 0 : run + 1;
		if (run == nr) {
			*first_out = gref + 1 - nr;
			return 0;
		}
	}
	return -ENOSPC;
}

/* Give the page back to the kernel, so that its next user finds zeros. */
static void page_clear(struct domain *domain, uint32_t gref)
{
	if (fallocate(domain->arena_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		      (off_t)loopback_page_offset(gref), XEN_PAGE_SIZE))
		log_error("domain %u: cannot clear the page of grant %u: %s", domain->domid, gref,
			  strerror(errno));
}

static void grant_revoke(struct domain *domain, uint32_t gref)
{
	atomic_store(&domain->arena->grants[gref], 0);
	domain->grants[gref].shared = false;
	if (!grant_in_use(&domain->grants[gref]))
		page_clear(domain, gref);
}

static void share_drop(struct share *share)
{
	for (uint32_t i = 0; i < share->nr; i++)
		if (share->domain->grants[share->first + i].shared)
			grant_revoke(share->domain, share->first + i);
	LIST_REMOVE(share, link);
	free(share);
}

static void mapping_drop(struct mapping *mapping)
{
	struct domain *domain = mapping->domain;

	for (uint32_t i = 0; i < mapping->nr; i++) {
		struct grant *grant = &domain->grants[mapping->grefs[i]];

		grant->nr_mappings--;
		domain->nr_mappings--;
		if (!grant_in_use(grant))
			page_clear(domain, mapping->grefs[i]);
	}
	LIST_REMOVE(mapping, link);
	free(mapping);
	if (domain->state == XEN_DOMAIN_DEAD && !domain->nr_mappings)
		domain_free(domain);
}

static int call_share(struct client *client, const struct loopback_request *request,
		      struct answer *answer)
{
	struct domain *domain = client->domain;
	struct share *share;
	uint32_t first;
	int err;

	if (!request->nr || request->nr > LOOPBACK_NR_GREFS || request->domid > LOOPBACK_DOMID_MAX)
		return -EINVAL;
	err = grants_find_free(domain, request->nr, &first);
	if (err)
		return err;
	share = calloc(1, sizeof(*share));
	if (!share)
		return -ENOMEM;
	share->id = client->next_id++;
	share->domain = domain;
	share->first = first;
	share->nr = request->nr;
	LIST_INSERT_HEAD(&client->shares, share, link);
	for (uint32_t i = 0; i < request->nr; i++) {
		domain->grants[first + i] = (struct grant){
			.shared = true,
			.writable = request->flag,
			.peer_domid = (uint16_t)request->domid,
		};
		atomic_store(&domain->arena->grants[first + i],
			     LOOPBACK_GRANT_VALID | (request->flag ? LOOPBACK_GRANT_WRITABLE : 0) |
				     request->domid << LOOPBACK_GRANT_PEER_SHIFT);
	}
	answer->reply.id = share->id;
	answer->reply.value = first;
	answer_fd(answer, domain->arena_fd);
	return 0;
}

static int call_unshare(struct client *client, const struct loopback_request *request)
{
	struct share *share;

	LIST_FOREACH(share, &client->shares, link) {
		if (share->id == request->id) {
			share_drop(share);
			return 0;
		}
	}
	return -EINVAL;
}

static int call_map(struct client *client, const struct loopback_request *request,
		    struct answer *answer)
{
	const uint32_t *grefs = request->grefs;
	struct domain *domain = domain_find_alive(client->hypervisor, request->domid);
	struct mapping *mapping;

	if (!domain)
		return -ESRCH;
	if (!request->nr)
		return -EINVAL;
	for (uint32_t i = 0; i < request->nr; i++) {
		const struct grant *grant = grefs[i] < LOOPBACK_NR_GREFS ? &domain->grants[grefs[i]] : NULL;

		if (!grant || !grant->shared)
			return -EINVAL;
		if (grant->peer_domid != client->domain->domid || (request->flag && !grant->writable) ||
		    loopback_grant_refused(client->hypervisor->events))
			return -EACCES;
	}
	mapping = malloc(sizeof(*mapping) + request->nr * sizeof(mapping->grefs[0]));
	if (!mapping)
		return -ENOMEM;
	mapping->id = client->next_id++;
	mapping->domain = domain;
	mapping->nr = request->nr;
	memcpy(mapping->grefs, grefs, request->nr * sizeof(grefs[0]));
	for (uint32_t i = 0; i < request->nr; i++)
		domain->grants[grefs[i]].nr_mappings++;
	domain->nr_mappings += request->nr;
	LIST_INSERT_HEAD(&client->mappings, mapping, link);
	answer->reply.id = mapping->id;
	answer_fd(answer, domain->arena_fd);
	return 0;
}

static int call_unmap(struct client *client, const struct loopback_request *request)
{
	struct mapping *mapping;

	LIST_FOREACH(mapping, &client->mappings, link) {
		if (mapping->id == request->id) {
			mapping_drop(mapping);
			return 0;
		}
	}
	return -EINVAL;
}

static int call_arena(struct client *client, const struct loopback_request *request,
		      struct answer *answer)
{
	struct domain *domain = domain_find_alive(client->hypervisor, request->domid);

	if (!domain)
		return -ESRCH;
	answer_fd(answer, domain->arena_fd);
	return 0;
}

/* --- Ports --- */

static uint32_t port_number(struct hypervisor *hypervisor, const struct port *port)
{
	return (uint32_t)(port - hypervisor->ports);
}

static struct loopback_port *port_shared(struct hypervisor *hypervisor, const struct port *port)
{
	return &hypervisor->events->ports[port_number(hypervisor, port)];
}

/* Make whoever holds the port ask again who its peer is. */
static void port_changed(struct hypervisor *hypervisor, const struct port *port)
{
	atomic_fetch_add(&port_shared(hypervisor, port)->generation, 1);
}

static int port_alloc(struct client *client, uint32_t remote_domid, struct port **port_out)
{
	struct hypervisor *hypervisor = client->hypervisor;

	if (client->wake_fd < 0)
		return -EINVAL;
	/* Numbers go round, so that a late event of a closed port meets nobody. */
	for (unsigned i = 0; i < LOOPBACK_NR_PORTS; i++) {
		uint32_t number = hypervisor->next_port++ % LOOPBACK_NR_PORTS;
		struct port *port = &hypervisor->ports[number];

		if (!number || port->owner)
			continue;
		port->owner = client;
		port->peer = NULL;
		port->remote_domid = remote_domid;
		LIST_INSERT_HEAD(&client->ports, port, link);
		atomic_store(&port_shared(hypervisor, port)->state, 0);
		port_changed(hypervisor, port);
		*port_out = port;
		return 0;
	}
	return -ENOSPC;
}

/* Close @port; its peer becomes unbound, still reserved for our domain (Xen's evtchn_close()). */
static void port_close(struct hypervisor *hypervisor, struct port *port)
{
	if (port->peer) {
		port->peer->peer = NULL;
		port_changed(hypervisor, port->peer);
	}
	port_changed(hypervisor, port);
	LIST_REMOVE(port, link);
	port->owner = NULL;
	port->peer = NULL;
}

/* The client's own port @number, or NULL. */
static struct port *port_of(struct client *client, uint32_t number)
{
	struct port *port = number < LOOPBACK_NR_PORTS ? &client->hypervisor->ports[number] : NULL;

	return port && port->owner == client ? port : NULL;
}

static void client_wake(struct client *client)
{
	uint64_t one = 1;

	/* It can only fail when the counter is full, and then the descriptor is readable anyhow. */
	if (write(client->wake_fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
		log_error("pid %u: cannot wake it: %s", client->pid, strerror(errno));
}

static int call_alloc_unbound(struct client *client, const struct loopback_request *request,
			      struct answer *answer)
{
	struct port *port;
	int err;

	if (request->domid > LOOPBACK_DOMID_MAX)
		return -EINVAL;
	err = port_alloc(client, request->domid, &port);
	if (!err)
		answer->reply.value = port_number(client->hypervisor, port);
	return err;
}

static int call_bind(struct client *client, const struct loopback_request *request,
		     struct answer *answer)
{
	struct hypervisor *hypervisor = client->hypervisor;
	struct port *port, *remote;
	int err;

	if (!domain_find_alive(hypervisor, request->domid))
		return -ESRCH;
	remote = request->id < LOOPBACK_NR_PORTS ? &hypervisor->ports[request->id] : NULL;
	if (!remote || !remote->owner || remote->owner->domain->domid != request->domid ||
	    remote->peer || remote->remote_domid != client->domain->domid)
		return -EINVAL;
	err = port_alloc(client, request->domid, &port);
	if (err)
		return err;
	port->peer = remote;
	remote->peer = port;
	port_changed(hypervisor, port);
	port_changed(hypervisor, remote);
	/* Events sent before the bind went nowhere, so the binder has to look once. */
	atomic_fetch_or(&port_shared(hypervisor, port)->state, LOOPBACK_PORT_PENDING);
	client_wake(client);
	answer->reply.value = port_number(hypervisor, port);
	return 0;
}

static int call_unbind(struct client *client, const struct loopback_request *request)
{
	struct port *port = port_of(client, request->id);

	if (!port)
		return -EINVAL;
	port_close(client->hypervisor, port);
	return 0;
}

static int call_port_peer(struct client *client, const struct loopback_request *request,
			  struct answer *answer)
{
	struct hypervisor *hypervisor = client->hypervisor;
	struct port *port = port_of(client, request->id);

	if (!port)
		return -EINVAL;
	answer->reply.id = atomic_load(&port_shared(hypervisor, port)->generation);
	if (port->peer) {
		answer->reply.value = port_number(hypervisor, port->peer);
		answer_fd(answer, port->peer->owner->wake_fd);
	}
	return 0;
}

/* --- Clients --- */

static void client_release(struct client *client)
{
	struct port *port;
	struct share *share;
	struct mapping *mapping;

	while ((port = LIST_FIRST(&client->ports)))
		port_close(client->hypervisor, port);
	while ((share = LIST_FIRST(&client->shares)))
		share_drop(share);
	while ((mapping = LIST_FIRST(&client->mappings)))
		mapping_drop(mapping);
}

static void client_close(struct client *client)
{
	client_release(client);
	loop_unwatch(client->hypervisor->loop, &client->watch);
	close(client->watch.fd);
	if (client->wake_fd >= 0)
		close(client->wake_fd);
	LIST_REMOVE(client, link);
	free(client);
}

/* Close what was found broken; only where nobody holds a pointer to a client. */
static void clients_reap(struct hypervisor *hypervisor)
{
	struct client *client = LIST_FIRST(&hypervisor->clients);

	while (client) {
		struct client *next = LIST_NEXT(client, link);

		if (client->broken)
			client_close(client);
		client = next;
	}
}

static int call_hello(struct client *client, const struct loopback_request *request,
		      struct answer *answer)
{
	struct hypervisor *hypervisor = client->hypervisor;

	if (client->domain)
		return -EALREADY;
	if (!domain_find_alive(hypervisor, request->domid))
		return -ESRCH;
	if (request->flag) {
		client->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (client->wake_fd < 0)
			return -errno;
		answer_fd(answer, hypervisor->events_fd);
		answer_fd(answer, client->wake_fd);
	}
	client->domain = domain_find_alive(hypervisor, request->domid);
	return 0;
}

static int call_domain_destroy(struct client *asking, uint32_t domid)
{
	struct hypervisor *hypervisor = asking->hypervisor;
	struct domain *domain = domain_find_alive(hypervisor, domid);
	struct client *client;

	if (!domain)
		return -ESRCH;
	if (!domid)
		return -EPERM;
	if (asking->domain == domain)
		return -EDEADLK;
	atomic_store(&domain->arena->dead, 1);
	/* The domain's own processes lose the host; what they shared or bound is gone at once. */
	LIST_FOREACH(client, &hypervisor->clients, link) {
		if (client->domain != domain)
			continue;
		client_release(client);
		client->domain = NULL;
		client->broken = true;
	}
	domain->state = XEN_DOMAIN_DEAD;
	if (!domain->nr_mappings)
		domain_free(domain);
	hypervisor->hooks->domain_released(hypervisor->hook_arg, domid, true);
	return 0;
}

static int call_domain(struct client *client, const struct loopback_request *request,
		       struct answer *answer)
{
	struct hypervisor *hypervisor = client->hypervisor;
	const struct hypervisor_hooks *hooks = hypervisor->hooks;
	struct domain *domain = domain_find(hypervisor, request->domid);
	int err;

	if (request->operation == LOOPBACK_DOMAIN_STATE) {
		answer->reply.value = domain ? domain->state : XEN_DOMAIN_DEAD;
		return 0;
	}
	if (client->domain->domid)
		return -EPERM; /* a toolstack's work */
	if (request->operation == LOOPBACK_DOMAIN_CREATE) {
		err = domain_create(hypervisor, request->domid);
		if (err)
			return err;
		err = hooks->domain_created(hypervisor->hook_arg, request->domid);
		if (err)
			domain_free(domain_find_alive(hypervisor, request->domid));
		return err;
	}
	if (request->operation == LOOPBACK_DOMAIN_DESTROY)
		return call_domain_destroy(client, request->domid);
	if (!domain || domain->state == XEN_DOMAIN_DEAD)
		return -ESRCH;
	switch (request->operation) {
	case LOOPBACK_DOMAIN_INTRODUCE:
		hooks->domain_introduced(hypervisor->hook_arg, request->domid);
		break;
	case LOOPBACK_DOMAIN_SUSPEND:
		domain->state = XEN_DOMAIN_SUSPENDED;
		hooks->domain_released(hypervisor->hook_arg, request->domid, false);
		break;
	case LOOPBACK_DOMAIN_RESUME:
		domain->state = XEN_DOMAIN_RUNNING;
		break;
	}
	return 0;
}

static int call_audit(struct client *client, const struct loopback_request *request,
		      struct answer *answer)
{
	struct hypervisor *hypervisor = client->hypervisor;
	FILE *out;
	int out_fd = memfd_create("vbdisk-loopback-audit", MFD_CLOEXEC), fd;

	if (out_fd < 0)
		return -errno;
	fd = dup(out_fd);
	out = fd < 0 ? NULL : fdopen(fd, "w");
	if (!out) {
		int err = -errno;

		if (fd >= 0)
			close(fd);
		close(out_fd);
		return err;
	}
	answer->reply.value = hypervisor->hooks->audit(hypervisor->hook_arg, out, request->flag,
						       request->grefs, request->nr);
	answer->own_fd = out_fd;
	answer_fd(answer, out_fd);
	return fclose(out) ? -errno : 0;
}

static int client_call(struct client *client, const struct loopback_request *request,
		       struct answer *answer)
{
	struct loopback_events *events = client->hypervisor->events;

	if (request->operation == LOOPBACK_HELLO)
		return call_hello(client, request, answer);
	if (!client->domain)
		return -EPROTO;
	switch (request->operation) {
	case LOOPBACK_GOODBYE:
		client_release(client);
		client->broken = true;
		return 0;
	case LOOPBACK_MAP:
		return call_map(client, request, answer);
	case LOOPBACK_UNMAP:
		return call_unmap(client, request);
	case LOOPBACK_ARENA:
		return call_arena(client, request, answer);
	case LOOPBACK_SHARE:
		return call_share(client, request, answer);
	case LOOPBACK_UNSHARE:
		return call_unshare(client, request);
	case LOOPBACK_ALLOC_UNBOUND:
		return call_alloc_unbound(client, request, answer);
	case LOOPBACK_BIND:
		return call_bind(client, request, answer);
	case LOOPBACK_UNBIND:
		return call_unbind(client, request);
	case LOOPBACK_PORT_PEER:
		return call_port_peer(client, request, answer);
	case LOOPBACK_DOMAIN_STATE:
	case LOOPBACK_DOMAIN_CREATE:
	case LOOPBACK_DOMAIN_INTRODUCE:
	case LOOPBACK_DOMAIN_SUSPEND:
	case LOOPBACK_DOMAIN_RESUME:
	case LOOPBACK_DOMAIN_DESTROY:
		return call_domain(client, request, answer);
	case LOOPBACK_REFUSE_GRANT:
		if (request->id > INT32_MAX || request->nr > INT32_MAX)
			return -EINVAL;
		/* Off while it changes, so that nobody acts on half of it. */
		atomic_store(&events->refuse_left, 0);
		atomic_store(&events->refuse_countdown, (int32_t)request->id);
		atomic_store(&events->refuse_left, (int32_t)request->nr);
		return 0;
	case LOOPBACK_AUDIT:
		return call_audit(client, request, answer);
	case LOOPBACK_STOP:
		client->hypervisor->stopping = true;
		return 0;
	default:
		return -ENOSYS;
	}
}

static int answer_send(struct client *client, struct answer *answer)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(LOOPBACK_FDS_MAX * sizeof(int))];
	} control = {0};
	struct iovec vector = {.iov_base = &answer->reply, .iov_len = sizeof(answer->reply)};
	struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1};
	size_t fds_bytes = answer->reply.nr_fds * sizeof(int);

	if (fds_bytes) {
		message.msg_control = control.bytes;
		message.msg_controllen = CMSG_SPACE(fds_bytes);
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(fds_bytes);
		memcpy(CMSG_DATA(&control.align), answer->fds, fds_bytes);
	}
	return sendmsg(client->watch.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

/* Serve one packet. False if there was none, or the client is gone. */
static bool client_serve(struct client *client)
{
	struct hypervisor *hypervisor = client->hypervisor;
	const struct loopback_request *request = &hypervisor->packet.request;
	struct answer answer = {.own_fd = -1};
	ssize_t len = recv(client->watch.fd, hypervisor->packet.bytes, sizeof(hypervisor->packet.bytes),
			   MSG_DONTWAIT | MSG_TRUNC);
	size_t nr_list;

	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (len <= 0) {
		client->broken = true;
		return false;
	}
	nr_list = ((size_t)len - sizeof(*request)) / sizeof(uint32_t);
	if ((size_t)len < sizeof(*request) || nr_list > LOOPBACK_MAP_MAX ||
	    ((request->operation == LOOPBACK_MAP || request->operation == LOOPBACK_AUDIT) &&
	     nr_list != request->nr)) {
		log_limited(&hypervisor->malformed_limit, LOG_LEVEL_WARNING,
			    "pid %u: malformed control message of %zd bytes, disconnected", client->pid,
			    len);
		client->broken = true;
		return false;
	}
	hypervisor->asking = client;
	answer.reply.status = client_call(client, request, &answer);
	hypervisor->asking = NULL;
	/* Whoever does not read his answers cannot have many calls under way. */
	if (answer_send(client, &answer))
		client->broken = true;
	if (answer.own_fd >= 0)
		close(answer.own_fd);
	return !client->broken;
}

static void client_ready(struct loop_watch *watch, uint32_t events)
{
	struct client *client = container_of(watch, struct client, watch);
	struct hypervisor *hypervisor = client->hypervisor;

	(void)events;
	client_serve(client);
	clients_reap(hypervisor);
	if (hypervisor->stopping)
		hypervisor->hooks->stop(hypervisor->hook_arg);
}

static void listener_ready(struct loop_watch *watch, uint32_t events)
{
	struct hypervisor *hypervisor = container_of(watch, struct hypervisor, listener);
	struct ucred credentials = {0};
	socklen_t len = sizeof(credentials);
	struct client *client;
	int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)events;
	if (fd < 0) {
		if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR)
			log_error("cannot accept a client: %s", strerror(errno));
		return;
	}
	client = calloc(1, sizeof(*client));
	if (!client) {
		log_error("no memory for a client");
		close(fd);
		return;
	}
	if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &len))
		client->pid = (uint32_t)credentials.pid;
	client->hypervisor = hypervisor;
	client->next_id = 1;
	client->wake_fd = -1;
	client->watch = (struct loop_watch){.fd = fd, .ready = client_ready};
	LIST_INIT(&client->mappings);
	LIST_INIT(&client->shares);
	LIST_INIT(&client->ports);
	LIST_INSERT_HEAD(&hypervisor->clients, client, link);
	if (loop_watch(hypervisor->loop, &client->watch, EPOLLIN)) {
		log_error("cannot watch a client");
		client_close(client);
	}
}

void hypervisor_settle(struct hypervisor *hypervisor)
{
	struct client *client;

	LIST_FOREACH(client, &hypervisor->clients, link) {
		struct pollfd state = {.fd = client->watch.fd};

		if (client == hypervisor->asking || poll(&state, 1, 0) != 1 ||
		    !(state.revents & (POLLHUP | POLLERR)))
			continue;
		/* Its last calls no longer matter: all they could do is undone here. */
		client_release(client);
		client->broken = true;
	}
}

int hypervisor_start(struct loop *loop, const char *dir, const struct hypervisor_hooks *hooks,
		     void *hook_arg, struct hypervisor **hypervisor_out, struct error *error)
{
	struct hypervisor *hypervisor = calloc(1, sizeof(*hypervisor));
	int err;

	if (!hypervisor)
		return error_set(error, ENOMEM, "no memory for the hypervisor");
	hypervisor->loop = loop;
	hypervisor->hooks = hooks;
	hypervisor->hook_arg = hook_arg;
	hypervisor->next_port = 1;
	LIST_INIT(&hypervisor->domains);
	LIST_INIT(&hypervisor->clients);

	err = loopback_address(dir, LOOPBACK_SOCKET, &hypervisor->address);
	if (err) {
		err = error_set(error, -err, "%s: too long for a socket's path, choose a shorter directory",
				dir);
		goto err_free;
	}
	hypervisor->events_fd = memory_create("vbdisk-loopback-events", sizeof(*hypervisor->events));
	if (hypervisor->events_fd < 0) {
		err = error_set(error, -hypervisor->events_fd, "cannot create shared memory: %s",
				strerror(-hypervisor->events_fd));
		goto err_free;
	}
	hypervisor->events = mmap(NULL, sizeof(*hypervisor->events), PROT_READ | PROT_WRITE, MAP_SHARED,
				  hypervisor->events_fd, 0);
	if (hypervisor->events == MAP_FAILED) {
		err = error_set(error, errno, "cannot map shared memory: %s", strerror(errno));
		goto err_close_events;
	}
	err = domain_create(hypervisor, 0);
	if (err) {
		err = error_set(error, -err, "cannot create domain 0: %s", strerror(-err));
		goto err_unmap_events;
	}
	hypervisor->listener.fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	hypervisor->listener.ready = listener_ready;
	if (hypervisor->listener.fd < 0 ||
	    bind(hypervisor->listener.fd, (struct sockaddr *)&hypervisor->address,
		 sizeof(hypervisor->address)) ||
	    listen(hypervisor->listener.fd, 128)) {
		err = error_set(error, errno, "cannot listen on %s: %s", hypervisor->address.sun_path,
				strerror(errno));
		goto err_close_listener;
	}
	err = loop_watch(loop, &hypervisor->listener, EPOLLIN);
	if (err) {
		err = error_set(error, -err, "cannot watch the control socket: %s", strerror(-err));
		goto err_unlink;
	}
	*hypervisor_out = hypervisor;
	return 0;

err_unlink:
	unlink(hypervisor->address.sun_path);
err_close_listener:
	if (hypervisor->listener.fd >= 0)
		close(hypervisor->listener.fd);
	domain_free(domain_find(hypervisor, 0));
err_unmap_events:
	munmap(hypervisor->events, sizeof(*hypervisor->events));
err_close_events:
	close(hypervisor->events_fd);
err_free:
	free(hypervisor);
	return err;
}

void hypervisor_stop(struct hypervisor *hypervisor)
{
	struct client *client;
	struct domain *domain;

	if (!hypervisor)
		return;
	while ((client = LIST_FIRST(&hypervisor->clients)))
		client_close(client);
	while ((domain = LIST_FIRST(&hypervisor->domains)))
		domain_free(domain);
	loop_unwatch(hypervisor->loop, &hypervisor->listener);
	unlink(hypervisor->address.sun_path);
	close(hypervisor->listener.fd);
	munmap(hypervisor->events, sizeof(*hypervisor->events));
	close(hypervisor->events_fd);
	free(hypervisor);
}

/* --- Audit --- */

static void client_describe(struct client *client, struct hypervisor_client_info *info)
{
	const struct mapping *mapping;
	const struct share *share;
	const struct port *port;

	*info = (struct hypervisor_client_info){
		.domid = client->domain ? client->domain->domid : 0,
		.pid = client->pid,
		.asking = client == client->hypervisor->asking,
	};
	LIST_FOREACH(mapping, &client->mappings, link)
		info->nr_mapped += mapping->nr;
	LIST_FOREACH(share, &client->shares, link)
		info->nr_shared += share->nr;
	LIST_FOREACH(port, &client->ports, link) {
		info->nr_ports++;
		info->nr_bound += port->peer != NULL;
	}
}

void hypervisor_clients(struct hypervisor *hypervisor,
			void (*show)(void *arg, const struct hypervisor_client_info *info), void *arg)
{
	struct hypervisor_client_info info;
	struct client *client;

	LIST_FOREACH(client, &hypervisor->clients, link) {
		if (client->broken)
			continue;
		client_describe(client, &info);
		show(arg, &info);
	}
}

static void totals_add(void *arg, const struct hypervisor_client_info *info)
{
	struct hypervisor_totals *totals = arg;

	totals->nr_clients++;
	totals->nr_shared += info->nr_shared;
	totals->nr_mapped += info->nr_mapped;
	totals->nr_ports += info->nr_ports;
	totals->nr_bound += info->nr_bound;
}

void hypervisor_totals(struct hypervisor *hypervisor, struct hypervisor_totals *totals)
{
	const struct domain *domain;

	*totals = (struct hypervisor_totals){0};
	hypervisor_clients(hypervisor, totals_add, totals);
	LIST_FOREACH(domain, &hypervisor->domains, link) {
		if (domain->state == XEN_DOMAIN_DEAD)
			totals->nr_zombies++;
		else
			totals->nr_domains++;
	}
}
