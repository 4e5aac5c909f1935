#!/usr/bin/env bash
# What a newcomer is told to type, on its real defaults: the commands that the first start prints, then every block in
# "sh" of README, docs and clients. CONTRIBUTING says which blocks are not run here, and what runs them.
# Needs ports 8443 and 8444, curl, python3, openssl, and a checkout that is built.
set -euo pipefail
cd "$(dirname "$0")/.."
checkout=$PWD

fail() {
  echo "smoke: $*" >&2
  exit 1
}

server=
work=$(mktemp -d)
stop() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  [ -z "$server" ] || wait "$server" 2>/dev/null || true
  server=
}
end() {
  # Of the page whose command has failed.
  [ "$?" -eq 0 ] || [ ! -e seen ] || cat seen >&2
  stop
  rm -rf "$work"
}
trap end EXIT

# A folder like a fresh clone that is built: what commands leave in it is no matter of the checkout.
clone() {
  mkdir "$work/$1"
  cd "$work/$1"
  for name in dist node_modules package.json packaging docs; do ln -s "$checkout/$name" "$name"; done
}

# npm as a page means it: what CI has done before is not repeated, and a start is waited for.
npm() {
  case "$1" in
    ci | test) echo "smoke: npm $1 was run before" ;;
    start)
      node "$checkout/dist/main.js" serve --demo >started 2>log &
      server=$!
      for _ in $(seq 300); do
        grep -q '/v1/events' started && return
        sleep 0.1
      done
      fail 'the server did not start'
      ;;
    *) command npm "$@" ;;
  esac
}

try_start() {
  clone start
  npm start
  grep '^curl ' started >commands || fail 'the server printed no commands'
  local expected=('201 Created' '201 Created' '200 OK' '200 OK' 'event: connected') count=0 command answer
  while read -r command; do
    # The last one is a stream, which goes on until it is cut.
    answer=$(timeout 3 bash -c "$command" || true)
    grep -q "${expected[$count]}" <<<"$answer" || fail "$command answered: $answer"
    count=$((count + 1))
  done <commands
  [ "$count" -eq "${#expected[@]}" ]
  node dist/main.js fleet list --json | grep -q '"name":"demo"'
  stop
  cd "$checkout"
  echo "smoke: $count commands of the start answered on Node $(node --version)"
}

# The blocks of a page, but for those of root, whose first line says so.
blocks() {
  awk '/^```sh$/ { open = 1; text = ""; next }
    /^```$/ && open { open = 0; if (text !~ /^# as root\n/) printf "%s", text; next }
    open { text = text $0 "\n" }' "$checkout/$1"
}

# What the reader of a page has before its first block.
presume() {
  case "$1" in
    docs/actions/writing.md)
      npm start
      fleetpost() { node dist/main.js "$@"; }
      export FLEETPOST_FLEET=GARDEN01
      fleetpost fleet create --id GARDEN01 --name Garden >/dev/null
      ;;
    docs/operate/console.md)
      npm start
      fleetpost() { node dist/main.js "$@"; }
      # A desktop, whose browser says what it is to open.
      mkdir bin
      printf '#!/bin/sh\necho "opened $1" >>"%s/seen"\n' "$PWD" >bin/xdg-open
      chmod +x bin/xdg-open
      export DISPLAY=:0 PATH="$PWD/bin:$PATH"
      ;;
    */typescript.md | clients/python/*) cp "$work/certificates/server.pem" . ;;
  esac
}

# Runs the blocks of a page one after another, and looks for what its reader is told to see.
try_page() {
  local page=$1 seen
  shift
  clone "${page//\//-}"
  presume "$page"
  blocks "$page" >blocks.sh
  # Sourced, so that what one block defines is there in the next.
  # shellcheck disable=SC1091
  source ./blocks.sh >>seen 2>&1
  for seen in "$@"; do
    # What the last command has started may take a moment.
    timeout 10 bash -c 'until grep -q -- "$0" seen; do sleep 0.1; done' "$seen" || fail "$page: nobody saw $seen"
  done
  stop
  cd "$checkout"
  unset -f fleetpost device
  unset FLEETPOST_FLEET DISPLAY
  local of_root
  of_root=$(grep -c '^# as root$' "$checkout/$page" || true)
  echo "smoke: $page as it stands; $of_root of its blocks are for root (npm run test:package)"
}

try_start
node dist/main.js certificate create --host fleet.lan --out "$work/certificates" >/dev/null
pin=$(node -p '
  const { hash, X509Certificate } = require("node:crypto");
  const { publicKey } = new X509Certificate(require("node:fs").readFileSync(process.argv[1]));
  hash("sha256", publicKey.export({ type: "spki", format: "der" }), "base64")' "$work/certificates/server.pem")
for page in README.md $(grep -rl '^```sh$' docs clients | sort); do
  case "$page" in
    README.md) try_page "$page" '201 Created' '"seconds":30' acked stop ;;
    */quickstart.md) try_page "$page" '201 Created' acked schema_mismatch '"litres":12.5' ;;
    */writing.md) try_page "$page" 'It would send' '"ok":true' '1 of 1 tests passed' 'back to version 1' ;;
    */console.md) try_page "$page" 'enter this code' '^opened .*#fleet=GARDEN01&device=PUMP07HALL$' '^https\?://.*#code=' ;;
    */typescript.md | clients/python/*) try_page "$page" "^$pin$" ;;
    *) try_page "$page" ;;
  esac
done
