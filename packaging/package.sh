#!/usr/bin/env bash
# Builds what is installed, into build/: the npm package, which has dist/ as it was built, and from it a tar.gz and a .deb
# that carry their own Node and modules.
# Needs dpkg-deb. Node 22 is what they carry: it has a uWebSockets.js binary for glibc 2.38 (Debian 13) and one for
# older ones (Debian 12), while Node 24 has only the first.
set -euo pipefail
cd "$(dirname "$0")/.."
node=22.23.3
version=$(npm pkg get version --workspaces=false | tr -d '"')
name=fleetpost-$version-linux-x64
rm -rf build
mkdir build
staging=$(mktemp -d)
trap 'rm -rf "$staging"' EXIT

echo "Packing build/fleetpost-$version.tgz"
npm pack --silent --pack-destination build >/dev/null
package=$PWD/build/fleetpost-$version.tgz

echo "Installing it with Node $node and its modules"
# By the Node that will run it, so that npm takes the modules of that one, and in the versions that were tested: installed
# as a package, npm 11 does not look at its shrinkwrap (8 of 164 modules were newer).
npm install --silent --no-save --prefix "$staging/node" "node@$node"
node_binary=$staging/node/node_modules/node/bin/node
tree=$staging/$name
fleetpost=$tree/lib/node_modules/fleetpost
mkdir -p "$tree/bin" "$fleetpost"
tar --extract --gzip --file "$package" --directory "$fleetpost" --strip-components 1
PATH="$(dirname "$node_binary"):$PATH" npm ci --silent --omit=dev --ignore-scripts --prefix "$fleetpost"
install -m 755 "$node_binary" "$tree/lib/node"
install -m 755 packaging/fleetpost.sh "$tree/bin/fleetpost"
cp packaging/fleetpost{,-backup}.service packaging/fleetpost-backup.timer packaging/fleetpost.json LICENSE "$tree"
# What no server loads: tests and pages of modules, dotfiles, binaries for other C libraries. Modules come with the
# modes that their authors had.
modules=$fleetpost/node_modules
find "$modules" -regextype egrep -regex '.*/node_modules/(@[^/]+/)?[^/]+/(tests?|benchmarks?|docs|examples?|integration|scripts|dependencies|\.[^/]*)' \
  -not -path '*/.bin' -not -name .package-lock.json -prune -exec rm -r {} +
find "$modules" \( -name '*.musl.node' -o -name '*.html' -o -name '.*' -type f \) -delete
find "$tree" -type f -exec chmod 644 {} + -o -type d -exec chmod 755 {} +
chmod 755 "$tree/bin/fleetpost" "$tree/lib/node"
echo "Compressing build/$name.tar.gz"
tar --create --gzip --file "build/$name.tar.gz" --directory "$staging" --owner root --group root --sort name "$name"

root=$staging/debian
install -d "$root/usr/share/man/man1" "$root/usr/lib" "$root/DEBIAN" \
  "$root/usr/share/doc/fleetpost" "$root/usr/share/lintian/overrides"
mv "$tree/lib" "$root/usr/lib/fleetpost"
bash packaging/debian/lay-out.sh "$root"
# Where people look for documents; the program reads them beside its code.
for document in README.md docs clients; do
  ln -s "../../../lib/fleetpost/node_modules/fleetpost/$document" "$root/usr/share/doc/fleetpost/$document"
done
install -m 644 packaging/debian/copyright "$root/usr/share/doc/fleetpost/copyright"
install -m 644 packaging/debian/lintian-overrides "$root/usr/share/lintian/overrides/fleetpost"
sed "s/@VERSION@/$version/" packaging/debian/changelog | gzip --no-name --best >"$root/usr/share/doc/fleetpost/changelog.gz"
install -m 755 packaging/debian/postinst packaging/debian/prerm packaging/debian/postrm "$root/DEBIAN"
install -m 644 packaging/debian/conffiles "$root/DEBIAN/conffiles"
gzip --no-name --best --stdout packaging/debian/fleetpost.1 >"$root/usr/share/man/man1/fleetpost.1.gz"
chmod 644 "$root/usr/share/man/man1/fleetpost.1.gz" "$root/usr/share/doc/fleetpost/changelog.gz"
installed=$(du --summarize --block-size 1024 "$root" | cut --fields 1)
sed "s/@VERSION@/$version/; s/@INSTALLED@/$installed/" packaging/debian/control >"$root/DEBIAN/control"
chmod 755 "$root"
echo "Compressing build/fleetpost_${version}_amd64.deb, the longest step: a minute or more"
XZ_DEFAULTS=--threads=0 dpkg-deb --root-owner-group --build -Zxz "$root" "build/fleetpost_${version}_amd64.deb" >/dev/null
(cd build && sha256sum ./* >SHA256SUMS)
echo 'Built three packages in build/, with their SHA256SUMS:'
ls -l build
