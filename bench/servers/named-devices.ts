import { request } from 'undici';
import { fleetId } from './devices.ts';
import type { Fleetpost } from './fleetpost.ts';
import type { Credentials } from './subject.ts';

/** Devices of one import: some megabytes of lines. */
const importedAtOnce = 50_000;

export interface NamedDevice extends Credentials {
  name: string;
}

/** Imports devices that are called unit-0000000 and so on, with the tags of each number. */
export async function importNamed(
  server: Fleetpost,
  count: number,
  tagsOf: (index: number) => readonly string[],
  progress: (text: string) => void,
): Promise<NamedDevice[]> {
  const all: NamedDevice[] = [];
  const headers = { authorization: `Bearer ${server.token}`, 'content-type': 'application/x-ndjson' };
  for (let start = 0; start < count; start += importedAtOnce) {
    progress(`making ${count.toLocaleString('en-GB')} devices: ${start.toLocaleString('en-GB')}`);
    const names = Array.from(
      { length: Math.min(importedAtOnce, count - start) },
      (_, index) => `unit-${String(start + index).padStart(7, '0')}`,
    );
    const lines = names.map((name, index) => JSON.stringify({ name, tags: tagsOf(start + index) }));
    const { statusCode, body } = await request(
      `${server.adminUrl}/admin/v1/fleets/${fleetId}/devices:import`,
      { method: 'POST', headers, body: `${lines.join('\n')}\n` },
    );
    const answers = (await body.text()).trimEnd().split('\n');
    if (statusCode !== 200 || answers.length !== names.length) throw new Error(`status ${statusCode}`);
    for (const answer of answers) {
      const { line, device_id, device_secret } = JSON.parse(answer) as Record<string, string | number>;
      const name = names[Number(line) - 1] ?? '';
      all.push({ fleetId, deviceId: String(device_id), secret: String(device_secret), name });
    }
  }
  return all;
}
