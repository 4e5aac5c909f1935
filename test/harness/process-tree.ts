import { readdirSync, readFileSync } from 'node:fs';

/** The parent of each process of this machine. */
function parents(): Map<number, number> {
  const found = new Map<number, number>();
  for (const name of readdirSync('/proc')) {
    const pid = Number(name);
    if (!Number.isInteger(pid)) continue;
    try {
      // State and parent follow the name, which is in parentheses and may hold anything.
      const [, parent] = readFileSync(`/proc/${pid}/stat`, 'utf8')
        .replace(/^.*\) /s, '')
        .split(' ');
      found.set(pid, Number(parent));
    } catch {
      // It has ended meanwhile.
    }
  }
  return found;
}

/** All that a process has started, and what these have. */
export function descendants(root: number): number[] {
  const all = parents();
  const tree = [root];
  for (const pid of tree) for (const [child, parent] of all) if (parent === pid) tree.push(child);
  return tree.slice(1);
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended meanwhile.
  }
}

/** Stops a process and all that it has started, the root first, so that nothing new is started meanwhile. */
export function freezeTree(root: number): void {
  send(root, 'SIGSTOP');
  for (const pid of descendants(root)) send(pid, 'SIGSTOP');
}

export function thawTree(root: number): void {
  for (const pid of descendants(root)) send(pid, 'SIGCONT');
  send(root, 'SIGCONT');
}

/** As if the machine were gone: no process of the tree does anything any more, not even an end in order. */
export function killTree(root: number): void {
  send(root, 'SIGSTOP');
  const children = descendants(root);
  for (const pid of children) send(pid, 'SIGSTOP');
  for (const pid of children) send(pid, 'SIGKILL');
  send(root, 'SIGKILL');
}
