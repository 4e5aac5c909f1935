import type { Command } from 'commander';
import { sleep } from '../../../core/async.ts';
import { OperatorError } from '../../../core/errors.ts';
import { type ConnectionOptions, connect } from '../../connection.ts';
import { clientCommand, integerOption } from '../../options.ts';
import { print } from '../../output.ts';
import { FullScreen } from './full-screen.ts';
import { ratesOf, type TopRates, type TopSample } from './top-rates.ts';
import { topText } from './top-screen.ts';

type TopOptions = ConnectionOptions & { once?: boolean; interval: number };

/** Connects anew each time: a server that was started again may have another address and another token. */
function sample(options: TopOptions): Promise<TopSample> {
  return connect(options).request<TopSample>('GET', '/top');
}

async function once(options: TopOptions): Promise<TopRates> {
  const before = await sample(options);
  await sleep(options.interval * 1_000);
  return ratesOf(before, await sample(options));
}

/** A server that goes away is waited for; one that is not there at the beginning is an error. */
async function watch(options: TopOptions): Promise<void> {
  let before: TopSample | undefined = await sample(options);
  using screen = new FullScreen(process.stdout, process.stdin);
  const { signal } = screen;
  const left = new Promise<undefined>((resolve) => {
    signal.addEventListener('abort', () => resolve(undefined));
  });
  screen.show(() => 'Fleetpost: looking for a moment. q ends.');
  while (!signal.aborted) {
    await sleep(options.interval * 1_000, signal);
    try {
      // Whoever leaves does not wait for a server that does not answer.
      const after: TopSample | undefined = await Promise.race([sample(options), left]);
      if (after === undefined) break;
      const rates = before && ratesOf(before, after);
      if (rates !== undefined) screen.show((size) => topText(rates, size));
      before = after;
    } catch (error) {
      if (!(error instanceof OperatorError)) throw error;
      before = undefined;
      screen.show(() => `${error.message}\nTried again every ${options.interval} s. q ends.`);
    }
  }
}

/** `top`. */
export function addTopCommand(program: Command): void {
  clientCommand(program, 'top', 'watch a running server: requests, latency, shards, streams, mail, talkers')
    .option('--once', 'print one picture and end; as without a terminal, and with --json')
    .option('--interval <seconds>', 'time between two pictures', integerOption(1, 3_600), 2)
    .action(async (options: TopOptions) => {
      if (!options.once && !options.json && process.stdout.isTTY) {
        await watch(options);
        // A question that nobody waits for would hold up the end.
        process.exit();
      }
      const rates = await once(options);
      print(options, rates, topText(rates));
    });
}
