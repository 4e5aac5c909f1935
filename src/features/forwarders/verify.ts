import { ofNoFleet } from '../../declarations/verify.ts';
import { checkRows, checkTable, type StoppedStore } from '../../storage/tables/check-rows.ts';
import { forwarderTable } from './declaration/forwarder-records.ts';
import { forwarderLetterTable, forwarderReplayTable } from './forwarder-dead-letters.ts';

/** Checks the dead letters of all forwarders on a stopped server. */
export function verifyLetters(store: StoppedStore): void {
  checkTable(store, forwarderLetterTable);
  checkTable(store, forwarderReplayTable);
}

/** Checks every forwarder; returns how many there are. */
export function verifyDeclaredForwarders(registry: StoppedStore, fleets: ReadonlySet<string>): number {
  let forwarders = 0;
  for (const { key, report } of checkRows(registry, forwarderTable)) {
    forwarders += 1;
    if (!fleets.has(key[0])) report(ofNoFleet);
  }
  return forwarders;
}
