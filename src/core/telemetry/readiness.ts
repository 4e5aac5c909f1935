/** Why devices are not served as they should be. A new one is a new word of `/readyz`, which monitors may read. */
export interface NotReady {
  reason: 'starting' | 'moving' | 'stopping' | 'disk_full' | 'shard_full' | 'store_refuses' | 'queue_full';
  msg: string;
}

/** What `/readyz` answers. Without the admin server's libraries, for it answers before they are loaded. */
export function readyAnswer(reasons: readonly NotReady[]): { status: 200 | 503; body: object } {
  const [first] = reasons;
  if (first === undefined) return { status: 200, body: { ok: true } };
  return { status: 503, body: { error: 'unavailable', msg: first.msg, reasons } };
}
