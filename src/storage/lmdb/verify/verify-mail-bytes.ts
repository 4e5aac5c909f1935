import { type DeviceKey, fleetIdOf } from '../../../core/identity.ts';
import { waitingBytesOf } from '../../../domain/mail/mail-bytes.ts';
import type { Findings } from '../../tables/findings.ts';
import { sequenceBytes } from '../layout/keys.ts';
import { decodeMailBytes } from '../mail/mail-bytes.ts';
import type { TableWalk } from './walk.ts';

/** Checks the bytes of fleets' waiting mail against the mail. */
export class MailBytesCheck {
  readonly #totals = new Map<string, number>();

  /** Call it for each mail, with NaN for a damaged one: what its fleet has is then unknown. */
  add(device: DeviceKey, payloadBytes: number): void {
    const fleetId = fleetIdOf(device);
    this.#totals.set(fleetId, (this.#totals.get(fleetId) ?? 0) + waitingBytesOf(payloadBytes));
  }

  /** Call it after all mail. */
  walk(walk: TableWalk, findings: Pick<Findings, 'add'>): void {
    walk('fleetMail', (key, value) => {
      const fleetId = key.toString('latin1');
      const total = this.#totals.get(fleetId) ?? 0;
      this.#totals.delete(fleetId);
      if (value.length !== sequenceBytes) return 'the record does not decode';
      return Number.isNaN(total) || decodeMailBytes(value) === total
        ? undefined
        : `the mail of the fleet that waits here has ${total} bytes`;
    });
    for (const [fleetId, total] of this.#totals) {
      if (total > 0) findings.add(`fleetMail: the mail of fleet ${fleetId} is not counted`);
    }
  }
}
