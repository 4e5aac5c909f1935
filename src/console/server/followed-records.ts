import { useEffect, useState } from 'preact/hooks';
import type { CallError } from './call-error.ts';
import type { Query } from './client.ts';
import { readRecords, type StreamedRecord } from './record-stream.ts';

/** Rows that are kept, and characters of all of them: what a tab holds after an hour is what it holds after a minute. */
const keptRecordsMax = 2_000;
const keptCharactersMax = 8_000_000;
/** Pause between two drawings: faster is seen by nobody. */
const drawMs = 250;

export interface FollowedRecords {
  /** Newest first. */
  records: readonly StreamedRecord[];
  /** Records that came and went between two drawings, never to be seen. */
  skipped: number;
  /** Records that came since it was paused. */
  unseen: number;
  error: CallError | undefined;
  /** Since when the stream is broken; undefined while it is open. */
  brokenSinceMs: number | undefined;
  isOpen: boolean;
  /** How often it was opened: what came in between may be missing, if nothing had come before. */
  openings: number;
  isEnded: boolean;
}

const nothing: FollowedRecords = {
  records: [],
  skipped: 0,
  unseen: 0,
  error: undefined,
  brokenSinceMs: undefined,
  isOpen: false,
  openings: 0,
  isEnded: false,
};

/** The newest records with those before, as many as are kept. */
function kept(newest: readonly StreamedRecord[], before: readonly StreamedRecord[]): StreamedRecord[] {
  const all = [...newest].reverse().concat(before).slice(0, keptRecordsMax);
  let characters = 0;
  const end = all.findIndex(({ line }) => {
    characters += line.length;
    return characters > keptCharactersMax;
  });
  return end === -1 ? all : all.slice(0, Math.max(end, 1));
}

/**
 * Records of a stream while the page is looked at: opened again where it was left. A change of `key` begins anew; a
 * change of the query alone keeps what was seen.
 */
export function useFollowedRecords(
  fleetId: string,
  key: string,
  query: Query,
  isPaused: boolean,
): FollowedRecords {
  const [state, setState] = useState({ key, ...nothing });
  const isVisible = useVisible();
  const current = state.key === key ? state : { key, ...nothing };
  const queryText = JSON.stringify(query);
  // The text of the query stands for it
  useEffect(() => {
    if (!isVisible) return;
    const update = (change: (before: FollowedRecords) => Partial<FollowedRecords>): void =>
      setState((before) => {
        const own = before.key === key ? before : { key, ...nothing };
        return { ...own, ...change(own) };
      });
    const last = current.records[0]?.cursor;
    return follow(fleetId, { ...query, ...(last !== undefined && { after: last }) }, update, isPaused);
  }, [fleetId, key, queryText, isVisible, isPaused]);
  return current;
}

type Update = (change: (before: FollowedRecords) => Partial<FollowedRecords>) => void;

function follow(fleetId: string, query: Query, update: Update, isPaused: boolean): () => void {
  let waiting: StreamedRecord[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  let skipped = 0;
  const draw = (): void => {
    timer = undefined;
    const drawn = waiting;
    const missed = skipped;
    [waiting, skipped] = [[], 0];
    // Paused: the rows stay as they are, and the stream goes on from them once it is let.
    if (isPaused) update((before) => ({ unseen: before.unseen + drawn.length + missed }));
    else
      update((before) => ({
        records: kept(drawn, before.records),
        skipped: before.skipped + missed,
        unseen: 0,
      }));
  };
  const stop = readRecords(fleetId, query, {
    onRecords(records) {
      waiting.push(...records);
      if (waiting.length > keptRecordsMax) {
        skipped += waiting.length - keptRecordsMax;
        waiting = waiting.slice(-keptRecordsMax);
      }
      timer ??= setTimeout(draw, drawMs);
    },
    onSkipped(count) {
      skipped += count;
      timer ??= setTimeout(draw, drawMs);
    },
    onState: (error) =>
      update((before) => ({
        error,
        isOpen: error === undefined,
        openings: before.openings + (error === undefined ? 1 : 0),
        brokenSinceMs: error === undefined ? undefined : (before.brokenSinceMs ?? Date.now()),
      })),
    onEnd: () => update(() => ({ isEnded: true })),
  });
  return () => {
    stop();
    clearTimeout(timer);
    if (timer !== undefined && !isPaused) draw();
    update(() => ({ unseen: 0 }));
  };
}

function useVisible(): boolean {
  const [isVisible, setVisible] = useState(!document.hidden);
  useEffect(() => {
    const onChange = (): void => setVisible(!document.hidden);
    document.addEventListener('visibilitychange', onChange);
    return () => document.removeEventListener('visibilitychange', onChange);
  }, []);
  return isVisible;
}
