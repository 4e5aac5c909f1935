import { spawn } from 'node:child_process';

/**
 * Tells systemd that the server is ready, where it waits for that (`Type=notify`), so that `systemctl start` ends when
 * devices are served. Node has no datagram sockets on paths: systemd's own program has.
 */
export function notifyReady(): void {
  if (!process.env.NOTIFY_SOCKET) return;
  spawn('systemd-notify', ['--ready'], { stdio: ['ignore', 'ignore', 'inherit'] }).on('error', (error) => {
    process.stderr.write(`fleetpost: systemd waits to hear that the server is ready: ${error.message}.\n`);
  });
}
