import type { Command } from 'commander';
import { requestCommand } from '../declared.ts';

/** `release`. */
export function addReleaseCommand(program: Command): void {
  requestCommand(program, 'DELETE', '/hold', {
    usage: 'release',
    does: 'release a held server: its forwarders, actions, broadcasts and delayed mail go on',
    done: ({ released }) =>
      released
        ? 'Released: forwarders, actions, broadcasts and delayed mail go on.'
        : 'The server is not held. Nothing changed.',
  });
}
