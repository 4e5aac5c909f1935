import type { Conditions, Figures, Result } from '../result.ts';

/** A figure as a column: what stands over it and how its values are put. */
interface Quantity {
  label: string;
  unit: string;
}

export const quantities: Readonly<Record<keyof Figures, Quantity>> = {
  operationsPerSecond: { label: 'Rate', unit: '/s' },
  cpuMicrosecondsPerOperation: { label: 'CPU each', unit: 'µs' },
  workersMicrosecondsPerOperation: { label: 'Workers', unit: 'µs' },
  mainThreadMicrosecondsPerOperation: { label: 'Main thread', unit: 'µs' },
  actionThreadsMicrosecondsPerOperation: { label: 'Action threads', unit: 'µs' },
  otherThreadsMicrosecondsPerOperation: { label: 'Other threads', unit: 'µs' },
  nodesMicrosecondsPerOperation: { label: 'Nodes', unit: 'µs' },
  databaseMicrosecondsPerOperation: { label: 'Database', unit: 'µs' },
  nanosecondsPerOperation: { label: 'Time each', unit: 'ns' },
  p50Milliseconds: { label: 'p50', unit: 'ms' },
  p99Milliseconds: { label: 'p99', unit: 'ms' },
  p999Milliseconds: { label: 'p99.9', unit: 'ms' },
  bytesPerStream: { label: 'Memory per stream', unit: 'bytes' },
  bytesPerRecord: { label: 'Disk per record', unit: 'bytes' },
  memoryBytesPerDevice: { label: 'Memory per device', unit: 'bytes' },
  wireBytesPerOperation: { label: 'On the wire', unit: 'bytes' },
  tabCpuMilliseconds: { label: 'CPU of the tab', unit: 'ms' },
  residentMegabytes: { label: 'Memory of the tab', unit: 'MB' },
  heapMegabytes: { label: 'JavaScript heap', unit: 'MB' },
  resumedPercent: { label: 'Resumed', unit: '%' },
  startMilliseconds: { label: 'Start to first answer', unit: 'ms' },
};

export const figureKeys = Object.keys(quantities) as (keyof Figures)[];

/** Each condition as a person says it, in the order they are said. */
const phrases: { readonly [K in keyof Required<Conditions>]: (value: Required<Conditions>[K]) => string } = {
  shards: (value) => counted(value, 'shard'),
  nodes: (value) => counted(value, 'node'),
  connections: (value) => counted(value, 'connection'),
  callers: (value) => counted(value, 'caller'),
  streams: (value) => counted(value, 'stream'),
  devices: (value) => counted(value, 'device'),
  actionThreads: (value) => counted(value, 'action thread'),
  queuedMails: (value) => counted(value, 'queued mail'),
  records: (value) => counted(value, 'record'),
  batch: (value) => `batch of ${grouped(value)}`,
  ratePerSecond: (value) => `${grouped(value)}/s`,
  payloadBytes: (value) => `payload ${grouped(value)} bytes`,
  loop: (value) => `${value} loop`,
  durability: (value) => (value === 'none' ? 'not durable' : value),
};

export const conditionKeys = Object.keys(phrases) as (keyof Conditions)[];

function counted(value: number, noun: string): string {
  return `${grouped(value)} ${noun}${value === 1 ? '' : 's'}`;
}

function grouped(value: number): string {
  return value.toLocaleString('en-GB', { maximumFractionDigits: 20 });
}

/** Three significant digits, thousands grouped: '45,318' stays whole. */
export function figure(value: number): string {
  if (value === 0 || !Number.isFinite(value)) return value === 0 ? '0' : '–';
  const decimals = Math.min(Math.max(2 - Math.floor(Math.log10(Math.abs(value))), 0), 6);
  return value.toLocaleString('en-GB', { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
}

function phrase<K extends keyof Conditions>(key: K, value: Conditions[K]): string {
  return (phrases[key] as (value: Conditions[K]) => string)(value);
}

/** '0.97 × nginx', with the figure's name where it is not CPU; nothing where nothing was compared. */
export function ratioText(ratio: Result['ratio']): string {
  if (ratio === undefined) return '';
  const name = ratio.figure === 'cpuMicrosecondsPerOperation' ? '' : `${quantities[ratio.figure].label} `;
  return `${name}${ratio.value.toFixed(2)} × ${ratio.to}`;
}

/** The conditions named, in one line. */
export function conditionsText(
  conditions: Conditions,
  keys: readonly (keyof Conditions)[] = conditionKeys,
): string {
  return keys
    .filter((key) => conditions[key] !== undefined)
    .map((key) => phrase(key, conditions[key]))
    .join(', ');
}

/** Those conditions in which the results are not all alike: what a label has to say beside the workload. */
export function varyingConditions(results: readonly Result[]): (keyof Conditions)[] {
  return conditionKeys.filter((key) => new Set(results.map(({ conditions }) => conditions[key])).size > 1);
}

/** Conditions shared by all of them, for the line above. */
export function sharedConditionsText(results: readonly Result[]): string {
  const varying = varyingConditions(results);
  const [first] = results;
  if (first === undefined) return '';
  return conditionsText(
    first.conditions,
    conditionKeys.filter((key) => !varying.includes(key)),
  );
}
