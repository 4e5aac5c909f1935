import type { HttpContext } from '../server/context.ts';
import type { DeviceRequest } from '../server/endpoint.ts';
import { checkWrittenBytes } from './rate-limit.ts';

/**
 * Counts the payloads of mails that go to the tail as if the device had sent them: they are written anew.
 * @throws ApiError rate_limited, before anything is settled.
 */
export async function countRequeues(
  { device, cached, shard }: DeviceRequest,
  context: HttpContext,
  mailIds: readonly Uint8Array[],
): Promise<void> {
  const payloads = await Promise.all(mailIds.map((mailId) => shard.mail.payload(device, mailId)));
  const bytes = payloads.reduce((sum, payload) => sum + (payload?.length ?? 0), 0);
  if (bytes > 0) checkWrittenBytes(cached, context, bytes);
}
