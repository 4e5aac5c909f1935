import { useEffect, useState } from 'preact/hooks';
import type { LogLineDocument } from '../../../contract/action-run.ts';
import type { Path, QueryAt } from '../../../contract/routes/path.ts';
import { CallError } from '../../server/call-error.ts';
import { call } from '../../server/client.ts';

/** Lines that are kept on the screen. */
const keptLinesMax = 2_000;
/** Lines asked for at once: an action that logs more between two looks has some skipped. */
const pageLines = 200;
const intervalMs = 1_500;
const pauseMsMax = 15_000;

type LogPath = Path<'/fleets/{fleet_id}/actions/{name}/logs'>;
type LogQuery = QueryAt<'GET', '/fleets/{fleet_id}/actions/{name}/logs'>;

export interface FollowedLog {
  key: string;
  /** Newest first. */
  lines: readonly LogLineDocument[];
  /** Lines that came and went between two looks. */
  skipped: number;
  isRead: boolean;
  error: CallError | undefined;
  brokenSinceMs: number | undefined;
}

/** The log of an action, followed while the page is looked at and `isPaused` is not. */
export function useFollowedLog(path: LogPath, filter: LogQuery, isPaused: boolean): FollowedLog {
  const key = `${path} ${JSON.stringify(filter)}`;
  const empty = { key, lines: [], skipped: 0, isRead: false, error: undefined, brokenSinceMs: undefined };
  const [state, setState] = useState<FollowedLog>(empty);
  // The key says all that is asked for
  useEffect(() => {
    if (isPaused) return;
    return follow(path, filter, (change) =>
      setState((before) => {
        const own = before.key === key ? before : empty;
        return { ...own, ...change(own) };
      }),
    );
  }, [key, isPaused]);
  return state.key === key ? state : empty;
}

type Update = (change: (before: FollowedLog) => Partial<FollowedLog>) => void;

function follow(path: LogPath, filter: LogQuery, update: Update): () => void {
  const stopping = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let failures = 0;
  const read = async (): Promise<void> => {
    if (document.hidden) return plan();
    try {
      const { items } = await call('GET', path, {
        query: { ...filter, limit: pageLines },
        signal: stopping.signal,
      });
      failures = 0;
      update((before) => joined(before, items));
    } catch (error) {
      if (stopping.signal.aborted) return;
      failures += 1;
      const known =
        error instanceof CallError ? error : new CallError(0, { error: 'failed', msg: String(error) });
      update(({ brokenSinceMs }) => ({ error: known, brokenSinceMs: brokenSinceMs ?? Date.now() }));
    }
    plan();
  };
  const plan = (): void => {
    if (stopping.signal.aborted) return;
    timer = setTimeout(() => void read(), Math.min(intervalMs * 2 ** failures, pauseMsMax));
  };
  void read();
  return () => {
    stopping.abort();
    clearTimeout(timer);
  };
}

/** The newest lines before those that were seen. */
function joined(before: FollowedLog, items: readonly LogLineDocument[]): Partial<FollowedLog> {
  const last = before.lines[0]?.line ?? 0;
  const fresh = items.filter(({ line }) => line > last);
  const isGap = before.isRead && last > 0 && fresh.length === items.length && items.length === pageLines;
  // Numbers of lines are of all devices and runs: with a filter the gap cannot be counted by them.
  const missed = isGap ? Math.max((fresh.at(-1)?.line ?? 0) - last - 1, 0) : 0;
  return {
    lines: fresh.length === 0 ? before.lines : [...fresh, ...before.lines].slice(0, keptLinesMax),
    skipped: before.skipped + missed,
    isRead: true,
    error: undefined,
    brokenSinceMs: undefined,
  };
}
