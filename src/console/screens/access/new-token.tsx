import { useState } from 'preact/hooks';
import { pathTo } from '../../../contract/routes/path.ts';
import type { Scope } from '../../../core/scope.ts';
import { ExpiryField, expiryTime } from '../../forms/expiry.tsx';
import { Field, SelectField } from '../../forms/field.tsx';
import { MakeDrawer } from '../../forms/make-drawer.tsx';
import { ShownOnce } from '../../forms/shown-once.tsx';
import { href } from '../../page/router.ts';
import { Banner } from '../../parts/banner.tsx';
import { CopyButton } from '../../parts/copy-button.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { call } from '../../server/client.ts';

const meanings: readonly (readonly [Scope, string])[] = [
  ['read', 'see devices, mail, records; fetch from consumers'],
  ['mail', 'send mail, broadcast, replay and drop dead letters'],
  ['provision', 'devices, schemas, claim tokens, limits of fleets'],
  ['admin', 'everything: tokens, backups, actions, the audit log'],
];

export interface NewTokenProps {
  fleetId: string;
  onClose: () => void;
  onMade: () => void;
}

/** A link that logs in with the token, which stands where no server sees it, and goes out of the address at once. */
function invitationTo(fleetId: string, token: string): string {
  return `${location.origin}${href([])}#${new URLSearchParams({ token, fleet: fleetId })}`;
}

function Invitation({ link }: { link: string }) {
  return (
    <div class="field">
      <span class="label">For a colleague: a link that logs in here</span>
      <div class="paste">
        <pre>{link}</pre>
        <CopyButton text={link} label="Copy the link" />
      </div>
      <p class="hint">
        The token is in it: whoever has the link, from the chat it was sent in or from a browser's history,
        has the rights of the token until that expires or is revoked.
      </p>
    </div>
  );
}

/** Makes an API token, whose text is shown this one time. */
export function NewToken({ fleetId, onClose, onMade }: NewTokenProps) {
  const [scopes, setScopes] = useState<Scope[]>(['read']);
  const toggle = (scope: Scope): void =>
    setScopes(scopes.includes(scope) ? scopes.filter((one) => one !== scope) : [...scopes, scope]);
  return (
    <MakeDrawer
      title="New token"
      verb="Make the token"
      isIncomplete={scopes.length === 0}
      secret="token"
      onClose={onClose}
      make={async (text) => {
        const body = {
          name: text('name'),
          scopes,
          fleet_id: text('fleet') || null,
          expires_at: expiryTime(text('expires')),
        };
        const made = await call('POST', pathTo('/tokens', {}), { body });
        onMade();
        return made;
      }}
      shown={(made) => (
        <>
          <Banner kind="good">
            Made <Untrusted text={made.name} lengthMax={120} />, which may {made.scopes.join(', ')} in{' '}
            {made.fleet_id ?? 'all fleets'}.
          </Banner>
          <ShownOnce what="token" text={made.token} />
          <Invitation link={invitationTo(made.fleet_id ?? fleetId, made.token)} />
        </>
      )}
    >
      <Field label="Name" name="name" required maxLength={255} hint="Who or what uses it" />
      <fieldset class="field choices">
        <legend class="label">May</legend>
        {meanings.map(([scope, meaning]) => (
          <label key={scope} class="choice">
            <input type="checkbox" checked={scopes.includes(scope)} onChange={() => toggle(scope)} />
            <span class="strong">{scope}</span>
            <span class="hint">{meaning}</span>
          </label>
        ))}
      </fieldset>
      <SelectField
        label="In"
        name="fleet"
        defaultValue={fleetId}
        options={[
          [fleetId, `this fleet, ${fleetId}`],
          ['', 'all fleets'],
        ]}
      />
      <ExpiryField />
    </MakeDrawer>
  );
}
