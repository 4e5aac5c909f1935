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
  const sizes = await Promise.all(
    mailIds.map(async (mailId) => {
      try {
        return (await shard.mail.payload(device, mailId))?.length ?? 0;
      } catch {
        // What cannot be read cannot be settled either: it answers for itself, not for what is sent along.
        return 0;
      }
    }),
  );
  const bytes = sizes.reduce((sum, size) => sum + size, 0);
  if (bytes > 0) checkWrittenBytes(cached, context, bytes);
}
