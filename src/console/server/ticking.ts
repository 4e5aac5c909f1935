import { signal } from '@preact/signals';
import { serverNow } from './clock.ts';

/** Changes each second while the page is visible: what relative times follow. */
const tick = signal(0);

setInterval(() => {
  if (!document.hidden) tick.value += 1;
}, 1_000);
document.addEventListener('visibilitychange', () => {
  tick.value += 1;
});

/** The time at the server, followed: who reads it is drawn again each second. */
export function followedNow(): number {
  void tick.value;
  return serverNow();
}
