/** Bounds of what operators and actions give, which no configuration changes. */

/** Tags of one device. */
export const tagsMax = 32;
/** Characters of a device's tag. */
export const tagLengthMax = 64;
/** A year: how long a device may count as active after it was seen. */
export const activeSecondsMax = 31_536_000;
/** Ten years. */
export const mailTtlSecondsMax = 315_360_000;
/** Ten years. */
export const mailDelaySecondsMax = 315_360_000;
/** Requeues that a mail can be allowed when they are counted at all. */
export const mailRequeuesMax = 254;
