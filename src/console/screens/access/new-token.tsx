import { useState } from 'preact/hooks';
import type { CreatedTokenDocument } from '../../../contract/access/token.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import type { Scope } from '../../../core/scope.ts';
import { Drawer } from '../../forms/dialogs.tsx';
import { ExpiryField, expiryTime } from '../../forms/expiry.tsx';
import { Field, formTexts, SelectField } from '../../forms/field.tsx';
import { ShownOnce } from '../../forms/shown-once.tsx';
import { Banner, ErrorBanner } from '../../parts/banner.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { call } from '../../server/client.ts';
import { useSubmit } from '../../server/submit.ts';

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

/** Makes an API token, whose text is shown this one time. */
export function NewToken({ fleetId, onClose, onMade }: NewTokenProps) {
  const [scopes, setScopes] = useState<Scope[]>(['read']);
  const [made, setMade] = useState<CreatedTokenDocument | undefined>();
  const { error, isBusy, submit } = useSubmit();
  const create = (event: SubmitEvent): void => {
    const text = formTexts(event);
    const body = {
      name: text('name'),
      scopes,
      fleet_id: text('fleet') || null,
      expires_at: expiryTime(text('expires')),
    };
    void submit(async () => {
      setMade(await call('POST', pathTo('/tokens', {}), { body }));
      onMade();
    });
  };
  const toggle = (scope: Scope): void =>
    setScopes(scopes.includes(scope) ? scopes.filter((one) => one !== scope) : [...scopes, scope]);
  if (made !== undefined) {
    return (
      <Drawer title="New token" onClose={onClose}>
        <Banner kind="good">
          Made <Untrusted text={made.name} lengthMax={120} />, which may {made.scopes.join(', ')} in{' '}
          {made.fleet_id ?? 'all fleets'}.
        </Banner>
        <ShownOnce what="token" secret={made.token} />
      </Drawer>
    );
  }
  return (
    <Drawer title="New token" onClose={onClose}>
      <form class="drawer-form" onSubmit={create}>
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
          value={fleetId}
          options={[
            [fleetId, `this fleet, ${fleetId}`],
            ['', 'all fleets'],
          ]}
        />
        <ExpiryField />
        {error && <ErrorBanner error={error} />}
        <button type="submit" class="button is-main" disabled={isBusy || scopes.length === 0}>
          Make the token
        </button>
      </form>
    </Drawer>
  );
}
