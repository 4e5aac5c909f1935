#!/bin/sh
# The data folder and the configuration are those of the service, unless others are named.
FLEETPOST_DATA=${FLEETPOST_DATA:-/var/lib/fleetpost}
if [ -e /etc/fleetpost/fleetpost.json ]; then
  FLEETPOST_CONFIG=${FLEETPOST_CONFIG:-/etc/fleetpost/fleetpost.json}
fi
export FLEETPOST_DATA FLEETPOST_CONFIG
exec /usr/lib/fleetpost/node /usr/lib/fleetpost/node_modules/fleetpost/dist/main.js "$@"
