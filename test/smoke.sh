#!/usr/bin/env bash
# README's start command on its real defaults, and every command that it prints, as a person would run them.
# Needs ports 8443 and 8444, curl, and a checkout without a data folder.
set -euo pipefail
cd "$(dirname "$0")/.."
[ ! -e data ] || { echo 'smoke: there is a data folder here already' >&2; exit 1; }

output=$(mktemp)
npm start >"$output" 2>/dev/null &
server=$!
trap 'kill $server 2>/dev/null || true; wait $server 2>/dev/null || true; rm -rf data "$output"' EXIT
for _ in $(seq 300); do
  grep -q '/v1/events' "$output" && break
  sleep 0.1
done
grep '^curl ' "$output" >"$output.commands" || { echo 'smoke: the server printed no commands' >&2; exit 1; }

expected=('201 Created' '201 Created' '200 OK' '200 OK' 'event: connected')
count=0
while read -r command; do
  # The last one is a stream, which goes on until it is cut.
  answer=$(timeout 3 bash -c "$command" || true)
  grep -q "${expected[$count]}" <<<"$answer" || { echo "smoke: $command answered: $answer" >&2; exit 1; }
  count=$((count + 1))
done <"$output.commands"
rm -f "$output.commands"
[ "$count" -eq "${#expected[@]}" ]
node dist/main.js fleet list --json | grep -q '"name":"demo"'
echo "smoke: $count commands answered on Node $(node --version)"
