# SPDX-License-Identifier: GPL-2.0-or-later
# Everything that talks to xenstore.

noinst_LIBRARIES += xenstore/libxenstore_side.a
xenstore_libxenstore_side_a_SOURCES = \
	xenstore/store.c xenstore/store.h \
	xenstore/vbd-nodes.c xenstore/vbd-nodes.h \
	xenstore/xenbus-state.c xenstore/xenbus-state.h
