// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The hypervisor of the loopback host: domains, grants and event channels for its clients.
 *
 * Owns: DIR/hypervisor, its clients and domains; the calls, which it hands to grants and ports.
 * Trusts / does not trust: a client may send anything, stop reading, or die at any moment; only its
 *   own things suffer. Shared memory is written, never believed.
 * Runs on: the host's one thread, from its event loop; never blocks.
 * Must not know: xenstore.
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

#include "container.h"
#include "loopback/hypervisor-internal.h"

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

struct domain *domain_find_alive(struct hypervisor *hypervisor, uint32_t domid)
{
	struct domain *domain = domain_find(hypervisor, domid);

	return domain && domain->state != XEN_DOMAIN_DEAD ? domain : NULL;
}

void domain_free(struct domain *domain)
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

/* --- Clients --- */

void client_wake(struct client *client)
{
	uint64_t one = 1;

	/* It can only fail when the counter is full, and then the descriptor is readable anyhow. */
	if (write(client->wake_fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
		log_error("pid %u: cannot wake it: %s", client->pid, strerror(errno));
}

static void client_release(struct client *client)
{
	client_release_ports(client);
	client_release_grants(client);
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
	ssize_t len = recv(client->watch.fd, hypervisor->packet.bytes,
			   sizeof(hypervisor->packet.bytes), MSG_DONTWAIT | MSG_TRUNC);
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
			    "pid %u: malformed control message of %zd bytes, disconnected",
			    client->pid, len);
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
			log_limited(&hypervisor->accept_limit, LOG_LEVEL_ERROR,
				    "cannot accept a client: %s", strerror(errno));
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
		err = error_set(error, -err,
				"%s: too long for a socket's path, choose a shorter directory",
				dir);
		goto err_free;
	}
	hypervisor->events_fd =
		memory_create("vbdisk-loopback-events", sizeof(*hypervisor->events));
	if (hypervisor->events_fd < 0) {
		err = error_set(error, -hypervisor->events_fd, "cannot create shared memory: %s",
				strerror(-hypervisor->events_fd));
		goto err_free;
	}
	hypervisor->events = mmap(NULL, sizeof(*hypervisor->events), PROT_READ | PROT_WRITE,
				  MAP_SHARED, hypervisor->events_fd, 0);
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
		err = error_set(error, errno, "cannot listen on %s: %s",
				hypervisor->address.sun_path, strerror(errno));
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
			void (*show)(void *arg, const struct hypervisor_client_info *info),
			void *arg)
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
