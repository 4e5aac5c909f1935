#!/usr/bin/env bash
# Runs in a bare root: installs and starts each package in turn, and lets a device send a heartbeat.
set -euo pipefail
cd /root
version=$1

# Starts the server by this command as the user, sends by a device that is made by the CLI, and stops it.
try_server() {
  local user=$1 fleetpost=$2 data=$3
  shift 3
  : >/tmp/out
  setpriv --reuid "$user" --regid "$(id -g "$user")" --clear-groups "$fleetpost" serve --data "$data" "$@" >/tmp/out 2>/tmp/log &
  local server=$!
  for _ in $(seq 300); do
    grep -q 8443 /tmp/out && break
    kill -0 "$server" 2>/dev/null || { cat /tmp/out /tmp/log; exit 1; }
    sleep 0.1
  done
  if grep -qi secret /tmp/out /tmp/log; then echo 'the start has told a secret'; exit 1; fi
  as() { setpriv --reuid "$user" --regid "$(id -g "$user")" --clear-groups "$fleetpost" "$@" --data "$data"; }
  local fleet device secret
  fleet=$(as fleet create --name Tried --json | sed -n 's/.*"fleet_id":"\([^"]*\)".*/\1/p')
  as device create --fleet "$fleet" --json >/tmp/device
  device=$(sed -n 's/.*"device_id":"\([^"]*\)".*/\1/p' /tmp/device)
  secret=$(sed -n 's/.*"\(device_\)\?secret":"\([^"]*\)".*/\2/p' /tmp/device)
  curl -sf --cacert "$data/tls/cert.pem" -X POST -H "X-Fleet-ID: $fleet" -H "X-Device-ID: $device" \
    -H "X-Device-Secret: $secret" https://localhost:8443/v1/heartbeat -o /dev/null
  kill "$server"
  wait "$server" || true
  local page
  page=$("$fleetpost" help configuration)
  [ "${page%%$'\n'*}" = '# Configuration' ]
}

dpkg --install "fleetpost_${version}_amd64.deb"
try_server fleetpost fleetpost /var/lib/fleetpost --config /etc/fleetpost/fleetpost.json
# An upgrade to the same version, and the removal: the data stays.
dpkg --install "fleetpost_${version}_amd64.deb" >/dev/null
try_server fleetpost fleetpost /var/lib/fleetpost --config /etc/fleetpost/fleetpost.json
dpkg --remove fleetpost >/dev/null
dpkg --purge fleetpost
[ -d /var/lib/fleetpost/tls ] && [ ! -e /usr/lib/fleetpost ] && [ ! -e /etc/fleetpost/fleetpost.json ]
echo 'deb: installed, served, upgraded, removed; its data stayed'

mkdir /opt/fleetpost && tar -xzf "fleetpost-$version-linux-x64.tar.gz" -C /opt/fleetpost --strip-components 1
try_server root /opt/fleetpost/bin/fleetpost /root/data-of-tar
echo 'tar.gz: served'

PATH=/opt/node/node_modules/.bin:/opt/node/node_modules/node/bin:$PATH
npm install --silent --global --prefix /opt/global "/root/fleetpost-$version.tgz"
try_server root /opt/global/bin/fleetpost /root/data-of-npm
echo 'npm package: installed, served'
