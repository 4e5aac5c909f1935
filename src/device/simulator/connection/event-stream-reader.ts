/** Events longer than this are none that a server of ours sends. */
const eventLengthMax = 65_536;

/** Cuts the text of an event stream into whole events. */
export class EventStreamReader {
  /** Text after the last complete event. */
  #rest = '';

  /** The complete events in what has arrived, as one text; empty for none. @throws Error for one without an end. */
  take(text: string): string {
    const end = text.lastIndexOf('\n\n');
    if (end < 0) {
      this.#rest += text;
      if (this.#rest.length > eventLengthMax) throw new Error('an event has no end');
      return '';
    }
    const events = this.#rest + text.slice(0, end);
    this.#rest = text.slice(end + 2);
    return events;
  }
}
