import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import type { RecordDocument } from '../../../contract/record.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import { OperatorError } from '../../../core/errors.ts';
import { simulatedDeviceId, simulatedDeviceNumber } from '../devices/simulated-identity.ts';
import type { AdminAccess } from '../run/admin-access.ts';
import type { SentMails } from '../run/mail-feed.ts';
import { CheckFindings } from './findings.ts';
import {
  countLedgerEntries,
  entriesMax,
  readSends,
  readSettlements,
  StampsByDevice,
} from './ledger-entries.ts';
import { MailboxCheck } from './mailbox-check.ts';
import { checkSends } from './sent-check.ts';

/** Mailboxes whose mails are listed one by one; of all others the size is looked at. */
const listedMax = 2_000;

/** The fleet, its ledgers and the mail sent to it, which the check compares with the server's log. */
export interface CheckInput {
  admin: AdminAccess;
  fleetId: string;
  devices: number;
  folder: string;
  processes: number;
  epochMs: number;
  mails: SentMails;
  /** Broadcasts under names that no other mail has. */
  broadcasts: readonly { name: string; queued: number }[];
}

/** Counts of what was compared, and the violations found. */
export interface CheckResult {
  findings: CheckFindings;
  records: number;
  mailChanges: number;
  mailboxes: number;
}

/** A record whose payload says what became of a mail. */
type ReceiptRecord = Omit<RecordDocument, 'payload'> & { payload: { mail_id?: string; event?: string } };

/** Holds what devices and the sender of mail were answered against the log and the mailboxes. @throws OperatorError */
export async function checkFleet(input: CheckInput): Promise<CheckResult> {
  const { folder, processes, devices } = input;
  const entries = countLedgerEntries(folder, processes);
  if (entries > entriesMax)
    throw new OperatorError(
      `Nothing was checked: ${entries} answers are more than the ${entriesMax} that fit.`,
    );
  const findings = new CheckFindings();
  const mailboxes = new Map<number, MailboxCheck>();
  const logged = await readLog(input, mailboxes, findings);
  const sends = readSends(folder, processes);
  sends.sort(devices);
  logged.stamps.sort(devices);
  for (let device = 0; device < devices; device += 1) {
    checkSends(simulatedDeviceId(device), sends.of(device), logged.stamps.of(device), findings);
  }
  const settlements = readSettlements(folder, processes);
  const mailboxOf = (device: number): MailboxCheck => {
    const mailbox = mailboxes.get(device) ?? new MailboxCheck(device, findings);
    mailboxes.set(device, mailbox);
    return mailbox;
  };
  for (const device of settlements.keys()) mailboxOf(device);
  for (const [device, mails] of input.mails.queued) mailboxOf(device).checkSent(mails.map(bare));
  for (const [device, mailbox] of mailboxes) mailbox.checkSettlements(settlements.get(device) ?? []);
  checkBroadcasts(input, mailboxes, findings);
  await checkMailboxes(input, mailboxOf);
  return { findings, records: logged.stamps.count, mailChanges: logged.mailChanges, mailboxes: devices };
}

const bare = (id: string): string => id.replaceAll('-', '');

/** Reads the whole log of the fleet once. */
async function readLog(
  { admin, fleetId, epochMs, devices }: CheckInput,
  mailboxes: Map<number, MailboxCheck>,
  findings: CheckFindings,
): Promise<{ stamps: StampsByDevice; mailChanges: number }> {
  const stamps = new StampsByDevice();
  let mailChanges = 0;
  const response = await admin.open('GET', pathTo('/fleets/{fleet_id}/records', { fleet_id: fleetId }));
  if (response.body === null) throw new OperatorError('The server answered no records.');
  // The two declarations of a stream's type differ, the streams do not.
  const body = Readable.fromWeb(response.body as Parameters<typeof Readable.fromWeb>[0]);
  for await (const line of createInterface({ input: body, crlfDelay: Number.POSITIVE_INFINITY })) {
    if (line === '') continue;
    const record = JSON.parse(line) as ReceiptRecord;
    const device = simulatedDeviceNumber(record.device_id);
    if (device < 0 || device >= devices) {
      findings.note('unknown', `a record of ${record.device_id}`);
    } else if (record.kind === 'receipt') {
      mailChanges += 1;
      let mailbox = mailboxes.get(device);
      if (mailbox === undefined) {
        mailbox = new MailboxCheck(device, findings);
        mailboxes.set(device, mailbox);
      }
      const { mail_id: mailId = '', event = '' } = record.payload;
      mailbox.take({ mailId: bare(mailId), name: record.schema, event });
    } else if (record.recorded_at === undefined) {
      findings.note('unknown', `the record ${record.record_id}`);
    } else stamps.add(device, Math.max(0, Date.parse(record.recorded_at) - epochMs));
  }
  return { stamps, mailChanges };
}

/** Each broadcast came to each device once at most, and to as many as its count says. */
function checkBroadcasts(
  { broadcasts }: CheckInput,
  mailboxes: ReadonlyMap<number, MailboxCheck>,
  findings: CheckFindings,
): void {
  for (const name of new Set(broadcasts.map((one) => one.name))) {
    const own = broadcasts.filter((one) => one.name === name);
    const wanted = own.reduce((sum, { queued }) => sum + queued, 0);
    let found = 0;
    for (const [device, mailbox] of mailboxes) {
      const count = mailbox.queuedOf(name);
      found += count;
      if (count > own.length)
        findings.note('doubled', `the broadcast ${name} to ${simulatedDeviceId(device)}`);
    }
    for (let mail = found; mail < wanted; mail += 1) findings.note('lost', `a mail of the broadcast ${name}`);
  }
}

async function checkMailboxes(
  { admin, fleetId, devices }: CheckInput,
  mailboxOf: (device: number) => MailboxCheck,
): Promise<void> {
  let listed = 0;
  for await (const { items } of admin.pages(pathTo('/fleets/{fleet_id}/devices', { fleet_id: fleetId }))) {
    for (const { device_id, mailbox_size } of items) {
      const device = simulatedDeviceNumber(device_id);
      if (device < 0 || device >= devices) continue;
      const mailbox = mailboxOf(device);
      const isListed = mailbox.waiting.length > 0 && listed < listedMax;
      listed += isListed ? 1 : 0;
      const mails = isListed ? await mailsOf(admin, fleetId, device_id) : undefined;
      mailbox.checkMailbox(mailbox_size, mails);
    }
  }
}

async function mailsOf(admin: AdminAccess, fleetId: string, deviceId: string): Promise<string[]> {
  const path = pathTo('/fleets/{fleet_id}/devices/{device_id}/mail', {
    fleet_id: fleetId,
    device_id: deviceId,
  });
  const { items } = await admin.request('GET', path, { query: { limit: 1_000 } });
  return items.map(({ mail_id }) => bare(mail_id));
}
