# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# Downloads of the Xen lab: Debian packages, resolved against an empty system, never installed here.
#
# Owns: the pieces "debs-*" and the private apt state. Trusts: Debian's signing keys.
# Runs on: the build machine; blocks on the network. Must not know: what the packages become.

# Point apt at an empty package database and at the wanted release on this machine's own Debian mirrors.
apt_private() {
	local state=$release_cache/apt sources
	mkdir -p "$state"/lists/partial "$state"/cache/archives/partial "$state"/etc
	sources=$(apt_sources)
	if [ -z "$sources" ]; then
		say "apt: this machine has no package lists yet, fetching them"
		logged "apt-get update" apt-get update
		sources=$(apt_sources)
	fi
	[ -n "$sources" ] ||
		die $LAB_NOT_BUILT "no Debian source found: /etc/apt/sources.list* must name a Debian mirror"
	printf '%s\n' "$sources" >"$state/etc/sources.list"
	: >"$state/status"
	cat >"$state/apt.conf" <<A
Dir::Etc::parts "/dev/null";
Dir::Etc::sourcelist "$state/etc/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::State "$state";
Dir::State::status "$state/status";
Dir::Cache "$state/cache";
Dir::Log "$state";
APT::Architecture "amd64";
APT::Sandbox::User "root";
APT::Install-Recommends "false";
Acquire::Languages "none";
Acquire::Retries "3";
Debug::NoLocking "true";
A
}

# Lines for sources.list: the mirrors this machine takes Debian itself from, with the lab's release in place of its own.
apt_sources() {
	local uri suite own
	# shellcheck disable=SC1091
	own=$(. /etc/os-release && echo "$VERSION_CODENAME")
	apt-get indextargets --format '$(ORIGIN) $(REPO_URI) $(CODENAME) $(COMPONENT)' 'Created-By: Packages' |
		awk '$1 == "Debian" && $4 == "main" { print $2, $3 }' | sort -u |
		while read -r uri suite; do
			case $suite in
			"$own" | "$own"-updates | "$own"-security)
				echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $uri $codename${suite#"$own"} main"
				;;
			esac
		done
}

# Names that the release decides: the newest hypervisor, and the kernel its metapackage stands for.
apt_discover() {
	xen_version=$(apt-cache pkgnames xen-hypervisor- |
		sed -n 's/^xen-hypervisor-\([0-9.]*\)-amd64$/\1/p' | sort -V | tail -n 1)
	kernel_version=$(apt-cache depends linux-image-amd64 |
		sed -n 's/^ *Depends: linux-image-\([0-9].*-amd64\)$/\1/p' | head -n 1)
	[ -n "$xen_version" ] || die $LAB_NOT_BUILT "no xen-hypervisor package in $codename"
	[ -n "$kernel_version" ] || die $LAB_NOT_BUILT "linux-image-amd64 names no kernel in $codename"
}

apt_fetch() { # FOLDER PACKAGE...: these and all they depend on
	local folder=$1
	shift
	mkdir -p "$folder/partial"
	logged "the download of $*" apt-get -o Dir::Cache::archives="$folder" install -y --download-only "$@"
	rmdir "$folder/partial" 2>/dev/null || rm -rf "$folder/partial"
	rm -f "$folder/lock"
}

fetch_lab() { # FOLDER
	local -x APT_CONFIG
	apt_private
	APT_CONFIG=$release_cache/apt/apt.conf
	say "apt: reading the package lists of $codename"
	logged "apt-get update for $codename" apt-get update
	apt_discover
	say "apt: $codename has Xen $xen_version and Linux $kernel_version; downloading"
	mkdir -p "$1/boot"
	(cd "$1/boot" && logged "the download of kernel and hypervisor" \
		apt-get download "xen-hypervisor-$xen_version-amd64" "linux-image-$kernel_version")
	# shellcheck disable=SC2086
	apt_fetch "$1/dom0" "xen-utils-$xen_version" $packages_dom0
	printf 'xen_version=%s\nkernel_version=%s\n' "$xen_version" "$kernel_version" >"$1/versions"
	say "apt: $(find "$1" -name '*.deb' | wc -l) packages, $(du -shc "$1" | tail -n 1 | cut -f1)"
}

fetch_buildroot() { # FOLDER
	local -x APT_CONFIG
	apt_private
	APT_CONFIG=$release_cache/apt/apt.conf
	logged "apt-get update for $codename" apt-get update
	# shellcheck disable=SC2086
	apt_fetch "$1/debs" $packages_buildroot
}

stamp_debs() {
	hash_of "$packages_dom0" @"$lab_dir/fetch.sh"
}

fetch_all() {
	piece debs "$(stamp_debs)" fetch_lab
}
