import { type AddressInfo, connect, createServer, type NetConnectOpts, type Socket } from 'node:net';
import { createInterface } from 'node:readline';

/**
 * A relay for TCP, as a process of its own, that can be stopped or be in a network of its own. Listens on the address
 * it is given and prints its port; each line of its input says where connections lead to from then on, as JSON, or that
 * those that are open carry nothing any more: null.
 */
const host = process.argv[2] ?? '127.0.0.1';
let target: NetConnectOpts | undefined;
const open = new Set<Socket>();

function join(near: Socket, far: Socket): void {
  for (const [one, other] of [
    [near, far],
    [far, near],
  ] as const) {
    open.add(one);
    one.setNoDelay(true);
    one.on('error', () => {});
    one.on('close', () => {
      open.delete(one);
      other.destroy();
    });
    one.pipe(other);
  }
}

const server = createServer((near) => {
  if (target === undefined) near.destroy();
  else join(near, connect(target));
});
server.listen(0, host, () => console.log((server.address() as AddressInfo).port));

createInterface({ input: process.stdin })
  .on('line', (line) => {
    const given = JSON.parse(line) as NetConnectOpts | null;
    if (given === null) {
      for (const socket of open) socket.unpipe().pause();
      return;
    }
    target = given;
    for (const socket of open) socket.destroy();
  })
  .on('close', () => process.exit());
