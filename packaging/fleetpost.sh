#!/bin/sh
# Runs Fleetpost with the Node that came with it, from wherever it was unpacked.
file=$(readlink -f "$0")
lib=$(dirname "$(dirname "$file")")/lib
exec "$lib/node" "$lib/node_modules/fleetpost/dist/main.js" "$@"
