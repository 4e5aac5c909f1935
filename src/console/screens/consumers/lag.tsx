import { spanText } from '../../server/clock.ts';

/** From here on a reader of records that works is not behind. */
const manyPositions = 10_000;
const manySeconds = 600;

/** How far behind a reader is, in positions of the logs or in the age of the oldest record that waits. */
export function Behind(lag: { positions: number } | { seconds: number }) {
  const isMuch = 'positions' in lag ? lag.positions > manyPositions : lag.seconds > manySeconds;
  const amount = 'positions' in lag ? lag.positions : lag.seconds;
  const text = 'positions' in lag ? lag.positions.toLocaleString('en') : spanText(lag.seconds * 1_000);
  return <span class={amount === 0 ? 'faint' : isMuch ? 'warn strong' : ''}>{text}</span>;
}

/** Positions that retention removed before they were read. */
export function LostPositions({ positions }: { positions: number }) {
  return <span class={positions > 0 ? 'bad strong' : 'faint'}>{positions.toLocaleString('en')}</span>;
}
