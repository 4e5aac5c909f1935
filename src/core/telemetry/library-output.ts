/**
 * Mutes `console.log` for as long as the process lives: nothing of ours prints by it, and NATS's library prints what it
 * cannot parse, which is the other side's own bytes, raw, among the lines of the log.
 */
export function muteLibraries(): void {
  console.log = () => {};
}
