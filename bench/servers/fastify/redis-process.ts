import { Redis } from 'ioredis';
import { type AppOptions, type Store, serveApp } from './app.ts';
import { deviceKey, logKey, mailboxKey } from './redis-keys.ts';

const options = JSON.parse(process.argv[2] ?? '') as AppOptions;
/** Commands of one turn of the event loop travel together. */
const redis = new Redis(options.socket, { enableAutoPipelining: true });

const store: Store = {
  async digest(device) {
    return (await redis.hgetBuffer(deviceKey(device), 'digest')) ?? undefined;
  },
  async digestAndMailbox(device) {
    const [digest, size] = await Promise.all([
      redis.hgetBuffer(deviceKey(device), 'digest'),
      redis.llen(mailboxKey(device)),
    ]);
    return digest === null ? undefined : { digest, hasMail: size > 0 };
  },
  async storeDatapoint(device, schema, payload) {
    await redis.xadd(logKey, '*', 'device', device, 'schema', schema, 'payload', payload);
  },
  async noteSeen(lastSeenMs) {
    const pipeline = redis.pipeline();
    for (const [device, ms] of lastSeenMs) pipeline.hset(deviceKey(device), 'seen', ms);
    await pipeline.exec();
  },
};

await serveApp(store, options);
