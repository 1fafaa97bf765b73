# SPDX-License-Identifier: GPL-2.0-or-later
# The benchmarks.
EXTRA_DIST += bench/idle-footprint-lab.sh
EXTRA_DIST += bench/idle-footprint.sh
