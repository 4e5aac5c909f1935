import { expect, vi } from 'vitest';
import type { BroadcastDocument, BroadcastRefusalDocument } from '../../../src/contract/broadcast.ts';
import type { DeviceDocument } from '../../../src/contract/device.ts';
import type { ListDocument } from '../../../src/contract/document.ts';
import type { TestFleet } from '../devices/device.ts';

const patience = { timeout: 60_000, interval: 20 };
/** A broadcast may take seconds, and nothing is to be caught in its midst. */
const endPatience = { timeout: 60_000, interval: 100 };

/** Broadcasts of one fleet, through the admin API. */
export class Broadcasts {
  readonly #fleet: TestFleet;

  constructor(fleet: TestFleet) {
    this.#fleet = fleet;
  }

  get path(): string {
    return `/fleets/${this.#fleet.fleetId}/broadcasts`;
  }

  async put(body: object | string): Promise<BroadcastDocument> {
    const answer = await this.#fleet.server.admin<BroadcastDocument>('POST', this.path, body);
    expect(answer, JSON.stringify(answer.body)).toMatchObject({ status: 202 });
    return answer.body;
  }

  async get(id: string): Promise<BroadcastDocument> {
    return (await this.#fleet.server.admin<BroadcastDocument>('GET', `${this.path}/${id}`)).body;
  }

  change(id: string, verb: 'pause' | 'resume' | 'cancel') {
    return this.#fleet.server.admin<BroadcastDocument>('POST', `${this.path}/${id}/${verb}`);
  }

  async refusals(id: string): Promise<BroadcastRefusalDocument[]> {
    const path = `${this.path}/${id}/refusals?limit=1000`;
    return (await this.#fleet.server.admin<ListDocument<BroadcastRefusalDocument>>('GET', path)).body.items;
  }

  /** Settles once that many devices are done with. */
  sent(id: string, devices: number): Promise<BroadcastDocument> {
    return vi.waitFor(async () => {
      const broadcast = await this.get(id);
      expect(broadcast.queued + broadcast.refused).toBeGreaterThanOrEqual(devices);
      return broadcast;
    }, patience);
  }

  done(id: string): Promise<BroadcastDocument> {
    return vi.waitFor(async () => {
      const broadcast = await this.get(id);
      expect(broadcast.state).toBe('done');
      return broadcast;
    }, endPatience);
  }
}

/** Makes many devices; answers their ids in order. */
export async function importDevices(fleet: TestFleet, body: object): Promise<string[]> {
  const path = `/fleets/${fleet.fleetId}/devices:import`;
  const response = await fetch(`${fleet.server.report.admin_url}/admin/v1${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${fleet.server.token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const [, ...lines] = (await response.text()).trimEnd().split('\n');
  return lines.map((line) => line.split(',')[1] ?? '').sort();
}

/** Counts the mails that wait for each device of the fleet. */
export async function mailboxSizes(fleet: TestFleet): Promise<Map<string, number>> {
  const sizes = new Map<string, number>();
  let after: string | null = '';
  while (after !== null) {
    const path: string = `/fleets/${fleet.fleetId}/devices?limit=1000&after=${after}`;
    const { body } = await fleet.server.admin<ListDocument<DeviceDocument>>('GET', path);
    for (const { device_id, mailbox_size } of body.items) sizes.set(device_id, mailbox_size);
    after = body.next;
  }
  return sizes;
}
