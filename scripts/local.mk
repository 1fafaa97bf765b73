# SPDX-License-Identifier: GPL-2.0-or-later
# Scripts and units.

EXTRA_DIST += scripts/vbdiskd.service.in
CLEANFILES += scripts/vbdiskd.service
nodist_systemdsystemunit_DATA = scripts/vbdiskd.service

scripts/vbdiskd.service: $(srcdir)/scripts/vbdiskd.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) scripts && \
	$(SED) -e 's|@sbindir[@]|$(sbindir)|g' $(srcdir)/scripts/vbdiskd.service.in >$@
