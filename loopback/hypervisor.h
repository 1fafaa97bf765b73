/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The hypervisor of the loopback host: domains, grants and event channels for its clients.
 *
 * Owns: DIR/hypervisor, its clients, the truth about who shares, maps and binds what.
 * Trusts / does not trust: a client may send anything, stop reading, or die at any moment; only its
 *   own things suffer. Shared memory is written, never believed.
 * Runs on: the host's one thread, from its event loop; never blocks.
 * Must not know: xenstore (hooks tell it what happens to domains).
 */
#ifndef VBDISK_LOOPBACK_HYPERVISOR_H
#define VBDISK_LOOPBACK_HYPERVISOR_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "backend/event-loop.h"
#include "error.h"

struct hypervisor;

/* What the hypervisor tells the rest of the host. */
struct hypervisor_hooks {
	/* A domain came into being. 0, or -errno to refuse it. */
	int (*domain_created)(void *arg, uint32_t domid);
	/* Its xenstore may be used; the rest of the host is to be told. */
	void (*domain_introduced)(void *arg, uint32_t domid);
	/* It stopped (suspended), or it is gone (dead). */
	void (*domain_released)(void *arg, uint32_t domid, bool dead);
	/* Write the whole host's audit to @out. Returns how many things are there beyond the base.
	 */
	unsigned (*audit)(void *arg, FILE *out, bool json, const uint32_t *ignored_pids,
			  unsigned nr_ignored);
	/* Somebody asked the host to end. */
	void (*stop)(void *arg);
};

/* Serve @dir/hypervisor from @loop; @hooks and @hook_arg must outlive it. 0, or -errno with @error.
 */
int hypervisor_start(struct loop *loop, const char *dir, const struct hypervisor_hooks *hooks,
		     void *hook_arg, struct hypervisor **hypervisor_out, struct error *error);

/* Disconnect every client, remove the socket. NULL is fine. */
void hypervisor_stop(struct hypervisor *hypervisor);

/* Notice now which clients are gone (a killed one's socket is closed before its parent can know).
 */
void hypervisor_settle(struct hypervisor *hypervisor);

/* What is shared, mapped, allocated or bound, in all. */
struct hypervisor_totals {
	unsigned nr_domains, nr_zombies; /* zombie: dead, but its grants are still mapped */
	unsigned nr_clients, nr_shared, nr_mapped, nr_ports, nr_bound;
};
void hypervisor_totals(struct hypervisor *hypervisor, struct hypervisor_totals *totals);

/* One client, for the audit. @pid is the process that connected. */
struct hypervisor_client_info {
	uint32_t domid, pid;
	unsigned nr_shared, nr_mapped, nr_ports, nr_bound;
	bool asking; /* the client whose call is being served */
};

/* Call @show for each client. */
void hypervisor_clients(struct hypervisor *hypervisor,
			void (*show)(void *arg, const struct hypervisor_client_info *info),
			void *arg);

#endif
