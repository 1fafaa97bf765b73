# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# Turns the downloaded packages into what QEMU boots: hypervisor, kernel, dom0's root and initrd, the guests' disk.
#
# Owns: the pieces kernel, dom0, initrd, guest. Trusts: the packages (they are unpacked, their scripts never run).
# Runs on: the build machine, as root; minutes. Must not know: how the images are booted.

versions_read() {
	# shellcheck disable=SC1091
	. "$release_cache/debs/versions"
}

# Hypervisor and kernel as plain ELF (decompressing them under emulation takes a minute), and the modules.
build_kernel() { # FOLDER
	local new=$1 package=$1/package
	mkdir -p "$package"
	for deb in "$release_cache"/debs/boot/*.deb; do
		dpkg-deb -x "$deb" "$package"
	done
	zcat "$package/boot/xen-$xen_version-amd64.gz" >"$new/xen.elf"
	kernel_unpack "$package/boot/vmlinuz-$kernel_version" >"$new/vmlinux"
	mkdir -p "$new/lib"
	# Debian 13 keeps modules under /usr/lib and compresses them; here all become plain files under lib/.
	for dir in "$package/lib/modules" "$package/usr/lib/modules"; do
		[ ! -d "$dir" ] || mv "$dir" "$new/lib/modules"
	done
	find "$new/lib/modules" -name '*.ko.xz' -exec xz -d {} +
	depmod -b "$new" "$kernel_version"
	rm -rf "$package"
}

# The ELF payload of a bzImage: boot protocol header fields setup_sects, payload_offset, payload_length.
kernel_unpack() { # VMLINUZ
	local setup_sects offset length payload
	setup_sects=$(od -An -tu1 -j $((0x1f1)) -N 1 "$1")
	offset=$(od -An -tu4 -j $((0x248)) -N 4 "$1")
	length=$(od -An -tu4 -j $((0x24c)) -N 4 "$1")
	payload=$release_cache/payload
	# The last four bytes of the payload are its unpacked size, no part of the compressed stream.
	tail -c +$(((setup_sects + 1) * 512 + offset + 1)) "$1" | head -c $((length - 4)) >"$payload" || true
	case $(od -An -tx1 -N 4 "$payload" | tr -d ' ') in
	fd377a58) xz -dc --single-stream <"$payload" ;;
	28b52ffd) zstd -dc <"$payload" ;;
	1f8b*) zcat <"$payload" ;;
	*) die $LAB_NOT_BUILT "$1: the kernel's compression is unknown" ;;
	esac
	rm -f "$payload"
}

modules_copy() { # ROOT MODULE...: with all they depend on
	local root=$1 target=$1/lib/modules/$kernel_version from=$release_cache/kernel/lib/modules/$kernel_version module file
	shift
	mkdir -p "$target"
	for module in "$@"; do
		modprobe -d "$release_cache/kernel" -S "$kernel_version" --show-depends "$module" 2>/dev/null |
			awk '$1 == "insmod" { print $2 }' |
			while read -r file; do
				install -D -m 644 "$file" "$target/${file##*/lib/modules/"$kernel_version"/}"
			done
	done
	cp "$from"/modules.{order,builtin,builtin.modinfo} "$target"
	depmod -b "$root" "$kernel_version"
}

cpio_make() { # FOLDER IMAGE
	(cd "$1" && find . | cpio --quiet -o -H newc -R 0:0) >"$2"
}

ext4_make() { # FOLDER IMAGE LABEL SIZE_MIB
	truncate -s "$4M" "$2"
	logged "mkfs.ext4 of $3" mkfs.ext4 -q -F -L "$3" -O ^has_journal -E lazy_itable_init=1,root_owner=0:0 -m 0 -d "$1" "$2"
}

