#!/usr/bin/env bash
# Runs in a system that systemd has booted (boot-root.sh), with the package in it: starts, reloads, kills, backs up and stops
# the service, as an operator would.
set -Eeuo pipefail
trap 'echo "service: line $LINENO failed"; journalctl --no-pager --lines 30 --unit fleetpost --unit fleetpost-backup' ERR

property() { systemctl show --property "$1" --value fleetpost; }
eventually() {
  for _ in $(seq 300); do
    if "$@" >/dev/null 2>&1; then return; fi
    sleep 0.1
  done
  echo "never came true: $*"
  false
}
refused() {
  local output
  if output=$(fleetpost "${@:2}" 2>&1); then echo "was not refused: ${*:2}"; false; fi
  grep -q "$1" <<<"$output" || { echo "$output"; false; }
}

# What follows a start or restart needs no wait.
systemctl start fleetpost
fleetpost fleet create --id SERVICE1 --name Tried >/dev/null
[ "$(property ActiveState)" = active ]
echo 'service: start waits until it is ready'

exposure=$(systemd-analyze security --no-pager fleetpost | sed -n 's/.*exposure level for fleetpost.service: \([0-9.]*\) .*/\1/p')
# By the systemd of Debian 13, and of 12.
[[ "$exposure" = 1.9 || "$exposure" = 2.0 ]] || { echo "exposure is $exposure"; false; }

parent=$(property MainPID)
systemctl reload fleetpost
fleetpost status >/dev/null
child=$(cut -d " " -f 1 "/proc/$parent/task/$parent/children")
kill -9 "$child"
eventually fleetpost fleet show SERVICE1
[ "$(property MainPID)" = "$parent" ]
kill -9 "$parent"
restarted() { [ "$(property MainPID)" != "$parent" ] && [ "$(property ActiveState)" = active ]; }
eventually restarted
fleetpost fleet show SERVICE1 >/dev/null
systemctl restart fleetpost
fleetpost fleet show SERVICE1 >/dev/null
echo 'service: reloaded, killed, restarted'

refused 'private /tmp of this service' backup /tmp/b
refused 'private /tmp of this service' backup /var/tmp/b
refused '/srv is read-only for this server.*/var/backups/fleetpost' backup /srv/b
[ ! -e /tmp/b ] && [ ! -e /srv/b ]
fleetpost backup | grep -q ' to /var/backups/fleetpost/20'
sleep 1
systemctl start fleetpost-backup
whole=(/var/backups/fleetpost/*/backup.json)
[ "${#whole[@]}" = 2 ]
fleetpost verify --data "$(dirname "${whole[1]}")" | grep -q 'no problems found'
[ "$(systemctl is-enabled fleetpost-backup.timer || true)" = disabled ]
systemctl enable --now fleetpost-backup.timer 2>/dev/null
systemctl list-timers --no-pager fleetpost-backup.timer | grep -q fleetpost-backup.service
echo 'service: backed up by command and by timer'

# A start that is refused fails, with its reason in the journal.
cp /etc/fleetpost/fleetpost.json /root/kept.json
echo '{"lisen":"0.0.0.0:8443"}' >/etc/fleetpost/fleetpost.json
if systemctl restart fleetpost 2>/dev/null; then echo 'a refused start succeeded'; false; fi
journalctl --no-pager --unit fleetpost | grep -q 'there is no key "lisen"'
cp /root/kept.json /etc/fleetpost/fleetpost.json
systemctl restart fleetpost
systemctl stop fleetpost
[ "$(property Result)" = success ] && [ "$(property ActiveState)" = inactive ]
echo 'service: refused where it must be, and stopped'
