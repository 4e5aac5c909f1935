import type { BroadcastDocument } from '../../../contract/broadcast.ts';
import { doneOf } from './progress.ts';

/** How many devices of a broadcast had their turn: a bar, and the numbers. */
export function Turns({ broadcast }: { broadcast: BroadcastDocument }) {
  const { devices, name, queued, refused } = broadcast;
  const done = doneOf(broadcast);
  const count = (one: number): string => one.toLocaleString('en');
  if (devices === null) return <span class="soft">{count(done)} so far</span>;
  return (
    <span class="turns">
      <span
        class="bar"
        role="img"
        aria-label={`${name}: ${count(queued)} queued, ${count(refused)} refused, of ${count(devices)}`}
      >
        <svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
          <rect class="is-done" width={share(queued, devices)} height="4" />
          <rect class="is-bad" x={share(queued, devices)} width={share(refused, devices)} height="4" />
        </svg>
      </span>
      <span class="soft small">
        {count(done)} of {count(devices)}
      </span>
    </span>
  );
}

function share(part: number, whole: number): number {
  return whole === 0 ? 100 : (part / whole) * 100;
}
