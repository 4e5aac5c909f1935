/** Fixed bounds of operators' and actions' input; no configuration changes them. */

/** Characters of a name for people. */
export const nameLengthMax = 255;
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
/** Bytes of a device's reply to a mail (D31). */
export const replyBytesMax = 4_096;
/** Longest that a device may wait for mail, and a sender for its settlement (D31). */
export const waitSecondsMax = 300;
/** Records that each version of an action is tested with. */
export const testsPerActionMax = 20;
/** Records in all tests of an action together, each of which takes a run. */
export const testRecordsPerActionMax = 100;
/** Bytes of the JSON of all tests of an action. */
export const testBytesPerActionMax = 262_144;
/** Characters of a key of an action's state. */
export const actionStateKeyLengthMax = 128;
/** Characters of a claim token's pattern for ids. */
export const idPatternLengthMax = 256;
/** Bounds of a fleet's settings, by their names in its document. */
export const fleetBounds = {
  mailbox_mails_max: { minimum: 1, maximum: 65_535 },
  mail_bytes_max: { minimum: 65_536, maximum: Number.MAX_SAFE_INTEGER },
  mail_ttl_seconds: { minimum: 1, maximum: mailTtlSecondsMax },
  mail_requeues_max: { minimum: 0, maximum: mailRequeuesMax },
  /** Rates: 0 is no limit. */
  requests_per_second_max: { minimum: 0, maximum: 100_000_000 },
  device_requests_per_second_max: { minimum: 0, maximum: 100_000_000 },
  device_bytes_per_second_max: { minimum: 0, maximum: 1_073_741_824 },
  active_seconds: { minimum: 1, maximum: activeSecondsMax },
  log_retention_seconds: { minimum: 60, maximum: 315_360_000 },
  log_bytes_max: { minimum: 65_536, maximum: Number.MAX_SAFE_INTEGER },
};
