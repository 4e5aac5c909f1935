/** The twelve lines of the quickstart, as the build puts them in. */
declare module 'fleetpost:pump.py' {
  const text: string;
  export default text;
}

declare module 'fleetpost:pump.mjs' {
  const text: string;
  export default text;
}
