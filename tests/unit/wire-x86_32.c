// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The wire of x86_32-abi: blkif.h with u64 aligned to 4 bytes, as i386 does it (see wire.h).
 *
 * Owns: wire_x86_32. Trusts: the headers. Runs on: the test. Must not know: the backend.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* ring.h takes xen_mb() and its kin from us, if the interface is not older than Xen 3.2. */
#define __XEN_INTERFACE_VERSION__ 0x00040e00
#define xen_mb() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define xen_rmb() __atomic_thread_fence(__ATOMIC_ACQUIRE)
#define xen_wmb() __atomic_thread_fence(__ATOMIC_RELEASE)
#pragma pack(push, 4)
#include <xen/io/blkif.h>
#pragma pack(pop)

#define WIRE_NAME wire_x86_32
#include "tests/unit/wire-impl.h"
