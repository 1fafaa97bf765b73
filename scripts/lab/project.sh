# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# Compiles vbdisk for a release of the lab, outside of the source tree.
#
# Owns: the pieces buildroot and install. Trusts: the source tree and Debian's packages.
# Runs on: the build machine, as root when the release is not this machine's own. Must not know: the lab's machine.

# Every file of the source tree: what git knows or would add; without git all but what a build makes.
source_files() { # zero-terminated, relative to the tree
	if ! git -C "$source_dir" ls-files -co --exclude-standard -z 2>/dev/null; then
		(cd "$source_dir" && find . -name .git -prune -o -name autom4te.cache -prune -o -name build-aux -prune -o \
			-type f ! -name '*.o' ! -name '*.a' ! -name Makefile ! -name Makefile.in ! -name configure ! -name 'config.*' -printf '%P\0')
	fi | while IFS= read -r -d '' file; do
		# Of a tree with uncommitted deletions git names files that are gone.
		[ ! -f "$source_dir/$file" ] || printf '%s\0' "$file"
	done | LC_ALL=C sort -z
}

# Scripts that nothing installs do not make a new build.
stamp_install() {
	source_files | grep -zvE '^(tests/xen/|scripts/(lab/|xen-lab|quickstart|check|install-deps)|bench/.*\.sh$|.*\.md$|\.ci/)' |
		(cd "$source_dir" && xargs -0 sha256sum; declare -f build_install project_compile; stamp_buildroot) |
		sha256sum | cut -d' ' -f1
}

build_is_native() {
	# shellcheck disable=SC1091
	[ "$(. /etc/os-release && echo "$VERSION_CODENAME")" = "$codename" ]
}

stamp_buildroot() {
	hash_of "$packages_buildroot" "$(declare -f build_buildroot fetch_buildroot)"
}

# An unpacked Debian of the lab's release, to compile in with chroot.
build_buildroot() { # FOLDER
	local root=$1/root deb tool
	fetch_buildroot "$1"
	mkdir -p "$root"/usr/{bin,sbin,lib,lib64,lib32,libx32} "$root"/{dev,proc,tmp,src}
	for dir in bin sbin lib lib64 lib32 libx32; do
		ln -s usr/$dir "$root/$dir"
	done
	for deb in "$1"/debs/*.deb; do
		dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$root" --keep-directory-symlink \
			--exclude='./usr/share/doc/*' --exclude='./usr/share/man/*' --exclude='./usr/share/locale/*'
	done
	rm -rf "$1/debs"
	# What the packages' scripts, which never run here, would have linked.
	ln -sf dash "$root/bin/sh"
	ln -sf gawk "$root/usr/bin/awk"
	for tool in automake aclocal; do
		[ -e "$root/usr/bin/$tool" ] || ln -s "$(basename "$(find "$root/usr/bin" -name "$tool-1.*" | head -n 1)")" "$root/usr/bin/$tool"
	done
	ldconfig -r "$root"
}

buildroot_devices() { # ROOT
	local device
	mkdir -p "$1/dev"
	for device in "null 3" "zero 5" "random 8" "urandom 9"; do # Linux devices.txt: character devices of major 1
		set -- "$1" "${device% *}" "${device#* }"
		[ -c "$1/dev/$2" ] || mknod -m 666 "$1/dev/$2" c 1 "$3" ||
			die $LAB_NOT_BUILT "building for Debian $release needs to make device nodes (a container wants CAP_MKNOD)"
	done
}

# Runs in the folder that holds src/; leaves the installed programs in tree/.
project_compile() {
	set -e
	(cd src && ./bootstrap)
	mkdir build
	cd build
	../src/configure --prefix=/usr --sysconfdir=/etc --localstatedir=/var
	make -j"$(nproc)"
	make install DESTDIR="$PWD/../tree"
}

build_install() { # FOLDER
	local work=$1/work
	mkdir -p "$work/src"
	source_files | tar -C "$source_dir" --null -T - -cf - | tar -C "$work/src" -xf -
	if build_is_native; then
		tool_need autoreconf autoconf
		tool_need automake automake
		tool_need gcc gcc
		tool_need make make
		logged "the build of vbdisk" bash -c "$(declare -f project_compile); cd '$work'; project_compile"
	else
		[ "$(id -u)" = 0 ] || die $LAB_NOT_BUILT "building for Debian $release on another release needs root (chroot)"
		# Without any mount, so that it works in a container, too; the build needs no /proc, and few devices.
		local root=$release_cache/buildroot/root
		buildroot_devices "$root"
		rm -rf "$root/work"
		mv "$work" "$root/work"
		logged "the build of vbdisk for Debian $release" env -i PATH=/usr/sbin:/usr/bin HOME=/ \
			chroot "$root" /bin/bash -c "$(declare -f project_compile); cd /work; project_compile"
		mv "$root/work" "$work"
	fi
	mv "$work/tree" "$1/tree"
	rm -rf "$work"
}

# The installed tree for the selected release is in $release_cache/install/tree afterwards.
project_build() {
	build_is_native || piece buildroot "$(stamp_buildroot)" build_buildroot
	piece install "$(stamp_install)" build_install
}
