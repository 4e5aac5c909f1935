import type { Command } from 'commander';
import { pathTo } from '../../../contract/routes/path.ts';
import { type ConnectionOptions, connect } from '../../connection.ts';
import { clientCommand } from '../../options.ts';
import { print } from '../../output.ts';

async function release(options: ConnectionOptions): Promise<void> {
  const answer = await connect(options).request('DELETE', pathTo('/hold', {}));
  const text = answer.released
    ? 'Released: forwarders, actions, broadcasts and delayed mail go on.'
    : 'The server is not held. Nothing changed.';
  print(options, answer, text);
}

/** `release`. */
export function addReleaseCommand(program: Command): void {
  clientCommand(
    program,
    'release',
    'release a held server: its forwarders, actions, broadcasts and delayed mail go on',
  ).action(release);
}
