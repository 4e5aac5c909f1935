import type { ForwarderDocument } from '../../../contract/forwarder.ts';

/** Where a forwarder sends to, in one line. */
export function destinationText({ type, url, servers, subject }: ForwarderDocument): string {
  return type === 'webhook' ? (url ?? '') : `${subject ?? ''} at ${(servers ?? []).join(', ')}`;
}
