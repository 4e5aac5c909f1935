#!/usr/bin/env bash
# Boots systemd in the root ROOT, in namespaces and a control group of its own, and runs the script SCRIPT of that root
# there as a unit: its output is printed, its status is that of this script, and nothing outlives it. Needs root.
set -euo pipefail
root=$1
script=$2

# The unit's end is the end of the system, which passes its status on.
cat >"$root/etc/systemd/system/try.service" <<END
[Unit]
SuccessAction=exit-force
FailureAction=exit-force
FailureActionExitStatus=1
[Service]
Type=oneshot
ExecStart=/bin/bash $script
StandardOutput=append:/root/try.log
StandardError=append:/root/try.log
TimeoutStartSec=300
END
: >"$root/root/try.log"

groups=$(mktemp -d)
group=$groups/fleetpost-$$
if ! { mount -t cgroup2 cgroup2 "$groups" && mkdir "$group"; } 2>/dev/null; then
  echo 'service: no systemd can be booted here (no control groups), so it is not tried'
  exit 0
fi
finish() {
  find "$group" -depth -type d -exec rmdir {} +
  umount "$groups"
  rmdir "$groups"
}
trap finish EXIT

status=0
# The control group before its namespace, so that the system has this one for its own root.
timeout --kill-after 10 400 bash -euo pipefail -c '
  echo $$ >"$2/cgroup.procs"
  exec unshare --net --pid --mount --uts --ipc --cgroup --fork --kill-child --propagation private bash -euo pipefail -c '\''
    mount --bind "$0" "$0"
    mount -t proc proc "$0/proc"
    mount -t sysfs -o ro sysfs "$0/sys"
    mount -t cgroup2 cgroup2 "$0/sys/fs/cgroup"
    mount -t tmpfs -o mode=755 tmpfs "$0/dev"
    for device in null zero full random urandom tty; do touch "$0/dev/$device"; mount --bind "/dev/$device" "$0/dev/$device"; done
    mkdir "$0/dev/pts" "$0/dev/shm"
    mount -t devpts -o newinstance,ptmxmode=0666 devpts "$0/dev/pts"
    ln -s pts/ptmx "$0/dev/ptmx"
    ln -s /proc/self/fd "$0/dev/fd"
    mount -t tmpfs tmpfs "$0/dev/shm"
    mount -t tmpfs -o mode=755 tmpfs "$0/run"
    mount -t tmpfs -o mode=1777 tmpfs "$0/tmp"
    cd "$0"
    pivot_root . mnt
    exec env -i container=lxc PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot . bash -c "umount -l /mnt; exec /lib/systemd/systemd --unit=try.service"
  '\'' "$1"
' _ "$root" "$group" </dev/null >"$root/root/boot.log" 2>&1 || status=$?
cat "$root/root/try.log"
[ "$status" = 0 ] || { tail -n 20 "$root/root/boot.log"; exit "$status"; }
