import type { ActionDocument, ActionTriggerDocument } from '../action.ts';
import type { DeadRunDocument, RunDocument, RunErrorDocument, StateEntryDocument } from '../action-run.ts';
import type { ListColumns } from './column.ts';

/** A trigger as it is written: NAME is a message, `datapoint:NAME` a datapoint. */
export function triggerText({ kind, schema }: ActionTriggerDocument): string {
  return kind === 'message' ? schema : `${kind}:${schema}`;
}

/** An error for people, its stack below it. */
export function runErrorText(error: RunErrorDocument | null): string | null {
  return error && `${error.code}: ${error.msg}`;
}

/** The same in one line. */
function errorLine(error: RunErrorDocument | null): string | null {
  return runErrorText(error)?.split('\n', 1)[0] ?? null;
}

export const actionColumns = [
  { name: 'name', label: 'Action' },
  { name: 'enabled', label: 'State', kind: 'word' },
  { name: 'held' },
  { name: 'on', label: 'Runs for', kind: 'word', value: ({ on }) => on.map(triggerText), isLesser: true },
  { name: 'version', label: 'Version', kind: 'count', isLesser: true },
  { name: 'runs_last_minute', label: 'Runs, last minute', kind: 'count', isLesser: true },
  { name: 'failures' },
  { name: 'in_hand' },
  { name: 'behind', label: 'Behind', kind: 'count', isLesser: true },
  { name: 'devices_behind' },
  { name: 'devices_blocked' },
  { name: 'dead_letters', label: 'Dead', kind: 'count' },
  {
    name: 'last_error',
    label: 'Last error',
    value: ({ last_error }) => errorLine(last_error),
    none: '',
    isLesser: true,
  },
] as const satisfies ListColumns<ActionDocument>;

export const runColumns = [
  { name: 'run', label: 'Run', kind: 'word' },
  { name: 'outcome', label: 'Outcome', kind: 'word' },
  { name: 'device', label: 'Device', kind: 'id' },
  { name: 'name', label: 'Schema', isLesser: true },
  { name: 'version', label: 'Version', kind: 'count', isLesser: true },
  { name: 'attempt', label: 'Attempt', kind: 'count', isLesser: true },
  { name: 'mails', label: 'Mails', kind: 'count', isLesser: true },
  { name: 'cpu_milliseconds', label: 'CPU', kind: 'count', isLesser: true },
  { name: 'ended_at', label: 'Ended', kind: 'time' },
  { name: 'error', value: ({ error }) => errorLine(error) },
] as const satisfies ListColumns<RunDocument>;

/** The dead letters of an action. */
export const deadRunColumns = [
  { name: 'run' },
  { name: 'device', label: 'Device', kind: 'id' },
  { name: 'name', label: 'Schema', isLesser: true },
  { name: 'attempts', label: 'Attempts', kind: 'count', isLesser: true },
  { name: 'failed_at', label: 'Failed', kind: 'time' },
  { name: 'error', label: 'Error', value: ({ error }) => errorLine(error) },
] as const satisfies ListColumns<DeadRunDocument>;

export const stateColumns = [
  { name: 'key', label: 'Key' },
  // As JSON: a text has its quotes, so that it is told from a number.
  { name: 'value', label: 'Value', value: ({ value }) => JSON.stringify(value) },
] as const satisfies ListColumns<StateEntryDocument>;