build_dom0() { # FOLDER
	local root=$1/root deb size_mib
	mkdir -p "$root"/usr/{bin,sbin,lib,lib64,lib32,libx32}
	for dir in bin sbin lib lib64 lib32 libx32; do
		ln -s usr/$dir "$root/$dir"
	done
	for deb in "$release_cache"/debs/dom0/*.deb; do
		dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$root" --keep-directory-symlink \
			--exclude='./usr/share/doc/*' --exclude='./usr/share/man/*' --exclude='./usr/share/locale/*' \
			--exclude='./usr/share/info/*' --exclude='./usr/lib/ipxe/*' --exclude='./usr/share/iso-codes/*' \
			--exclude='./usr/share/icons/*' --exclude='./usr/lib/udev/hwdb.d/*'
	done
	# shellcheck disable=SC2086
	modules_copy "$root" $modules_dom0
	mkdir -p "$root"/{proc,sys,dev,run,tmp,job,data,guest,mnt,root} "$root"/var/lib/{xen,xenstored} "$root"/var/log/xen/console
	rm -rf "$root/var/run"
	ln -s /run "$root/var/run"
	ln -sf /proc/mounts "$root/etc/mtab"
	ln -sf mawk "$root/usr/bin/awk"
	ln -sf dash "$root/bin/sh"
	printf 'root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n' >"$root/etc/passwd"
	printf 'root:x:0:\nnogroup:x:65534:\n' >"$root/etc/group"
	printf '127.0.0.1 localhost dom0\n' >"$root/etc/hosts"
	: >"$root/etc/fstab"
	ldconfig -r "$root"
	size_mib=$(($(du -sm "$root" | cut -f1) * 5 / 4 + 96))
	ext4_make "$root" "$1/dom0.img" dom0 $size_mib
	rm -rf "$root"
}

# dom0's initrd also carries dom0's init, so that a change to it does not rebuild the big root image.
build_initrd() { # FOLDER
	local root=$1/root
	mkdir -p "$root"/{bin,dev,proc,sys,newroot}
	busybox_copy "$root"
	# shellcheck disable=SC2086
	modules_copy "$root" $modules_dom0_initrd
	install -m 755 "$lab_dir/dom0-initrd-init" "$root/init"
	install -m 755 "$lab_dir/dom0-init" "$lab_dir/dom0-agent" "$root/"
	cpio_make "$root" "$1/initrd.cpio"
	rm -rf "$root"
}

busybox_copy() { # ROOT
	deb_file busybox-static bin/busybox "$1/bin/busybox"
	ln -sf busybox "$1/bin/sh"
}

deb_file() { # PACKAGE PATH TARGET: one file out of a downloaded package, wherever /usr is merged
	local deb
	deb=$(find "$release_cache/debs/dom0" -name "$1_*.deb" | head -n 1)
	[ -n "$deb" ] || die $LAB_NOT_BUILT "package $1 was not downloaded"
	mkdir -p "$(dirname "$3")"
	dpkg-deb --fsys-tarfile "$deb" | tar -xO --wildcards "./$2" "./usr/$2" 2>/dev/null >"$3" || true
	[ -s "$3" ] || die $LAB_NOT_BUILT "package $1 has no $2"
	chmod 755 "$3"
}

# The guests' disk, mounted read-only at /guest in dom0: kernel, initrd, and an image with a root file system.
build_guest() { # FOLDER
	local disk=$1/disk root=$1/root
	mkdir -p "$disk" "$root"/{bin,sbin,dev,proc,sys,mnt,newroot,etc,tmp}
	busybox_copy "$root"
	mke2fs_copy "$root"
	# shellcheck disable=SC2086
	modules_copy "$root" $modules_guest
	install -m 755 "$lab_dir/guest-init" "$root/init"
	install -m 644 "$lab_dir/guest-lib" "$root/lib/guest-lib"
	tools_compile "$disk"
	install -m 755 "$disk/disk-work" "$root/bin/"
	cpio_make "$root" "$disk/initrd.cpio"
	rm -rf "$root"

	mkdir -p "$root"/{bin,sbin,dev,proc,sys,tmp,root,etc,run,lib}
	busybox_copy "$root"
	ln -s ../bin/busybox "$root/sbin/init"
	cp "$lab_dir/guest-root-inittab" "$root/etc/inittab"
	install -m 755 "$lab_dir/guest-root-rc" "$root/etc/rc"
	printf 'root::0:0:root:/root:/bin/sh\n' >"$root/etc/passwd"
	printf 'root:x:0:\n' >"$root/etc/group"
	printf 'vbdisk-guest\n' >"$root/etc/hostname"
	ext4_make "$root" "$disk/root.img" guestroot 64
	rm -rf "$root"

	cp "$release_cache/kernel/vmlinux" "$disk/vmlinux"
	ext4_make "$disk" "$1/guest.img" guest $(($(du -sm "$disk" | cut -f1) * 9 / 8 + 16))
	rm -rf "$disk"
}

# Programs of ours, linked statically, so that they run in every release's guests and dom0 (there: /guest/NAME).
tools_compile() { # FOLDER
	local tool
	for tool in disk-work grace-period; do
		logged "compiling $tool.c" gcc -std=gnu11 -Wall -Wextra -O2 -static -pthread "$lab_dir/$tool.c" -o "$1/$tool"
	done
}

# mkfs.ext4 with its shared libraries, from the same release (busybox makes ext2 only).
mke2fs_copy() { # ROOT
	local root=$1 stage=$1.stage file
	mkdir -p "$stage"/usr/{bin,sbin,lib,lib64} "$root/lib" "$root/lib64"
	for dir in bin sbin lib lib64; do
		ln -s usr/$dir "$stage/$dir"
	done
	for package in e2fsprogs libc6 libext2fs2 libext2fs2t64 libcom-err2 libblkid1 libuuid1 libss2; do
		while read -r file; do
			dpkg-deb --fsys-tarfile "$file" | tar -x -C "$stage" --keep-directory-symlink
		done < <(find "$release_cache/debs/dom0" -name "${package}_*.deb")
	done
	cp "$stage/usr/sbin/mke2fs" "$root/sbin/mke2fs"
	cp -L "$stage/lib64/ld-linux-x86-64.so.2" "$root/lib64/"
	for file in libext2fs.so.2 libcom_err.so.2 libblkid.so.1 libuuid.so.1 libe2p.so.2 libc.so.6 libpthread.so.0; do
		cp -L "$stage/usr/lib/x86_64-linux-gnu/$file" "$root/lib/" || die $LAB_NOT_BUILT "no $file for mke2fs"
	done
	ln -s mke2fs "$root/sbin/mkfs.ext4"
	cp "$stage/etc/mke2fs.conf" "$root/etc/"
	rm -rf "$stage"
}

build_all() {
	tool_need depmod kmod
	tool_need modprobe kmod
	tool_need cpio cpio
	tool_need mkfs.ext4 e2fsprogs
	tool_need ldconfig libc-bin
	tool_need xz xz-utils
	tool_need zstd zstd
	tool_need gcc gcc
	[ "$(id -u)" = 0 ] || die $LAB_NOT_BUILT "the images can only be built by root (file owners)"
	local debs kernel
	fetch_all
	versions_read
	debs=$(stamp_debs)
	kernel=$(hash_of "$debs" "$(declare -f build_kernel kernel_unpack)")
	piece kernel "$kernel" build_kernel
	piece dom0 "$(hash_of "$kernel" "$modules_dom0" "$(declare -f build_dom0 modules_copy ext4_make)")" build_dom0
	piece initrd "$(hash_of "$kernel" "$modules_dom0_initrd" "$(declare -f build_initrd modules_copy busybox_copy deb_file)" \
		@"$lab_dir/dom0-initrd-init" @"$lab_dir/dom0-init" @"$lab_dir/dom0-agent")" build_initrd
	piece guest "$(hash_of "$kernel" "$modules_guest" \
		"$(declare -f build_guest modules_copy busybox_copy deb_file mke2fs_copy tools_compile ext4_make)" \
		@"$lab_dir/guest-init" @"$lab_dir/guest-lib" @"$lab_dir/guest-root-inittab" @"$lab_dir/guest-root-rc" \
		@"$lab_dir/disk-work.c" @"$lab_dir/grace-period.c")" build_guest
}
