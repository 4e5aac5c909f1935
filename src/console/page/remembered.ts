const wanted = 'fleetpost.wanted';
const fleet = 'fleetpost.fleet';

/** Keeps the address that was asked for before the login, which may come by a link in this tab. */
export function rememberWanted(address: string): void {
  sessionStorage.setItem(wanted, address);
}

/** The address that was asked for before the login, once. */
export function takeWanted(): string | undefined {
  const address = sessionStorage.getItem(wanted) ?? undefined;
  sessionStorage.removeItem(wanted);
  return address;
}

/** Keeps the fleet that is looked at, for the next visit of the console without an address. */
export function rememberFleet(fleetId: string): void {
  localStorage.setItem(fleet, fleetId);
}

export function lastFleet(): string | undefined {
  return localStorage.getItem(fleet) ?? undefined;
}
