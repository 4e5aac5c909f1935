import { signal } from '@preact/signals';

/** Dead letters of today, as Now has read them last. */
export const lettersToday = signal(0);
