# SPDX-License-Identifier: GPL-2.0-or-later
# Programs for people and for the toolstack.

include tools/dm.mk
