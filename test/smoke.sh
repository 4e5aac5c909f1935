#!/usr/bin/env bash
# What a newcomer is told to type, on its real defaults: the commands that the first start prints, then every block in
# "sh" of README and docs/start. CONTRIBUTING says which blocks are not run here, and what runs them.
# Needs ports 8443 and 8444, curl, python3, and a checkout that is built.
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

# Runs the blocks of a page one after another, and looks for what its reader is told to see.
try_page() {
  local page=$1 seen
  shift
  clone "$(basename "$page" .md)"
  blocks "$page" >blocks.sh
  # Sourced, so that what one block defines is there in the next.
  # shellcheck disable=SC1091
  source ./blocks.sh >seen 2>&1
  for seen in "$@"; do grep -q -- "$seen" seen || fail "$page: nobody saw $seen"; done
  stop
  cd "$checkout"
  unset -f fleetpost device
  unset FLEETPOST_FLEET
  local of_root
  of_root=$(grep -c '^# as root$' "$checkout/$page" || true)
  echo "smoke: $page as it stands; $of_root of its blocks are for root (npm run test:package)"
}

try_start
for page in README.md docs/start/*.md; do
  case "$page" in
    README.md) try_page "$page" '201 Created' '"seconds":30' acked stop ;;
    */quickstart.md) try_page "$page" '201 Created' acked schema_mismatch '"litres":12.5' ;;
    *) try_page "$page" ;;
  esac
done
