import { signal } from '@preact/signals';

/** Counts the changes of fleets that were made in this page: the list beside every screen is read again after each. */
export const changedFleets = signal(0);

export function noteFleetChange(): void {
  changedFleets.value += 1;
}
