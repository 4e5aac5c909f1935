import { type AttentionItem, attentionItem } from '../../contract/monitoring/attention.ts';
import { deviceIdOf } from '../../core/identity.ts';
import { plainText } from '../../core/plain-text.ts';
import type { DeviceStatus } from '../../domain/devices/device.ts';
import { fetchedInVain, patienceMs } from '../../domain/devices/diagnosis.ts';
import { durationText } from '../../domain/duration-text.ts';
import type { Mail } from '../../domain/mail/mail.ts';
import type { Shards } from '../../domain/shard.ts';
import { countedText } from '../request/attention-source.ts';
import type { Turn } from '../request/turn.ts';
import { listDevices } from '../routes/device-list.ts';
import type { DeviceCounts } from './device-counts.ts';

/** Mailboxes that are looked into, those that wait longest: this is asked every few seconds. */
const lookedMax = 8;
/** Stuck ones that are named one by one; of more, their number and the longest. */
const namedMax = 3;
const nameCharactersMax = 60;

interface WaitingMail {
  status: DeviceStatus;
  mail: Mail;
}

interface StuckQuestion {
  fleetId: string;
  stuckSeconds: number;
  /** Time since its last request within which a device counts as one that calls. */
  activeMs: number;
  nowMs: number;
}

/**
 * Finds mailboxes that are stuck, and, among those that wait longest, devices that fetch their head again and again
 * without an answer, long before they count as stuck. Costs one read of an index and of a few heads.
 */
export async function attentionToMailboxes(
  shards: Shards,
  counts: DeviceCounts,
  { fleetId, stuckSeconds, activeMs, nowMs }: StuckQuestion,
  turn: Turn,
): Promise<AttentionItem[]> {
  const beforeMs = nowMs - stuckSeconds * 1_000;
  const filter = { fleetId, waitingBeforeMs: Math.max(beforeMs, nowMs - patienceMs) };
  const { items, next } = await listDevices(shards.all, filter, '', lookedMax, turn);
  const isStuck = ({ waitingSinceMs = nowMs }: DeviceStatus): boolean => waitingSinceMs < beforeMs;
  const stuck = items.filter(isStuck);
  // They come in the order of their waits: one that is not stuck says that there are no others.
  const isEach = next === null || stuck.length < items.length;
  const count = isEach ? stuck.length : Math.max(stuck.length, await counts.waiting(fleetId, beforeMs).value);
  const callsSinceMs = nowMs - activeMs;
  const isCalling = ({ lastSeenMs = 0 }: DeviceStatus): boolean => lastSeenMs >= callsSinceMs;
  const calling = isEach
    ? { count: stuck.filter(isCalling).length, isAll: true }
    : await counts.waitingActive(fleetId, beforeMs, callsSinceMs).value;
  const headsOf = async (devices: readonly DeviceStatus[]): Promise<WaitingMail[]> => {
    const heads = await Promise.all(devices.map(({ device }) => shards.of(device).mail.head(device)));
    // One that has just been settled waits no more.
    return heads.flatMap(({ mail }, index) => {
      const status = devices[index];
      return mail && status ? [{ status, mail }] : [];
    });
  };
  const [named, young] = await Promise.all([
    headsOf(stuck.slice(0, count > namedMax ? 1 : namedMax)),
    headsOf(items.filter((status) => !isStuck(status))),
  ]);
  return [
    ...(count > namedMax
      ? ofMany({ count, calling, stuckSeconds, isCalling, longest: named[0], nowMs })
      : named.map((waiting) => ofOne(waiting, isCalling(waiting.status), nowMs))),
    ...young.flatMap((waiting) => ofVain(waiting, nowMs)),
  ];
}

interface ManyStuck {
  count: number;
  /** Those of devices that call. */
  calling: { count: number; isAll: boolean };
  stuckSeconds: number;
  isCalling: (status: DeviceStatus) => boolean;
  longest: WaitingMail | undefined;
  nowMs: number;
}

/** Devices that call and do not take their mail are in trouble; what waits for others waits as it is meant to. */
function ofMany({ count, calling, stuckSeconds, isCalling, longest, nowMs }: ManyStuck): AttentionItem[] {
  const since = `have had the same mail at the head for more than ${durationText(stuckSeconds * 1_000)}`;
  const longestOf = (isOfCalling: boolean): string =>
    longest !== undefined && isCalling(longest.status) === isOfCalling
      ? `; the longest is ${deviceText(longest.status)} with ${longest.mail.name} ${plightOf(longest, nowMs)}.`
      : '.';
  const offline = Math.max(count - calling.count, 0);
  const items: AttentionItem[] = [];
  if (calling.count > 0) {
    const number = countedText(calling.count, calling.isAll);
    const devices = calling.count === 1 ? 'device that calls has' : 'devices that call have';
    const sentence = `${number} ${devices} not taken the mail at the head for more than ${durationText(stuckSeconds * 1_000)}${longestOf(true)}`;
    items.push(attentionItem('stuck_mailboxes', sentence, { count: calling.count, is_all: calling.isAll }));
  }
  if (offline > 0) {
    const mailboxes = offline === 1 ? 'mailbox of a device that does' : 'mailboxes of devices that do';
    const sentence = `${offline.toLocaleString('en')} ${mailboxes} not call ${offline === 1 ? since.replace('have', 'has') : since}${longestOf(false)}`;
    items.push(attentionItem('offline_mailboxes', sentence, { count: offline, is_all: calling.isAll }));
  }
  return items;
}

function ofOne(waiting: WaitingMail, isCalling: boolean, nowMs: number): AttentionItem {
  const { status, mail } = waiting;
  const sentence = `${deviceText(status)} has had ${mail.name} at the head of its mailbox ${plightOf(waiting, nowMs)}.`;
  const kind = isCalling ? 'stuck_mailboxes' : 'offline_mailboxes';
  return attentionItem(kind, sentence, { device_id: deviceIdOf(status.device), count: 1 });
}

function ofVain({ status, mail }: WaitingMail, nowMs: number): AttentionItem[] {
  const what = fetchedInVain(mail, nowMs);
  if (what === undefined) return [];
  const sentence = `${deviceText(status)} fetches ${what}.`;
  return [attentionItem('never_answers', sentence, { device_id: deviceIdOf(status.device) })];
}

/** A device as sentences name it. */
export function deviceText({ device, name }: DeviceStatus): string {
  const id = deviceIdOf(device);
  return name === '' ? id : `${id} (${plainText(name.slice(0, nameCharactersMax))})`;
}

/** How long the head has waited, and what the device did about it. */
function plightOf({ status, mail }: WaitingMail, nowMs: number): string {
  const { enabled, lastSeenMs, waitingSinceMs = nowMs } = status;
  const { fetchCount, requeueCount } = mail;
  const waited = `for ${durationText(nowMs - waitingSinceMs)}`;
  if (!enabled) return `${waited}: it is disabled`;
  if (fetchCount === 0) {
    const seen =
      lastSeenMs === undefined ? 'has never called' : `last called ${durationText(nowMs - lastSeenMs)} ago`;
    return `${waited}: never fetched, the device ${seen}`;
  }
  const answer = requeueCount === 0 ? 'never answered' : `requeued ${times(requeueCount)}`;
  return `${waited}: fetched ${times(fetchCount)}, ${answer}`;
}

function times(count: number): string {
  return count === 1 ? 'once' : `${count} times`;
}
