import { useEffect, useRef } from 'preact/hooks';
import { Field, formTexts } from '../forms/field.tsx';
import { Paste } from '../forms/paste.tsx';
import { hasDrafts } from '../page/drafts.ts';
import { rememberWanted } from '../page/remembered.ts';
import { path } from '../page/router.ts';
import { Banner, ErrorBanner } from '../parts/banner.tsx';
import { Icon } from '../parts/icon.tsx';
import { Untrusted } from '../parts/untrusted.tsx';
import { CallError } from '../server/call-error.ts';
import { useSubmit } from '../server/submit.ts';
import { logIn, logInByToken } from './session.ts';
import { endedBecause } from './session-state.ts';

const codePattern = /^[\w-]{22}$/;
const tokenLengthMin = 30;

/** Logs in with what was pasted: a code, a token, or a link with one of them. @throws CallError. */
async function logInWith(text: string): Promise<void> {
  const fragment = new URLSearchParams(text.includes('#') ? text.slice(text.indexOf('#') + 1) : '');
  const code = fragment.get('code') ?? (codePattern.test(text) ? text : undefined);
  if (code !== undefined) return logIn(code);
  const token = fragment.get('token') ?? text;
  // Tokens are longer: the server would answer that there is no such token to who has mistyped a code.
  if (token.length < tokenLengthMin && !token.startsWith('FPT-')) {
    const msg = `Neither a login code, which has 22 characters, nor an API token, which begins with FPT-: this has ${token.length} characters. Make a new code: fleetpost console.`;
    throw new CallError(0, { error: 'invalid_code', msg });
  }
  return logInByToken(token);
}

/** For whoever has no session: how to get one. */
export function Welcome() {
  useEffect(() => {
    document.title = 'Log in · Fleetpost';
    if (path.value.length > 0) rememberWanted(location.pathname + location.search);
  }, []);
  return (
    <main class="welcome">
      <h1 class="inline">
        <Icon name="mail" />
        Fleetpost console
      </h1>
      <WhyEnded kept={hasDrafts() ? 'What you wrote is kept in this tab.' : undefined} />
      <Login />
    </main>
  );
}

/** Over the page of a session that has ended, which waits as it is and is not seen. */
export function Ended() {
  const dialog = useRef<HTMLDialogElement>(null);
  const open = (): void => dialog.current?.showModal();
  useEffect(open, []);
  return (
    <dialog class="ended" aria-label="Log in again" ref={dialog} onClose={open} closedby="none">
      <div class="welcome">
        <h1 class="inline">
          <Icon name="mail" />
          Log in again
        </h1>
        <WhyEnded kept="What you wrote is kept: log in, and go on where you were." />
        <Login />
      </div>
    </dialog>
  );
}

function WhyEnded({ kept }: { kept: string | undefined }) {
  const why = endedBecause.value;
  if (why === undefined) return null;
  return (
    <Banner kind="warn">
      <Untrusted text={why} lengthMax={500} /> {kept}
    </Banner>
  );
}

function Login() {
  const { error, isBusy, submit } = useSubmit();
  return (
    <>
      <form
        class="stack"
        onSubmit={(event) => {
          const text = formTexts(event);
          void submit(() => logInWith(text('credential')));
        }}
      >
        <Field
          label="Code or API token"
          name="credential"
          type="password"
          class="mono"
          autocomplete="current-password"
          required
          autofocus
          maxLength={1_000}
        />
        {error && <ErrorBanner error={error} />}
        <div class="inline">
          <button type="submit" class="button is-main" disabled={isBusy}>
            Log in
          </button>
        </div>
      </form>
      <p>This prints a code for one login, good for a minute. Run it where you run Fleetpost's commands:</p>
      <Paste text="fleetpost console" label="Copy the command" />
      <p class="small soft">
        A token is traded for a session, and not kept in the page. The session has the rights of the token, or
        of the one that the command uses. It lasts 12 hours, an hour without a request, or until you log out;
        all tabs of this browser share it.
      </p>
    </>
  );
}
