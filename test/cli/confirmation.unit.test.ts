import { PassThrough } from 'node:stream';
import { expect, it, vi } from 'vitest';
import { isConfirmed, type Selection, type Terminal } from '../../src/cli/confirmation.ts';

const deed = ['disable', 'devices'] as const;
const eleven: Selection = { count: 11, first: Array.from({ length: 11 }, (_, n) => `D${n}`) };

/** A terminal at which this is typed; what it shows is added to `shown`. */
function terminal(typed: string, shown: string[], isTTY = true): Terminal {
  const input = Object.assign(new PassThrough(), { isTTY });
  input.end(typed);
  const output = Object.assign(new PassThrough(), { isTTY });
  output.on('data', (chunk) => shown.push(String(chunk)));
  return { input, output };
}

it('asks on a terminal, with the count and the first ten, and takes only yes for yes', async () => {
  const shown: string[] = [];
  expect(await isConfirmed(deed, {}, async () => eleven, terminal('y\n', shown))).toBe(true);
  expect(shown.join('')).toContain(
    'This will disable 11 devices: D0, D1, D2, D3, D4, D5, D6, D7, D8, D9, ….\nContinue? [y/N] ',
  );
  for (const typed of ['n\n', '\n', '', 'yesterday\n']) {
    const asked = isConfirmed(deed, {}, async () => eleven, terminal(typed, []));
    await expect(asked).rejects.toThrow('Not confirmed; nothing was changed.');
  }
});

it('without a terminal --yes is needed, and nothing is counted', async () => {
  const select = vi.fn(async () => eleven);
  await expect(isConfirmed(deed, {}, select, terminal('y\n', [], false))).rejects.toThrow(
    'This would disable devices: confirm it with --yes, or see which with --dry-run.',
  );
  expect(await isConfirmed(deed, { yes: true }, select, terminal('', [], false))).toBe(true);
  expect(select).not.toHaveBeenCalled();
});
