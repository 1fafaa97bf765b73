/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The loopback host as a whole: the hypervisor and the xenstore server on one event loop.
 *
 * Owns: the directory (by a lock on it), the loop, both servers, what one tells the other.
 * Trusts / does not trust: clients are the servers' business.
 * Runs on: the thread that calls loopback_host_run().
 * Must not know: the toolstack.
 */
#ifndef VBDISK_LOOPBACK_HOST_H
#define VBDISK_LOOPBACK_HOST_H

#include "error.h"

struct loopback_server;

/* Serve in @dir, which is created if it is not there. SIGTERM and SIGINT end the host from now on.
 * 0, or -errno with @error. */
int loopback_server_start(const char *dir, struct loopback_server **server_out,
			  struct error *error);

/* Serve until told to end by a signal or a client. 0 or -errno. */
int loopback_server_run(struct loopback_server *server);

/* Disconnect everybody and remove the sockets. NULL is fine. */
void loopback_server_stop(struct loopback_server *server);

#endif
