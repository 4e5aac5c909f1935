import { once } from 'node:events';
import type { Command } from 'commander';
import { fleetCommand } from '../../options.ts';
import { printable } from '../../output.ts';
import { fieldsOf, type RecordLinesOptions, recordLines } from './record-lines.ts';
import { withRecordOptions } from './record-options.ts';

interface TailOptions extends RecordLinesOptions {
  since?: string;
}

function textOf(line: string): string {
  const { stored_at, device_id, kind, schema, payload } = fieldsOf(line);
  return printable(`${stored_at}  ${device_id}  ${kind}  ${schema}  ${payload}`);
}

async function tail(options: TailOptions): Promise<void> {
  const { since, json } = options;
  const from: Record<string, string> = since === undefined ? { after: 'latest' } : { from: since };
  // Whoever it was piped to has had enough.
  process.stdout.once('error', () => process.exit(0));
  let isAway = false;
  const onAway = (reason: string): void => {
    if (!isAway) process.stderr.write(`fleetpost: ${reason.replace(/\.$/, '')}; trying again.\n`);
    isAway = true;
  };
  for await (const { lines } of recordLines(options, { ...from, follow: 'true' }, onAway)) {
    isAway = false;
    if (lines.length === 0) continue;
    const text = lines.map((line) => `${json ? line : textOf(line)}\n`).join('');
    if (!process.stdout.write(text)) await once(process.stdout, 'drain');
  }
}

/** `tail`. */
export function addTailCommand(program: Command): void {
  const command = fleetCommand(program, 'tail', 'print records as they are stored, until it is ended');
  withRecordOptions(command).action(tail);
}
