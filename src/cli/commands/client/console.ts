import { spawn } from 'node:child_process';
import type { Command } from 'commander';
import { pathTo } from '../../../contract/routes/path.ts';
import { type ConnectionOptions, connect } from '../../connection.ts';
import { clientCommand, defaultFleet, deviceIdOption, fleetIdOption } from '../../options.ts';
import { print } from '../../output.ts';

interface ConsoleOptions extends ConnectionOptions {
  fleet?: string;
  showUrl?: boolean;
}

/** `console`. */
export function addConsoleCommand(program: Command): void {
  clientCommand(
    program,
    'console [device_id]',
    'open the console in a browser and print its login code, or print a link with it',
  )
    .option('--fleet <id>', 'the fleet of the device', fleetIdOption)
    .option('--show-url', 'print the link, which works once within a minute, instead of opening it')
    .action(async (device: string | undefined, options: ConsoleOptions, command: Command) => {
      const client = connect(options);
      const place = new URLSearchParams();
      if (device !== undefined) {
        place.set('fleet', options.fleet ?? defaultFleet(command));
        place.set('device', deviceIdOption(device));
      } else if (options.fleet !== undefined) place.set('fleet', options.fleet);
      const { code, expires_at } = await client.request('POST', pathTo('/console-codes', {}), { json: {} });
      const fragment = new URLSearchParams([['code', code], ...place]);
      const page = `${client.url}/console/`;
      const url = `${page}#${fragment}`;
      // Without the code: every user of this machine reads the command lines of all.
      const isOpened =
        !options.showUrl && !options.json && (await open(place.size > 0 ? `${page}#${place}` : page));
      const asked = `Opened the console in a browser. If it asks for one, enter this code, once and within a minute:\n${code}`;
      print(options, { url, expires_at }, isOpened ? asked : url);
    });
}

/** Opens the URL where there is a display; returns whether that worked. */
async function open(url: string): Promise<boolean> {
  const { DISPLAY, WAYLAND_DISPLAY } = process.env;
  const isMac = process.platform === 'darwin';
  if (!isMac && !DISPLAY && !WAYLAND_DISPLAY) return false;
  const opener = spawn(isMac ? 'open' : 'xdg-open', [url], { stdio: 'ignore', detached: true });
  opener.unref();
  return new Promise((resolve) => {
    opener.once('error', () => resolve(false));
    opener.once('spawn', () => resolve(true));
  });
}
