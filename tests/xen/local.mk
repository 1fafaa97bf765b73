# SPDX-License-Identifier: GPL-2.0-or-later
# Tests on a real Xen host; tests/xen/run runs them (not part of make check: they boot a machine).

EXTRA_DIST += tests/xen/run tests/xen/lib.sh tests/xen/dom0-job.sh tests/xen/dom0-one.sh \
	tests/xen/10-first-light.sh tests/xen/20-hotplug.sh tests/xen/22-attach-dom0.sh \
	tests/xen/24-features.sh tests/xen/26-reload.sh tests/xen/28-persistent.sh \
	tests/xen/30-shutdown.sh tests/xen/32-destroy-under-load.sh tests/xen/34-reboot.sh tests/xen/36-suspend.sh \
	tests/xen/40-unservable.sh tests/xen/50-readonly.sh tests/xen/52-large-sectors.sh tests/xen/60-two-guests.sh \
	tests/xen/70-root-disk.sh tests/xen/80-idle.sh tests/xen/85-vbdiskd-restart.sh \
	tests/xen/90-front.sh tests/xen/98-tap.sh
