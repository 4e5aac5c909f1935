import { Field, formTexts } from '../forms/field.tsx';
import { Banner, ErrorBanner } from '../parts/banner.tsx';
import { Icon } from '../parts/icon.tsx';
import { Untrusted } from '../parts/untrusted.tsx';
import { endedBecause } from '../server/client.ts';
import { useSubmit } from '../server/submit.ts';
import { logIn } from './session.ts';

/** For whoever has no session: how to get one. */
export function Welcome() {
  const { error, isBusy, submit } = useSubmit();
  return (
    <main class="welcome">
      <h1 class="inline">
        <Icon name="mail" />
        Fleetpost console
      </h1>
      {endedBecause.value !== undefined && (
        <Banner kind="warn">
          <Untrusted text={endedBecause.value} lengthMax={500} />
        </Banner>
      )}
      {/* A refused code is said by the banner above. */}
      {error && error.status !== 401 && <ErrorBanner error={error} />}
      <p>
        To log in, run this where you run Fleetpost's commands. It prints a code for one login, for a minute:
      </p>
      <div class="paste">
        <pre>fleetpost console</pre>
      </div>
      <form
        class="stack"
        onSubmit={(event) => {
          const text = formTexts(event);
          void submit(() => logIn(text('code')));
        }}
      >
        <Field label="Code" name="code" class="mono" required maxLength={64} />
        <div class="inline">
          <button type="submit" class="button is-main" disabled={isBusy}>
            Log in
          </button>
        </div>
      </form>
      <p class="soft">
        With a context or a token of another server, it opens the console of that one. The session has the
        rights of the token that the command uses.
      </p>
    </main>
  );
}
