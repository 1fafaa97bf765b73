/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The inside of the loopback host's hypervisor, shared by its files.
 *
 * Owns: the records of domains, grants, ports and clients.
 * Trusts / does not trust: a call's fields are the client's, unchecked.
 * Runs on: the host's one thread; nothing here blocks.
 * Must not know: xenstore.
 *
 * Files: hypervisor.c (domains, clients, the calls), hypervisor-grants.c, hypervisor-ports.c.
 */
#ifndef VBDISK_LOOPBACK_HYPERVISOR_INTERNAL_H
#define VBDISK_LOOPBACK_HYPERVISOR_INTERNAL_H

#include <sys/queue.h>

#include "backend/log.h"
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
	struct grant *grants;	      /* [LOOPBACK_NR_GREFS] */
	unsigned nr_mappings;	      /* of all its grants */
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
	struct log_limit malformed_limit, accept_limit;
	int events_fd;
	struct loopback_events *events;
	uint32_t next_port;
	struct port ports[LOOPBACK_NR_PORTS];
	LIST_HEAD(, domain) domains;
	LIST_HEAD(, client) clients;
	union {
		struct loopback_request request;
		uint8_t bytes[sizeof(struct loopback_request) +
			      LOOPBACK_MAP_MAX * sizeof(uint32_t)];
	} packet; /* the call in hand */
};

/* What a call sends back besides its status. */
struct answer {
	struct loopback_reply reply;
	int fds[LOOPBACK_FDS_MAX];
	int own_fd; /* to be closed after sending, or -1 */
};

/* Let @fd, which stays ours, travel with the answer. */
static inline void answer_fd(struct answer *answer, int fd)
{
	answer->fds[answer->reply.nr_fds++] = fd;
}

/* --- hypervisor.c --- */

/* The domain of this number, if it is not dead. */
struct domain *domain_find_alive(struct hypervisor *hypervisor, uint32_t domid);

/* Forget a domain that nobody uses any more. */
void domain_free(struct domain *domain);

/* Make the client's descriptor readable. */
void client_wake(struct client *client);

/* --- hypervisor-grants.c: the calls of loopback-protocol.h; each 0 or -errno --- */

int call_share(struct client *client, const struct loopback_request *request,
	       struct answer *answer);
int call_unshare(struct client *client, const struct loopback_request *request);
int call_map(struct client *client, const struct loopback_request *request, struct answer *answer);
int call_unmap(struct client *client, const struct loopback_request *request);
int call_arena(struct client *client, const struct loopback_request *request,
	       struct answer *answer);

/* Revoke everything the client shares, drop everything it maps. */
void client_release_grants(struct client *client);

/* --- hypervisor-ports.c --- */

int call_alloc_unbound(struct client *client, const struct loopback_request *request,
		       struct answer *answer);
int call_bind(struct client *client, const struct loopback_request *request, struct answer *answer);
int call_unbind(struct client *client, const struct loopback_request *request);
int call_port_peer(struct client *client, const struct loopback_request *request,
		   struct answer *answer);

/* Close every port of the client. */
void client_release_ports(struct client *client);

#endif
