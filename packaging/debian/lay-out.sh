#!/usr/bin/env bash
# Puts what the .deb brings beside the program into the root ROOT: command, units, configuration.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$1
install -D -m 755 debian/fleetpost.sh "$root/usr/bin/fleetpost"
install -D -m 644 -t "$root/usr/lib/systemd/system" fleetpost.service fleetpost-backup.service fleetpost-backup.timer
install -D -m 644 fleetpost.json "$root/etc/fleetpost/fleetpost.json"
