/** Where the commands that talk to a server find a token; no key of the configuration. */
export const tokenVariable = 'FLEETPOST_TOKEN';
