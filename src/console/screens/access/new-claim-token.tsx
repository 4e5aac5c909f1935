import { pathTo } from '../../../contract/routes/path.ts';
import { ExpiryField, expiryTime } from '../../forms/expiry.tsx';
import { Field } from '../../forms/field.tsx';
import { MakeDrawer } from '../../forms/make-drawer.tsx';
import { ShownOnce } from '../../forms/shown-once.tsx';
import { wordsIn } from '../../forms/words.ts';
import { Banner } from '../../parts/banner.tsx';
import { call } from '../../server/client.ts';

export interface NewClaimTokenProps {
  fleetId: string;
  onClose: () => void;
  onMade: () => void;
}

/** Makes a claim token, whose text is shown this one time. */
export function NewClaimToken({ fleetId, onClose, onMade }: NewClaimTokenProps) {
  const path = pathTo('/fleets/{fleet_id}/claim-tokens', { fleet_id: fleetId });
  return (
    <MakeDrawer
      title="New claim token"
      verb="Make the claim token"
      secret="claim token"
      onClose={onClose}
      make={async (text) => {
        const body = {
          name: text('name'),
          devices_max: Number(text('devices')),
          expires_at: expiryTime(text('expires')),
          id_pattern: text('pattern') || undefined,
          tags: wordsIn(text('tags')),
        };
        const made = await call('POST', path, { body });
        onMade();
        return made;
      }}
      shown={({ claiming, claim_token }) => (
        <>
          {!claiming && (
            <Banner kind="warn">
              Devices cannot claim yet: the key claiming of the configuration is off.
            </Banner>
          )}
          <ShownOnce what="claim token" text={claim_token} />
        </>
      )}
    >
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
    </MakeDrawer>
  );
}
