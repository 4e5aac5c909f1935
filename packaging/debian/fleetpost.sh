#!/bin/sh
# The data folder is that of the service, unless another one is named.
FLEETPOST_DATA=${FLEETPOST_DATA:-/var/lib/fleetpost}
export FLEETPOST_DATA
exec /usr/lib/fleetpost/node /usr/lib/fleetpost/node_modules/fleetpost/dist/main.js "$@"
