import type { Command } from 'commander';
import type { AdminClient } from '../admin-client.ts';
import { type ConnectionOptions, connect } from '../connection.ts';
import { clientCommand, integer } from '../options.ts';
import { print } from '../output.ts';
import { ratesOf, type TopRates, type TopSample } from '../top-rates.ts';
import { topText } from '../top-screen.ts';

/** The terminal's other screen, so that what was on it comes back; and its cursor, which would blink about. */
const enter = '\u{1b}[?1049h\u{1b}[?25l';
const leave = '\u{1b}[?25h\u{1b}[?1049l';
const home = '\u{1b}[H';
const clearLine = '\u{1b}[K';
const clearRest = '\u{1b}[J';

type TopOptions = ConnectionOptions & { once?: boolean; interval: number };

function pause(seconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
}

async function* pictures(client: AdminClient, intervalSeconds: number): AsyncGenerator<TopRates> {
  let before = await client.request<TopSample>('GET', '/top');
  for (;;) {
    await pause(intervalSeconds);
    const after = await client.request<TopSample>('GET', '/top');
    yield ratesOf(before, after);
    before = after;
  }
}

/** Drawn over what was there, line by line, so that nothing flickers. */
async function watch(client: AdminClient, intervalSeconds: number): Promise<void> {
  const { stdout } = process;
  const restore = (): void => {
    stdout.write(leave);
  };
  process.once('SIGINT', () => {
    restore();
    process.exit(0);
  });
  stdout.write(enter);
  try {
    for await (const rates of pictures(client, intervalSeconds)) {
      const lines = topText(rates)
        .split('\n')
        .slice(0, (stdout.rows ?? 50) - 1);
      const fitted = lines.map((line) => line.slice(0, stdout.columns ?? 120) + clearLine);
      stdout.write(`${home}${fitted.join('\n')}\n${clearRest}`);
    }
  } finally {
    restore();
  }
}

/** `top`. */
export function addTopCommand(program: Command): void {
  clientCommand(program, 'top', 'watch a running server: requests, latency, shards, streams, mail, talkers')
    .option('--once', 'print one picture and end; as without a terminal, and with --json')
    .option('--interval <seconds>', 'time between two pictures', integer(1, 3_600), 2)
    .action(async (options: TopOptions) => {
      const client = connect(options);
      if (!options.once && !options.json && process.stdout.isTTY) {
        await watch(client, options.interval);
        return;
      }
      for await (const rates of pictures(client, options.interval)) {
        print(options, rates, topText(rates));
        break;
      }
    });
}
