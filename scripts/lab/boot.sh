# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# Boots the built host in QEMU, follows it, and says which phase hung when one does.
#
# Owns: the QEMU process, the run folder, JOBDIR/out. Trusts: nothing that comes from the emulated machine.
# Runs on: the build machine; blocks until the job is over. Must not know: what the job does.

qemu_pid=
run_folder=

# Every flag taken away from -cpu max was seen to break Xen or dom0's processes under QEMU's emulation.
readonly TCG_CPU=max,-smap,-xsave,-xsaveopt,-avx,-avx2,-pku,-la57

# KVM only when it can really run this hypervisor: some machines have the device but cannot.
accelerator_choose() { # auto|kvm|tcg
	local tcg_mib=512
	case $1 in
	tcg) accelerator=(-accel "tcg,thread=multi,tb-size=$tcg_mib" -cpu "$TCG_CPU") ;;
	kvm) accelerator=(-accel kvm -cpu host) ;;
	auto)
		if kvm_boots_xen; then
			accelerator_choose kvm
		else
			say "no usable KVM ($kvm_reason): emulating, which is slower"
			accelerator_choose tcg
		fi
		;;
	*) die $LAB_USAGE "--accel is auto, kvm or tcg" ;;
	esac
}

# The probe is the hypervisor itself: it has to come as far as looking for its dom0.
kvm_boots_xen() {
	local log=$run_folder/kvm-probe pid tries
	kvm_reason="there is no /dev/kvm"
	[ -e /dev/kvm ] || return 1
	kvm_reason="/dev/kvm cannot be opened"
	[ -r /dev/kvm ] && [ -w /dev/kvm ] || return 1
	kvm_reason="the hypervisor does not start on it"
	timeout 20 qemu-system-x86_64 -nodefaults -no-user-config -display none -no-reboot -machine q35 -m 512 \
		-accel kvm -cpu host -kernel "$release_cache/kernel/xen.elf" -append "console=com1 com1=115200,8n1 noreboot=1" \
		-serial "file:$log" >"$log.err" 2>&1 &
	pid=$!
	tries=150
	until grep -qs 'dom0 kernel not specified' "$log" || [ $tries = 0 ]; do
		# QEMU writes to its error output when the kernel cannot emulate an instruction, and stays.
		if [ -s "$log.err" ] || ! kill -0 $pid 2>/dev/null; then
			break
		fi
		sleep 0.1
		tries=$((tries - 1))
	done
	kill $pid 2>/dev/null || true
	wait $pid 2>/dev/null || true
	grep -qs 'dom0 kernel not specified' "$log"
}

qemu_start() { # JOBDIR
	local job=$1 console=$1/out/console.log
	truncate -s "${LAB_DATA_MIB:-2048}M" "$run_folder/data.img"
	logged "mkfs.ext4 of the data disk" mkfs.ext4 -q -F -L data -O ^has_journal -E lazy_itable_init=1 -m 0 "$run_folder/data.img"
	# setpriv: the machine ends with this script, however the script ends.
	setpriv --pdeathsig KILL qemu-system-x86_64 -nodefaults -no-user-config -display none -no-reboot -machine q35 \
		"${accelerator[@]}" -smp 2 -m "${LAB_MEMORY_MIB:-2560}" \
		-kernel "$release_cache/kernel/xen.elf" \
		-append "console=com1 com1=115200,8n1 dom0_mem=${LAB_DOM0_MIB:-1024}M,max:${LAB_DOM0_MIB:-1024}M dom0_max_vcpus=2 spec-ctrl=no xpti=no noreboot=1 loglvl=warning guest_loglvl=warning" \
		-initrd "$release_cache/kernel/vmlinux console=hvc0 mitigations=off tsc=reliable quiet panic=5,$release_cache/initrd/initrd.cpio" \
		-drive "file=$release_cache/dom0/dom0.img,if=none,id=root,format=raw,snapshot=on" -device virtio-blk-pci,drive=root \
		-drive "file=$release_cache/guest/guest.img,if=none,id=guest,format=raw,readonly=on" -device virtio-blk-pci,drive=guest \
		-drive "file=$run_folder/data.img,if=none,id=data,format=raw,cache=unsafe" -device virtio-blk-pci,drive=data \
		-virtfs "local,path=$job,mount_tag=job,security_model=none,id=job" \
		-chardev "file,id=console,path=$console" -serial chardev:console \
		</dev/null >"$job/out/qemu.log" 2>&1 &
	qemu_pid=$!
}

qemu_stop() {
	[ -n "$qemu_pid" ] || return 0
	kill -KILL "$qemu_pid" 2>/dev/null || true
	wait "$qemu_pid" 2>/dev/null || true
	qemu_pid=
}

run_cleanup() {
	qemu_stop
	[ -z "$run_folder" ] || rm -rf "$run_folder"
	run_folder=
}

# A run that was killed outright could not remove its folder; the folder's name says whose it was.
run_folders_sweep() {
	local folder
	for folder in "$cache_root"/run.*; do
		[ ! -d "$folder" ] || kill -0 "${folder##*.}" 2>/dev/null || rm -rf "$folder"
	done
}

