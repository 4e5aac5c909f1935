/**
 * Environment variables of commands. They are no configuration keys, though `FLEETPOST_ADMIN` is also the
 * variable of the key `admin`: to commands it is a URL, to the server HOST:PORT, and either ignores the other's.
 */
export const tokenVariable = 'FLEETPOST_TOKEN';
export const fleetVariable = 'FLEETPOST_FLEET';
export const contextVariable = 'FLEETPOST_CONTEXT';
export const adminVariable = 'FLEETPOST_ADMIN';
/** The configuration file of commands that take `--config`. */
export const configVariable = 'FLEETPOST_CONFIG';

/** Variables of programs on devices and of their agent, which may run on the machine of a server. */
const deviceVariables = ['URL', 'CA', 'PINS', 'QUEUE', 'SOCKET'].map((name) => `FLEETPOST_${name}`);

/** True if a value of `FLEETPOST_ADMIN` is the URL for commands. */
export function isAdminUrl(text: string): boolean {
  return /^https?:\/\//.test(text);
}

/** True if a variable is for commands, and no configuration key. */
export function isClientVariable(name: string, value: string): boolean {
  if (name === adminVariable) return isAdminUrl(value);
  return [tokenVariable, fleetVariable, contextVariable, configVariable, ...deviceVariables].includes(name);
}
