/** Steps of the history whose screens are kept as they were left; the one left longest ago is forgotten first. */
const entriesMax = 30;
/** Documents of each: no screen reads as many. */
const documentsMax = 20;
/** Time that a screen has to become as long as it was when it was left. */
const restoreMs = 2_000;

export interface ReadDocument {
  value: unknown;
  readAtMs: number;
}

interface Entry {
  scrollY: number;
  cursor: number | undefined;
  documents: Map<string, ReadDocument>;
}

const entries = new Map<string, Entry>();
let count = 0;
let current = '';

function stateOf(): { entry?: string; scrollY?: number } {
  return (history.state ?? {}) as { entry?: string; scrollY?: number };
}

function entry(): Entry {
  const known = entries.get(current);
  if (known !== undefined) return known;
  const made: Entry = { scrollY: 0, cursor: undefined, documents: new Map() };
  entries.set(current, made);
  const [oldest] = entries.keys();
  if (entries.size > entriesMax && oldest !== undefined) entries.delete(oldest);
  return made;
}

/** The state of a new step of the history, which is the current one from then on. */
export function beginEntry(): { entry: string } {
  entry().scrollY = scrollY;
  count += 1;
  current = `${performance.timeOrigin}.${count}`;
  return { entry: current };
}

/** Goes on with the step that the history is at, as it was left. One that is not ours, such as a fragment's, becomes a new one. */
export function returnToEntry(): void {
  entry().scrollY = scrollY;
  const { entry: known } = stateOf();
  if (known === undefined) history.replaceState(beginEntry(), '');
  else {
    current = known;
    restoreScroll(entry().scrollY);
  }
}

/** Begins with the step that the page is loaded at; a reload leaves it where it was. */
export function startEntries(): void {
  history.scrollRestoration = 'manual';
  const { entry: known, scrollY: top = 0 } = stateOf();
  if (known === undefined) history.replaceState(beginEntry(), '');
  else current = known;
  if (top > 0) restoreScroll(top);
  addEventListener('pagehide', () => history.replaceState({ entry: current, scrollY }, ''));
}

/** Scrolls as soon as the screen is long enough, unless the reader does so himself. */
function restoreScroll(top: number): void {
  const stopping = new AbortController();
  const { signal } = stopping;
  for (const name of ['wheel', 'touchstart', 'keydown', 'pointerdown'])
    addEventListener(name, () => stopping.abort(), { signal, passive: true });
  const untilMs = performance.now() + restoreMs;
  const step = (): void => {
    if (signal.aborted) return;
    scrollTo(0, top);
    if (Math.abs(scrollY - top) < 2 || performance.now() > untilMs) stopping.abort();
    else requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
}

/** Keeps an answer with the step of the history that it was read for. */
export function rememberDocument(key: string, document: ReadDocument): void {
  const { documents } = entry();
  documents.delete(key);
  documents.set(key, document);
  const [oldest] = documents.keys();
  if (documents.size > documentsMax && oldest !== undefined) documents.delete(oldest);
}

/** The answer that this step of the history had last. */
export function recallDocument(key: string): ReadDocument | undefined {
  return entry().documents.get(key);
}

export function rememberCursor(at: number): void {
  entry().cursor = at;
}

/** The row that the keys were at. */
export function recallCursor(): number | undefined {
  return entry().cursor;
}

/** Forgets what was read and where: somebody else looks. */
export function forgetEntries(): void {
  entries.clear();
}
