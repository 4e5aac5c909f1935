import { MessageChannel, type MessagePort } from 'node:worker_threads';

/** `mesh[a][b]` is a's end of the channel between workers a and b. */
export function meshOfPorts(size: number): (MessagePort | undefined)[][] {
  const mesh: (MessagePort | undefined)[][] = Array.from({ length: size }, () => Array(size).fill(undefined));
  for (let a = 0; a < size; a += 1) {
    for (let b = a + 1; b < size; b += 1) {
      const { port1, port2 } = new MessageChannel();
      (mesh[a] as MessagePort[])[b] = port1;
      (mesh[b] as MessagePort[])[a] = port2;
    }
  }
  return mesh;
}
