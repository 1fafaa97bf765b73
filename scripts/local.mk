# SPDX-License-Identifier: GPL-2.0-or-later
# Scripts and units.

EXTRA_DIST += scripts/vbdiskd.service.in
CLEANFILES += scripts/vbdiskd.service
nodist_systemdsystemunit_DATA = scripts/vbdiskd.service

scripts/vbdiskd.service: $(srcdir)/scripts/vbdiskd.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) scripts && \
	$(SED) -e 's|@sbindir[@]|$(sbindir)|g' $(srcdir)/scripts/vbdiskd.service.in >$@

EXTRA_DIST += scripts/check scripts/install-deps scripts/quickstart scripts/quickstart-loopback scripts/xen-lab \
	scripts/lab/boot.sh scripts/lab/build.sh scripts/lab/common.sh scripts/lab/fetch.sh scripts/lab/project.sh \
	scripts/lab/disk-work.c scripts/lab/grace-period.c \
	scripts/lab/dom0-agent scripts/lab/dom0-init scripts/lab/dom0-initrd-init \
	scripts/lab/guest-init scripts/lab/guest-lib scripts/lab/guest-root-inittab scripts/lab/guest-root-rc
