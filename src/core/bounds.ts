/** Fixed bounds of operators' and actions' input; no configuration changes them. */

/** Tags per device. */
export const tagsMax = 32;
/** Characters per tag. */
export const tagLengthMax = 64;
/** One year: the longest activity window of a device. */
export const activeSecondsMax = 31_536_000;
/** Ten years. */
export const mailTtlSecondsMax = 315_360_000;
/** Ten years. */
export const mailDelaySecondsMax = 315_360_000;
/** Largest requeue limit of a mail that has one. */
export const mailRequeuesMax = 254;