# The boot, phase by phase: what the console says when it is over; how long it may take; what to say if it takes longer.
# On a busy two-core machine without KVM each was seen to take up to a quarter of its limit.
boot_patterns=('^.*(XEN)' 'LAB dom0 kernel up' 'LAB dom0 init' 'LAB xenstored up' 'LAB toolstack ready' 'LAB job folder mounted')
boot_limits_s=(60 180 120 120 120 60)
boot_done=("hypervisor: up" "dom0: kernel up" "dom0: root mounted" "xenstored up" "toolstack ready" "job folder mounted, job starts")
boot_hung=("the hypervisor printed nothing" "dom0 kernel did not start" "dom0's root did not come up" "xenstored not up"
	"toolstack not ready" "the job's folder was not mounted")

# Follow the machine to its end. Sets job_status, or hung to a sentence; and whether the machine has booted.
job_follow() { # JOBDIR STEP_LIMIT_SECONDS
	local job=$1 step_limit=$2 phase=0 since=$SECONDS step="its first step" seen=0 line lines
	local console=$1/out/console.log progress=$1/out/progress
	hung=
	job_status=
	booted=no
	while :; do
		if [ $phase -lt ${#boot_patterns[@]} ]; then
			if grep -qs -- "${boot_patterns[phase]}" "$console"; then
				say "${boot_done[phase]}"
				phase=$((phase + 1))
				[ $phase -lt ${#boot_patterns[@]} ] || booted=yes
				since=$SECONDS
				continue
			elif [ $((SECONDS - since)) -ge "${boot_limits_s[phase]}" ]; then
				hung="${boot_hung[phase]} after ${boot_limits_s[phase]} s"
				return 0
			fi
			if grep -qs 'Kernel panic' "$console"; then
				hung="dom0's kernel crashed in the boot: $(grep -m 1 -oE 'Oops: [^#]*|Kernel panic[^\r]*' "$console")"
				return 0
			fi
			if grep -qs 'LAB FAILED' "$console"; then
				hung="dom0 gave up: $(sed -n 's/^.*LAB FAILED: //p' "$console" | head -n 1 | tr -d '\r')"
				return 0
			fi
		else
			lines=0
			[ ! -e "$progress" ] || lines=$(wc -l <"$progress")
			if [ "$lines" -gt $seen ]; then
				while read -r line; do
					case $line in
					"step "*) step=${line#step } ;;
					esac
					say "job: $line"
				done < <(sed -n "$((seen + 1)),${lines}p" "$progress")
				seen=$lines
				since=$SECONDS
			elif [ -s "$job/out/status" ]; then
				job_status=$(cat "$job/out/status")
				return 0
			elif [ $((SECONDS - since)) -ge "$step_limit" ]; then
				hung="job still in step '$step' after $step_limit s"
				return 0
			fi
		fi
		if ! kill -0 "$qemu_pid" 2>/dev/null; then
			# The machine may have ended between the last look at the status file and this one.
			if [ -s "$job/out/status" ]; then
				job_status=$(cat "$job/out/status")
			elif [ $phase -lt ${#boot_patterns[@]} ]; then
				hung="the machine ended in the boot: ${boot_hung[phase]}"
			else
				hung="the machine ended while the job was in step '$step'"
			fi
			return 0
		fi
		sleep 0.3
	done
}

# Boot, run JOBDIR/run.sh in dom0, power off. Returns the job's status or LAB_HUNG.
lab_run() { # JOBDIR STEP_LIMIT_SECONDS ACCEL
	local job=$1 step_limit=$2 accel=$3 wait_s
	tool_need qemu-system-x86_64 qemu-system-x86
	tool_need setpriv util-linux
	rm -f "$job"/out/{status,progress,console.log,job.log,qemu.log}
	mkdir -p "$job/out" "$cache_root"
	run_folders_sweep
	run_folder=$cache_root/run.$$
	mkdir -p "$run_folder"
	trap run_cleanup EXIT
	trap 'say "interrupted"; exit 130' INT
	trap 'say "terminated"; exit 143' TERM HUP
	accelerator_choose "$accel"
	say "booting: Debian $release host, ${accelerator[1]%%,*}"
	qemu_start "$job"
	job_follow "$job" "$step_limit"
	# Under emulation a kernel now and then stumbles over its own code patching, before anything of ours runs (seen: an
	# int3 oops of Linux 6.12 while two vCPUs boot). That says nothing about the job; once more, but only once.
	if [ -n "$hung" ] && [ $booted = no ]; then
		say "the boot failed: $hung; booting once more (console kept as $job/out/console-failed-boot.log)"
		qemu_stop
		mv "$job/out/console.log" "$job/out/console-failed-boot.log"
		qemu_start "$job"
		job_follow "$job" "$step_limit"
	fi
	if [ -n "$hung" ]; then
		say "HUNG: $hung"
		if [ -s "$job/out/qemu.log" ]; then
			say "QEMU says:"
			tail -n 5 "$job/out/qemu.log" >&2
		fi
		say "the console's last lines (the whole: $job/out/console.log):"
		tail -n 15 "$job/out/console.log" 2>/dev/null | tr -d '\r' >&2 || true
		return $LAB_HUNG
	fi
	wait_s=20
	while kill -0 "$qemu_pid" 2>/dev/null && [ $wait_s -gt 0 ]; do
		sleep 0.5
		wait_s=$((wait_s - 1))
	done
	[ $wait_s -gt 0 ] || say "dom0 did not power off within 10 s; ending it"
	say "job over, status $job_status"
	[ "$job_status" = 0 ] || say "the job's output: $job/out/job.log, the console: $job/out/console.log"
	[ "$job_status" -lt $LAB_HUNG ] || job_status=$((LAB_HUNG - 1))
	return "$job_status"
}
