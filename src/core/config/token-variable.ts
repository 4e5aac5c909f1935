/** Environment variable with the token of the client commands; not a configuration key. */
export const tokenVariable = 'FLEETPOST_TOKEN';
