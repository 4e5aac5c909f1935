// Lets a test drive the TypeScript client, as python-driver.py does: commands come as JSON lines, what happens goes out
// as JSON lines. Plain JavaScript, so that any Node 18 can run it.
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';

const { Device } = await import(process.argv[2]);

const say = (event, more) => process.stdout.write(`${JSON.stringify({ event, ...more })}\n`);
const lines = createInterface(process.stdin)[Symbol.asyncIterator]();

const { value: first } = await lines.next();
const options = JSON.parse(first);
const device = new Device({
  url: options.url,
  fleet: options.fleet,
  id: options.id,
  ...(options.secret && { secret: options.secret }),
  ...(options.claim && { claim: options.claim }),
  ...(options.ca && { ca: options.ca }),
  ...(options.pins && { pins: options.pins }),
  queue: options.queue,
  queueEntriesMax: options.queue_entries_max ?? 100_000,
  isPolling: options.polls ?? false,
  startDelaySeconds: options.start_delay_seconds,
  pace: {
    retrySecondsMax: options.retry_seconds_max ?? 60,
    unauthorizedSecondsMax: 1,
    streamAgainSeconds: 1,
    pollSecondsMin: 1,
  },
  onStatus: (status) => say('status', status),
});

const requeued = new Set();
let busyUntilMs;
async function handle({ id, name, payload }) {
  say('mail', { id, name, payload });
  await pause(1_000 * (payload.seconds ?? 0));
  if (payload.verb === 'raise') throw new Error('told to');
  busyUntilMs ??= Date.now() + 1_000 * (payload.busy ?? 0);
  if (Date.now() < busyUntilMs) return 'requeue';
  if (payload.verb === 'requeue' && !requeued.has(id)) {
    requeued.add(id);
    return 'requeue';
  }
  return ['ack', 'reject'].includes(payload.verb) ? payload.verb : undefined;
}

for await (const line of lines) {
  const command = JSON.parse(line);
  if (command.do === 'mail') device.onMail(handle);
  else if (command.do === 'heartbeat') device.heartbeat();
  else if (command.do === 'flush') {
    const empty = await device.flush(command.seconds);
    say('flushed', { empty, ...device.status });
  } else if (command.do === 'sleep') {
    const empty = await device.sleep(command.seconds);
    say('slept', { empty, ...device.status });
  } else if (command.do === 'close') {
    await device.close();
    break;
  } else {
    const { do: kind, name, payload, at } = command;
    await device[kind](name, payload, at && new Date(at));
    say('queued', { payload });
  }
}
process.exit();
