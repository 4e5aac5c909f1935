import { signal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { AnswerAt, MethodOf, Path, QueryAt, Template } from '../../contract/routes/path.ts';
import { recallDocument, rememberDocument } from '../page/history-entry.ts';
import { CallError } from './call-error.ts';
import { apiUrl, call } from './client.ts';

/** A document of the server as a screen has it. */
export interface Resource<T> {
  value: T | undefined;
  /** When `value` was read, at this browser. */
  readAtMs: number | undefined;
  /** Why it cannot be read now; `value` is then what was read before. */
  error: CallError | undefined;
  /** Since when reading has failed. */
  failingSinceMs: number | undefined;
  refresh(): void;
}

/** Reads again soon for the first times, for what is told by the difference of two answers, then each so many seconds. */
export function quickAtFirst(times: number, thenSeconds: number): () => number {
  let left = times;
  return () => {
    left -= 1;
    return left >= 0 ? 2 : thenSeconds;
  };
}

/** Counts how often something was told to have changed. */
const changes = signal(0);
/** Times between two readings of all that is shown, whatever changes. */
const changedMs = 2_000;
let waiting: ReturnType<typeof setTimeout> | undefined;

/** Has all that is shown, and is read again and again, read soon: a stream says that something has changed. */
export function readSoon(): void {
  if (waiting !== undefined) return;
  waiting = setTimeout(() => {
    waiting = undefined;
    changes.value += 1;
  }, changedMs);
}

interface State<T> {
  key: string;
  value?: T;
  readAtMs?: number;
  error?: CallError;
  failingSinceMs?: number;
}

/** Longest pause between attempts while the server does not answer. */
const pauseSecondsMax = 15;

/** Seconds until a document is read again: always the same, or by what it says. */
type Every<T> = number | ((value: T) => number);

/**
 * Reads a document when `key` changes, which names it and its loader alone, and again some seconds after each
 * answer while somebody looks at the page. Undefined as the key: there is nothing to read. `isEnded`: this one changes no more, and is not read again. Functions
 * are the same at each call.
 */
export function useResource<T>(
  key: string | undefined,
  load: (signal: AbortSignal) => Promise<T>,
  everySeconds?: Every<T>,
  isEnded: (value: T) => boolean = () => false,
): Resource<T> {
  const [state, setState] = useState<State<T>>({ key: '' });
  const again = useRef<() => void>(() => {});
  // The key says all that the loader depends on
  useEffect(() => {
    if (key === undefined) return;
    return keepReading(key, load, everySeconds, isEnded, setState, again);
  }, [key, everySeconds]);
  const current: State<T> = state.key === key ? state : (recalled(key) ?? { key: '' });
  return {
    value: current.value,
    readAtMs: current.readAtMs,
    error: current.error,
    failingSinceMs: current.failingSinceMs,
    refresh: () => again.current(),
  };
}

/** Reads the document of a path, whose key is its address. Undefined: there is nothing to read. */
export function useDocument<T extends Template>(
  path: Path<T> | undefined,
  everySeconds?: Every<AnswerAt<'GET', T>>,
  query?: QueryAt<'GET', T>,
  isEnded?: (value: AnswerAt<'GET', T>) => boolean,
): Resource<AnswerAt<'GET', T>> {
  return useResource(
    path && apiUrl(path, query),
    (signal) => call('GET' as MethodOf<T>, path as Path<T>, { ...(query && { query }), signal }),
    everySeconds,
    isEnded,
  );
}

type Update<T> = (change: (before: State<T>) => State<T>) => void;

function keepReading<T>(
  key: string,
  load: (signal: AbortSignal) => Promise<T>,
  every: Every<T> | undefined,
  isEnded: (value: T) => boolean,
  update: Update<T>,
  again: { current: () => void },
): () => void {
  const stopping = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let failures = 0;
  let isFinal = every === undefined;
  let everySeconds = typeof every === 'number' ? every : 1;
  let isReading = false;
  let isAskedAgain = false;
  const read = async (): Promise<void> => {
    clearTimeout(timer);
    isReading = true;
    try {
      const value = await load(stopping.signal);
      if (stopping.signal.aborted) return;
      failures = 0;
      isFinal = every === undefined || isEnded(value);
      if (typeof every === 'function') everySeconds = every(value);
      const state = remembered(key, value);
      update(() => state);
    } catch (error) {
      if (stopping.signal.aborted) return;
      failures += 1;
      update((before) => failed(before, key, error));
    } finally {
      isReading = false;
    }
    // A read asked for while an answer was on its way may be newer than that answer.
    if (isAskedAgain) {
      isAskedAgain = false;
      void read();
    } else plan();
  };
  const plan = (): void => {
    const isWorthwhile = !isFinal || failures > 0;
    if (!isWorthwhile || document.hidden || stopping.signal.aborted) return;
    const pauseSeconds = failures > 0 ? Math.min(2 ** failures, pauseSecondsMax) : everySeconds;
    timer = setTimeout(read, pauseSeconds * 1_000);
  };
  const refresh = (): void => {
    if (isReading) isAskedAgain = true;
    else void read();
  };
  const onVisibility = (): void => {
    if (document.hidden) clearTimeout(timer);
    else if (!isFinal && !isReading) void read();
  };
  const onChange = (): void => {
    if (!isFinal && !document.hidden) refresh();
  };
  // It is called at once as well, for the value that is there.
  let isSubscribed = false;
  const unsubscribe = changes.subscribe(() => isSubscribed && onChange());
  isSubscribed = true;
  again.current = refresh;
  document.addEventListener('visibilitychange', onVisibility);
  void read();
  return () => {
    stopping.abort();
    unsubscribe();
    clearTimeout(timer);
    document.removeEventListener('visibilitychange', onVisibility);
  };
}

/** The state after a read, which this step of the history keeps. */
function remembered<T>(key: string, value: T): State<T> {
  const readAtMs = Date.now();
  rememberDocument(key, { value, readAtMs });
  return { key, value, readAtMs };
}

/** The state that this step of the history had, so that going back draws at once what was there; it is read again. */
function recalled<T>(key: string | undefined): State<T> | undefined {
  const document = key === undefined ? undefined : recallDocument(key);
  // The key is that of the same loader, whose value it was
  return document && { key: key ?? '', value: document.value as T, readAtMs: document.readAtMs };
}

function failed<T>(before: State<T>, key: string, error: unknown): State<T> {
  const known =
    error instanceof CallError ? error : new CallError(0, { error: 'failed', msg: String(error) });
  const rest = before.key === key ? before : (recalled<T>(key) ?? { key });
  return { ...rest, error: known, failingSinceMs: rest.failingSinceMs ?? Date.now() };
}
