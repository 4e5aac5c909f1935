#!/usr/bin/env bash
# Installs what packaging/package.sh has built in bare Debian 12 and 13 roots, starts it and lets a device send: the
# .deb, upgraded and removed too, the tar.gz, and, with Node from the registry, the npm package; then the service under
# a systemd that is booted there. Needs root and debootstrap.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(npm pkg get version | tr -d '"')
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | head -n 1)
[ -n "$mirror" ] || { echo 'There is no Debian mirror to make a root from.' >&2; exit 1; }

try_in() {
  local release=$1 root
  root=$(mktemp -d)
  chmod 755 "$root"
  debootstrap --variant=minbase --include adduser,curl,ca-certificates,init-system-helpers,systemd-sysv "$release" "$root" "$mirror" >"$root.log" 2>&1 ||
    { tail -n 5 "$root.log"; exit 1; }
  cp "build/fleetpost_${version}_amd64.deb" "build/fleetpost-$version-linux-x64.tar.gz" "build/fleetpost-$version.tgz" \
    packaging/try-package.sh packaging/try-service.sh "$root/root/"
  # How this machine reaches its registries.
  cp /etc/resolv.conf /etc/hosts "$root/etc/"
  for file in "$(npm config get userconfig)" "$(npm config get cafile)" "${NODE_EXTRA_CA_CERTS:-}" "${SSL_CERT_FILE:-}"; do
    [ ! -f "$file" ] || install -D -m 644 "$file" "$root$file"
  done
  npm install --silent --no-save --prefix "$root/opt/node" node@22.23.3 npm@11.21.2
  unshare --mount --pid --fork --kill-child --propagation private bash -euo pipefail -c '
    mount -t proc proc "$0/proc"
    mount --rbind /dev "$0/dev"
    mount -t tmpfs tmpfs "$0/tmp"
    unset TMPDIR
    HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot "$0" bash /root/try-package.sh "$1"
  ' "$root" "$version"
  chroot "$root" dpkg --install "/root/fleetpost_${version}_amd64.deb" >/dev/null
  bash packaging/boot-root.sh "$root" /root/try-service.sh
  rm -rf --one-file-system "$root" "$root.log"
}

for release in bookworm trixie; do
  echo "== $release"
  try_in "$release"
done
