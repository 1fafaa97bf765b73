/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What the toolstack's command line asks of a device model, read as data.
 *
 * Owns: the table of QEMU options that matter, and the decision who serves the guest: we, or QEMU.
 * Trusts / does not trust: the command line comes from libxl, i.e. from root, but the guest's name and
 *   device_model_args in it are text of any shape. Nothing overflows, nothing is guessed: a malformed
 *   option we depend on is refused.
 * Runs on: start-up; pure, no system call, never blocks.
 * Must not know: sockets, xenstore, QMP.
 */
#ifndef VBDISK_DM_ARGS_H
#define VBDISK_DM_ARGS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/un.h>

#include "error.h"

#define DM_DOMID_MAX 0x7fefu /* DOMID_FIRST_RESERVED - 1 of xen/xen.h */

/* A control socket (QEMU: -chardev socket,server=on). Exactly one of path and fd if @given. */
struct dm_socket {
	bool given;
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)]; /* "" if it is an inherited fd */
	int fd; /* already listening; -1 if a path */
};

struct dm_args {
	bool help;
	bool version;
	bool has_domid;
	uint32_t domid;
	char name[256];		  /* the guest's, cut to fit; "" if not given */
	char machine[64];	  /* "xenpv", "none", ...; "" if not given */
	bool background;	  /* -daemonize or -pidfile was asked for */
	struct dm_socket libxl;	  /* chardev libxl-cmd: libxl's QMP connection */
	struct dm_socket xenstat; /* chardev libxenstat-cmd: xentop's */
	char qemu_reason[256]; /* the first option that only QEMU can honour; "" if there is none */
};

enum dm_role {
	DM_ROLE_SERVE, /* a PV or PVH guest that needs disks only */
	DM_ROLE_PROBE, /* libxl asks what the program can do, on an inherited socket */
	DM_ROLE_QEMU,  /* exec QEMU; dm_args.qemu_reason says why */
};

/* Read @argv[1..argc-1] into @args. 0, or -EINVAL with @error filled. After --help or --version the
 * rest is not read. */
int dm_args_parse(int argc, char *const argv[], struct dm_args *args, struct error *error);

/* Decide by @args alone (xenstore may still add a reason for QEMU); fills @args->qemu_reason for
 * DM_ROLE_QEMU. 0, or -EINVAL with @error filled. */
int dm_args_role(struct dm_args *args, enum dm_role *role_out, struct error *error);

#endif
