/** A page of a list. */
export interface Page<T> {
  items: T[];
  /** Pass as `after` for the next page; null on the last one. */
  next: string | null;
}
