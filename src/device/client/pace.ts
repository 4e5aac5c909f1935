/** How often a device tries what has failed. The defaults are what a fleet of any size can bear. */
export interface Pace {
  /** The longest pause between two attempts. */
  retrySecondsMax: number;
  /** The same while the server refuses the device itself: an operator may enable it, or restore its secret. */
  unauthorizedSecondsMax: number;
  /** Pause before the event stream is tried again, once it has failed three times. */
  streamAgainSeconds: number;
  /** Pauses between two looks at the mailbox meanwhile. */
  pollSecondsMin: number;
  pollSecondsMax: number;
}

export const defaultPace: Pace = {
  retrySecondsMax: 60,
  unauthorizedSecondsMax: 300,
  streamAgainSeconds: 600,
  pollSecondsMin: 30,
  pollSecondsMax: 300,
};

/** Full jitter: devices that lost the same server do not come back at the same moment. */
export function backoffSeconds(attempt: number, secondsMax: number): number {
  return Math.random() * Math.min(secondsMax, 2 ** Math.min(attempt, 16));
}

/**
 * The pause after a mail was put off: none until the whole mailbox has come round, or the mails would go round for ever.
 * requeues: those in a row, this one included. waiting: mails in the mailbox.
 */
export function putOffSeconds(requeues: number, waiting: number, secondsMax: number): number {
  return requeues < waiting ? 0 : backoffSeconds(requeues - waiting, secondsMax);
}
