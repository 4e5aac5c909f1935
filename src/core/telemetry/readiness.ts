/** Why devices are not served normally. A new reason is a new word of `/readyz`, which monitors may parse. */
export interface NotReady {
  reason:
    | 'starting'
    | 'upgrading'
    | 'moving'
    | 'stopping'
    | 'disk_full'
    | 'shard_full'
    | 'store_refuses'
    | 'queue_full';
  msg: string;
}

/** The answer of `/readyz`. Free of the admin server's libraries, since it answers before they are loaded. */
export function readyAnswer(reasons: readonly NotReady[]): { status: 200 | 503; body: object } {
  const [first] = reasons;
  if (first === undefined) return { status: 200, body: { ok: true } };
  return { status: 503, body: { error: 'unavailable', msg: first.msg, reasons } };
}
