import { useState } from 'preact/hooks';
import type { CreatedClaimTokenDocument } from '../../../contract/access/token.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import { Drawer } from '../../forms/dialogs.tsx';
import { ExpiryField, expiryTime } from '../../forms/expiry.tsx';
import { Field, formTexts } from '../../forms/field.tsx';
import { ShownOnce } from '../../forms/shown-once.tsx';
import { Banner, ErrorBanner } from '../../parts/banner.tsx';
import { call } from '../../server/client.ts';
import { useSubmit } from '../../server/submit.ts';

export interface NewClaimTokenProps {
  fleetId: string;
  onClose: () => void;
  onMade: () => void;
}

/** Makes a claim token, whose text is shown this one time. */
export function NewClaimToken({ fleetId, onClose, onMade }: NewClaimTokenProps) {
  const [made, setMade] = useState<CreatedClaimTokenDocument | undefined>();
  const { error, isBusy, submit } = useSubmit();
  const create = (event: SubmitEvent): void => {
    const text = formTexts(event);
    const tags = text('tags')
      .split(/\s*,\s*/)
      .filter(Boolean);
    const body = {
      name: text('name'),
      devices_max: Number(text('devices')),
      expires_at: expiryTime(text('expires')),
      ...(text('pattern') && { id_pattern: text('pattern') }),
      ...(tags.length > 0 && { tags }),
    };
    const path = pathTo('/fleets/{fleet_id}/claim-tokens', { fleet_id: fleetId });
    void submit(async () => {
      setMade(await call('POST', path, { body }));
      onMade();
    });
  };
  if (made !== undefined) {
    return (
      <Drawer title="New claim token" onClose={onClose}>
        {!made.claiming && (
          <Banner kind="warn">Devices cannot claim yet: the key claiming of the configuration is off.</Banner>
        )}
        <ShownOnce what="claim token" secret={made.claim_token} />
      </Drawer>
    );
  }
  return (
    <Drawer title="New claim token" onClose={onClose}>
      <form class="drawer-form" onSubmit={create}>
        <Field label="Name" name="name" maxLength={255} />
        <Field
          label="Devices at most"
          name="devices"
          type="number"
          required
          min={1}
          max={100_000_000}
          defaultValue="100"
        />
        <ExpiryField />
        <Field
          label="Ids"
          name="pattern"
          class="mono"
          maxLength={256}
          hint="RE2 pattern that the whole id must match; empty: any, or one that the server draws"
        />
        <Field label="Tags" name="tags" hint="Of the devices that register with it, parted by commas" />
        {error && <ErrorBanner error={error} />}
        <button type="submit" class="button is-main" disabled={isBusy}>
          Make the claim token
        </button>
      </form>
    </Drawer>
  );
}
