/** The twelve lines of the quickstart, as the build puts them in. */
declare module 'fleetpost:device.py' {
  const text: string;
  export default text;
}

declare module 'fleetpost:device.mjs' {
  const text: string;
  export default text;
}
