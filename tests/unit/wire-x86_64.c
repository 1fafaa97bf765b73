// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The wire of x86_64-abi, which is also arm-abi: blkif.h as a 64-bit compiler lays it out.
 *
 * Owns: wire_x86_64. Trusts: the headers. Runs on: the test. Must not know: the backend.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* ring.h takes xen_mb() and its kin from us, if the interface is not older than Xen 3.2. */
#define __XEN_INTERFACE_VERSION__ 0x00040e00
#define xen_mb() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define xen_rmb() __atomic_thread_fence(__ATOMIC_ACQUIRE)
#define xen_wmb() __atomic_thread_fence(__ATOMIC_RELEASE)
#include <xen/io/blkif.h>

#define WIRE_NAME wire_x86_64
#include "tests/unit/wire-impl.h"
