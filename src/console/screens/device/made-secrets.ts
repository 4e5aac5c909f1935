import { signal } from '@preact/signals';
import { self } from '../../session/session.ts';

/** Secrets that were made in this page, by fleet and device: kept in its memory alone, for the session that made them. */
const made = signal<{ session: string | null | undefined; secrets: ReadonlyMap<string, string> }>({
  session: undefined,
  secrets: new Map(),
});

function ownSecrets(): ReadonlyMap<string, string> {
  return made.value.session === self.value?.token_id ? made.value.secrets : new Map();
}

/** Keeps a secret that was just made, for the commands that the page shows. */
export function keepSecret(device: { fleet_id: string; device_id: string; device_secret: string }): void {
  const { fleet_id, device_id, device_secret } = device;
  made.value = {
    session: self.value?.token_id,
    secrets: new Map([...ownSecrets(), [`${fleet_id} ${device_id}`, device_secret]]),
  };
}

/** The secret of a device; undefined where this page has not made it: the server has only its digest. */
export function madeSecret(fleetId: string, deviceId: string): string | undefined {
  return ownSecrets().get(`${fleetId} ${deviceId}`);
}
