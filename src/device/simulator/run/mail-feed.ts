import { pathTo } from '../../../contract/routes/path.ts';
import { formatUuid, generateUuid } from '../../../core/uuid.ts';
import { simulatedDeviceId } from '../devices/simulated-identity.ts';
import { chance, hash32, Noise } from '../payload/noise.ts';
import { PayloadMaker } from '../payload/payload-maker.ts';
import { parseDuration } from '../scenario/quantity.ts';
import { profileOf, type Scenario } from '../scenario/scenario.ts';
import { isRefusal, type PatientAdmin } from './admin-access.ts';
import type { RunFigures } from './figures.ts';

const turnMs = 10;
/** Requests of the operator under way at once. */
const underWayMax = 64;
/** Devices that are looked at for one that may get a mail now. */
const tries = 200;

/** Outcome of the mail of the run's operator. */
export interface SentMails {
  /** Mail ids by device, in the order of their answers. */
  queued: Map<number, string[]>;
  /** Mails that the server refused, because a mailbox was full. */
  refused: number;
  /** Mails that were never answered: each may be there once. */
  doubted: number;
  /** Mails that were not sent because too many requests were under way. */
  dropped: number;
}

interface Recipient {
  profile: number;
  name: string;
  maker: PayloadMaker;
  /** Devices of that profile, about. */
  perMs: number;
}

/** The operator of a run, who sends mail to devices at the rates of their profiles, whatever is answered. */
export class MailFeed {
  readonly sent: SentMails = { queued: new Map(), refused: 0, doubted: 0, dropped: 0 };
  readonly #admin: PatientAdmin;
  readonly #fleetId: string;
  readonly #scenario: Scenario;
  readonly #figures: RunFigures;
  readonly #recipients: readonly Recipient[];
  readonly #underWay = new Map<number, Promise<void>>();
  #drawn = 0;

  constructor(admin: PatientAdmin, fleetId: string, scenario: Scenario, figures: RunFigures) {
    this.#admin = admin;
    this.#fleetId = fleetId;
    this.#scenario = scenario;
    this.#figures = figures;
    this.#recipients = scenario.profiles.flatMap(({ mail }, profile) => {
      if (mail?.name === undefined || mail.every === undefined) return [];
      const share = (scenario.shares[profile] ?? 0) - (scenario.shares[profile - 1] ?? 0);
      const perMs = (share * scenario.devices * scenario.speed) / parseDuration(mail.every);
      const maker = new PayloadMaker(mail.name, scenario.schemas.mail[mail.name] ?? {});
      return [{ profile, name: mail.name, maker, perMs }];
    });
  }

  /** Sends until the signal; settles when all is answered. */
  async run(signal: AbortSignal): Promise<void> {
    const startMs = performance.now();
    const due = this.#recipients.map(() => 0);
    while (!signal.aborted) {
      const nowMs = performance.now() - startMs;
      for (const [index, recipient] of this.#recipients.entries()) {
        for (; (due[index] ?? 0) <= nowMs && !signal.aborted; ) {
          const at = due[index] ?? 0;
          due[index] = at - Math.log(1 - this.#draw()) / recipient.perMs;
          if (at > 0) this.#begin(recipient, startMs + at);
        }
      }
      await new Promise((resolve) => setTimeout(resolve, turnMs));
    }
    await Promise.all(this.#underWay.values());
  }

  #draw(): number {
    this.#drawn += 1;
    return chance(this.#scenario.seed, this.#drawn, 0x3a11);
  }

  #begin(recipient: Recipient, dueMs: number): void {
    const device = this.#underWay.size < underWayMax ? this.#pick(recipient.profile) : undefined;
    if (device === undefined) {
      this.sent.dropped += 1;
      return;
    }
    const sending = this.#send(device, recipient, dueMs).finally(() => this.#underWay.delete(device));
    this.#underWay.set(device, sending);
  }

  /** One that no mail is under way to, so that its mails have an order. */
  #pick(profile: number): number | undefined {
    for (let tried = 0; tried < tries; tried += 1) {
      const device = Math.floor(this.#draw() * this.#scenario.devices);
      if (profileOf(this.#scenario, device) === profile && !this.#underWay.has(device)) return device;
    }
    return undefined;
  }

  async #send(device: number, { name, maker }: Recipient, dueMs: number): Promise<void> {
    const path = pathTo('/fleets/{fleet_id}/devices/{device_id}/mail/{name}', {
      fleet_id: this.#fleetId,
      device_id: simulatedDeviceId(device),
      name,
    });
    const noise = new Noise(hash32(this.#scenario.seed, 1, 1), device, this.#drawn);
    const sentMs = performance.now();
    try {
      const { mail_id } = await this.#admin.request(
        'POST',
        path,
        { json: JSON.parse(maker.make(noise)) as unknown },
        formatUuid(generateUuid()),
      );
      const nowMs = performance.now();
      this.#figures.record('mail', (nowMs - dueMs) * 1_000, (nowMs - sentMs) * 1_000);
      const mails = this.sent.queued.get(device);
      if (mails === undefined) this.sent.queued.set(device, [mail_id]);
      else mails.push(mail_id);
    } catch (error) {
      if (isRefusal(error)) this.sent.refused += 1;
      else this.sent.doubted += 1;
    }
  }
}
