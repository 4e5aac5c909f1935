import { readdirSync, readFileSync } from 'node:fs';

/**
 * Fields of /proc/PID/stat from the third on: state, parent and what follows the name, which is in parentheses and may
 * hold anything. Undefined when the process has ended meanwhile.
 */
export function statOf(pid: number): string[] | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return text.slice(text.lastIndexOf(')') + 2).split(' ');
  } catch {
    return undefined;
  }
}

/** The parent of each process of this machine. */
function parents(): Map<number, number> {
  const pids = readdirSync('/proc').map(Number).filter(Number.isInteger);
  return new Map(pids.map((pid) => [pid, Number(statOf(pid)?.[1])]));
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

/** Kills as if the machine were gone: no process of the tree does anything any more, not even an end in order. */
export function killTree(root: number): void {
  send(root, 'SIGSTOP');
  const children = descendants(root);
  for (const pid of children) send(pid, 'SIGSTOP');
  for (const pid of children) send(pid, 'SIGKILL');
  send(root, 'SIGKILL');
}
