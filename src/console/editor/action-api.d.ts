/** The source of what `fleetpost/action` exports, put in by packaging/build-console.js: what is completed is what is checked. */
declare module 'fleetpost:action-api' {
  const text: string;
  export default text;
}
