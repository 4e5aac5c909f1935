import { useState } from 'preact/hooks';
import type { CreatedDeviceDocument } from '../../../contract/device.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import { Drawer } from '../../forms/dialogs.tsx';
import { Banner, ErrorBanner } from '../../parts/banner.tsx';
import { DeviceLink } from '../../parts/device.tsx';
import { call } from '../../server/client.ts';
import { useSubmit } from '../../server/submit.ts';
import { Secret } from './secret.tsx';

/** Makes one device, whose secret is shown this one time. */
export function NewDeviceDrawer({ fleetId, onClose }: { fleetId: string; onClose: () => void }) {
  const [made, setMade] = useState<CreatedDeviceDocument | undefined>();
  const { error, isBusy, submit } = useSubmit();
  const create = (event: SubmitEvent): void => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const field = (name: string): string => String(form.get(name) ?? '').trim();
    const tags = field('tags')
      .split(/\s*,\s*/)
      .filter(Boolean);
    const body = {
      ...(field('id') && { device_id: field('id') }),
      ...(field('name') && { name: field('name') }),
      ...(tags.length > 0 && { tags }),
    };
    const path = pathTo('/fleets/{fleet_id}/devices', { fleet_id: fleetId });
    void submit(async () => setMade(await call('POST', path, { body })));
  };
  return (
    <Drawer title="New device" onClose={onClose}>
      {made === undefined ? (
        <form class="drawer-form" onSubmit={create}>
          <div class="field">
            <label for="new-name">Name</label>
            <input id="new-name" name="name" class="input" maxLength={255} />
          </div>
          <div class="field">
            <label for="new-tags">Tags</label>
            <input id="new-tags" name="tags" class="input" aria-describedby="new-tags-hint" />
            <span id="new-tags-hint" class="hint">
              Parted by commas
            </span>
          </div>
          <div class="field">
            <label for="new-id">Id</label>
            <input
              id="new-id"
              name="id"
              class="input mono"
              pattern="[A-Za-z0-9]{10}"
              title="10 letters or digits"
              aria-describedby="new-id-hint"
            />
            <span id="new-id-hint" class="hint">
              10 letters or digits; empty: the server draws one
            </span>
          </div>
          {error && <ErrorBanner error={error} />}
          <button type="submit" class="button is-main" disabled={isBusy}>
            Create
          </button>
        </form>
      ) : (
        <>
          <Banner kind="good">
            Made <DeviceLink fleetId={fleetId} id={made.device_id} />.
          </Banner>
          <Secret fleetId={fleetId} deviceId={made.device_id} secret={made.device_secret} />
        </>
      )}
    </Drawer>
  );
}
