import { Banner } from '../parts/banner.tsx';
import { Icon } from '../parts/icon.tsx';
import { Untrusted } from '../parts/untrusted.tsx';
import { endedBecause } from '../server/client.ts';

/** For whoever has no session: how to get one. */
export function Welcome() {
  return (
    <main class="welcome">
      <h1 class="inline">
        <Icon name="mail" />
        Fleetpost console
      </h1>
      {endedBecause.value !== undefined && (
        <Banner kind="warn">
          <Untrusted text={endedBecause.value} />
        </Banner>
      )}
      <p>
        To log in, run this where you run Fleetpost's commands. It opens a link that works once, for a minute:
      </p>
      <div class="paste">
        <pre>fleetpost console</pre>
      </div>
      <p class="soft">
        With a context or a token of another server, it opens the console of that one. The session has the
        rights of the token that the command uses.
      </p>
    </main>
  );
}
