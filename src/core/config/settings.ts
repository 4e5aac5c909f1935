/**
 * Configuration values that SIGHUP changes, as their readers see them. To be kept as it is, and `current` read at each
 * use: whoever keeps a value keeps that of its start.
 */
export interface Settings<T> {
  /** Frozen; a reload puts another one in its place. */
  readonly current: Readonly<T>;
}

/** The settings of one thread, as what changes them sees them. */
export class LiveSettings<T extends object> implements Settings<T> {
  current: Readonly<T>;

  constructor(values: T) {
    this.current = Object.freeze({ ...values });
  }

  /** Changes the values that are given, all at once. */
  change(values: Partial<T>): void {
    this.current = Object.freeze({ ...this.current, ...values });
  }
}
