#!/usr/bin/env bash
# What `npm run test:all` needs besides Node: says the one line that installs what is missing, or with --install runs
# it. libfaketime changes a running server's clock, records are forwarded to nats-server, pebble is an ACME directory,
# promtool tries the alert rules, curl, Python and C are clients, the console is looked at in chromium, and root fills and mounts small file systems.
set -euo pipefail

missing=()
compgen -G '/usr/lib/*/faketime/libfaketimeMT.so.1' >/dev/null || missing+=(libfaketime)
PATH="$PATH:/usr/sbin" command -v nats-server >/dev/null || missing+=(nats-server)
command -v pebble >/dev/null || missing+=(pebble)
command -v promtool >/dev/null || missing+=(prometheus)
command -v chromium-headless-shell >/dev/null || missing+=(chromium-headless-shell)
command -v curl >/dev/null || missing+=(curl)
python3 -c 'import http.client, ssl' 2>/dev/null || missing+=(python3)
command -v cc >/dev/null && command -v make >/dev/null || missing+=(gcc make libc6-dev)
[ -f /usr/include/openssl/ssl.h ] || missing+=(libssl-dev)
[ -f /usr/include/mbedtls/ssl.h ] || missing+=(libmbedtls-dev)
[ "$(id -u)" -eq 0 ] || { echo 'These tests mount file systems: run them as root.' >&2; exit 1; }
[ "${#missing[@]}" -gt 0 ] || exit 0

install="apt-get install -y --no-install-recommends ${missing[*]}"
if [ "${1:-}" = --install ]; then
  apt-get update -q
  DEBIAN_FRONTEND=noninteractive $install -q
else
  echo "Missing for these tests: ${missing[*]}. Run: apt-get update && $install" >&2
  exit 1
fi
