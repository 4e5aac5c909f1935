import { signal } from '@preact/signals';
import { useRef, useState } from 'preact/hooks';

const prefix = 'fleetpost.draft.';
/** Drafts that are kept at once: one more is not, and says so. */
export const draftsMax = 20;
/** Characters of one: a source of 256 KiB with its tests. More is kept while the page is not loaded again. */
const storedCharactersMax = 600_000;
/** Pause in the typing after which a draft is written down. */
const writeDelayMs = 300;

/** Whatever is being written on any screen, by its key: it outlives the screen, and a reload of the page. */
const drafts = signal<ReadonlyMap<string, unknown>>(storedDrafts());
const unwritten = new Set<string>();
let timer: ReturnType<typeof setTimeout> | undefined;

function storedDrafts(): Map<string, unknown> {
  const found = new Map<string, unknown>();
  for (const key of Object.keys(sessionStorage)) {
    if (!key.startsWith(prefix) || found.size >= draftsMax) continue;
    try {
      found.set(key.slice(prefix.length), JSON.parse(sessionStorage.getItem(key) ?? ''));
    } catch {
      sessionStorage.removeItem(key);
    }
  }
  return found;
}

function write(): void {
  clearTimeout(timer);
  for (const key of unwritten) {
    const text = drafts.value.has(key) ? JSON.stringify(drafts.value.get(key)) : undefined;
    sessionStorage.removeItem(prefix + key);
    if (text === undefined || text.length > storedCharactersMax) continue;
    try {
      sessionStorage.setItem(prefix + key, text);
    } catch {
      // Its storage is full: the draft is in memory.
    }
  }
  unwritten.clear();
}
addEventListener('pagehide', write);

function put(key: string, draft: unknown): void {
  const changed = new Map(drafts.peek());
  if (draft === undefined) changed.delete(key);
  else changed.set(key, draft);
  drafts.value = changed;
  unwritten.add(key);
  clearTimeout(timer);
  timer = setTimeout(write, writeDelayMs);
}

/** Keys of drafts that begin so. */
export function draftKeys(beginning: string): string[] {
  return [...drafts.value.keys()].filter((key) => key.startsWith(beginning));
}

export function hasDrafts(): boolean {
  return drafts.value.size > 0;
}

/** Begins a draft, for a thing that the server does not have yet. Returns false if there are too many. */
export function beginDraft(key: string, draft: object): boolean {
  if (drafts.value.size >= draftsMax && !drafts.value.has(key)) return false;
  put(key, draft);
  return true;
}

export function hasDraft(key: string): boolean {
  return drafts.value.has(key);
}

export interface KeptDraft<T> {
  /** The draft, or else what the server has. */
  value: T;
  isChanged: boolean;
  /** True if the draft outlives this screen. */
  isKept: boolean;
  change(changed: Partial<T>): void;
  discard(): void;
}

/**
 * A draft of a thing on the server; `current` is what the server has, or what a new thing begins as, whose draft
 * stays when nothing of it was changed.
 */
export function useDraft<T extends object>(key: string, current: T, isNew = false): KeptDraft<T> {
  // The screen has the only copy of drafts beyond the bound.
  const [own, setOwn] = useState<{ key: string; value: T } | undefined>();
  const stored = drafts.value.get(key) as Partial<T> | undefined;
  const unkept = own?.key === key ? own.value : undefined;
  const value = { ...current, ...(stored ?? unkept) };
  // Two changes may come before the next drawing.
  const latest = useRef(value);
  latest.current = value;
  return {
    value,
    isChanged: stored !== undefined || unkept !== undefined,
    isKept: unkept === undefined || stored !== undefined,
    change(changed) {
      const next = { ...latest.current, ...changed };
      latest.current = next;
      setOwn(undefined);
      if (!isNew && isSame(next, current)) put(key, undefined);
      else if (!beginDraft(key, next)) setOwn({ key, value: next });
    },
    discard() {
      setOwn(undefined);
      put(key, undefined);
    },
  };
}

function isSame(a: object, b: object): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
