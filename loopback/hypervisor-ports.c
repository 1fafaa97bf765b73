// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Event channels of the loopback host: who may signal whom.
 *
 * Owns: the table of ports. Their pending and masked bits live in shared memory, where clients set
 *   them without asking us; here is only who owns and who is bound to which.
 * Trusts / does not trust: a client may name any port; it can close and ask for its own only.
 * Runs on: the host's one thread; never blocks.
 * Must not know: grants, xenstore.
 */
#include "config.h"

#include <errno.h>

#include "loopback/hypervisor-internal.h"

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

int call_alloc_unbound(struct client *client, const struct loopback_request *request,
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

int call_bind(struct client *client, const struct loopback_request *request, struct answer *answer)
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

int call_unbind(struct client *client, const struct loopback_request *request)
{
	struct port *port = port_of(client, request->id);

	if (!port)
		return -EINVAL;
	port_close(client->hypervisor, port);
	return 0;
}

int call_port_peer(struct client *client, const struct loopback_request *request,
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

void client_release_ports(struct client *client)
{
	struct port *port;

	while ((port = LIST_FIRST(&client->ports)))
		port_close(client->hypervisor, port);
}
