import { useEffect, useState } from 'preact/hooks';
import type { DeviceDocument } from '../../../contract/device.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import { call } from '../../server/client.ts';
import { devicesOfIds } from '../devices/find-id.ts';
import { spellingsOf } from '../devices/spellings.ts';

/** Pause in typing after which it is looked for. */
const pauseMs = 150;
const devicesMax = 6;

/** Devices whose id or name begins with the text, by the indexes of both. */
export function useFoundDevices(fleetId: string, text: string): readonly DeviceDocument[] {
  const [found, setFound] = useState<{ text: string; devices: readonly DeviceDocument[] }>({
    text: '',
    devices: [],
  });
  const wanted = text.trim();
  useEffect(() => {
    if (wanted.length < 2 || wanted.length > 255) return;
    const stopping = new AbortController();
    const look = async (): Promise<void> => {
      const { signal } = stopping;
      const isId = /^[A-Za-z0-9]{1,10}$/.test(wanted);
      const [byId, byName] = await Promise.all([
        isId ? devicesOfIds(fleetId, spellingsOf(wanted), devicesMax, signal) : [],
        call('GET', pathTo('/fleets/{fleet_id}/devices', { fleet_id: fleetId }), {
          query: { name_prefix: wanted, limit: devicesMax },
          signal,
        }),
      ]);
      const devices = new Map([...byId, ...byName.items].map((one) => [one.device_id, one]));
      setFound({ text: wanted, devices: [...devices.values()].slice(0, devicesMax) });
    };
    // A failed read finds nothing; the screens say why.
    const timer = setTimeout(() => look().catch(() => undefined), pauseMs);
    return () => {
      clearTimeout(timer);
      stopping.abort();
    };
  }, [fleetId, wanted]);
  // The devices found before stay until the next are there, if they still fit.
  return found.text !== '' && wanted.startsWith(found.text) ? found.devices : [];
}
