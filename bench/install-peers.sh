#!/usr/bin/env bash
# Installs, from Debian's packages, what the bench suite makes load with and compares with. The suite starts
# these servers by itself, on folders and ports of its own: none is started here, and those that come with this
# run will not start at boot either. What is installed already stays as it is.
set -euo pipefail

if ! command -v apt-get >/dev/null; then
  echo 'This is not Debian or Ubuntu: install nginx, wrk, Redis and PostgreSQL by other means.' >&2
  exit 1
fi
if [ "$(id -u)" != 0 ]; then
  echo 'Packages can only be installed by root: run it again with sudo.' >&2
  exit 1
fi

is_installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

missing=()
for package in nginx wrk redis-server postgresql; do
  is_installed "$package" || missing+=("$package")
done
if [ ${#missing[@]} = 0 ]; then
  echo 'nginx, wrk, Redis and PostgreSQL are installed.'
  exit 0
fi

# Debian asks this file before a package starts its service; 101 is no.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  trap 'rm -f "$policy"' EXIT
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
fi

apt-get update
DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"

for package in "${missing[@]}"; do
  if [ "$package" != wrk ] && [ -d /run/systemd/system ]; then systemctl disable "$package"; fi
done
echo "Installed: ${missing[*]}."
