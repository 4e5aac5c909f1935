import type { ServerDocument } from '../../../contract/server.ts';
import { Section } from '../../frame/frame.tsx';
import { Fact } from '../../parts/facts.tsx';
import { Moment } from '../../parts/moment.tsx';
import { followedNow } from '../../server/ticking.ts';

/** From here on an end comes soon: whoever renews by hand has to. */
const soonMs = 14 * 86_400_000;

/** Which program runs, since when, and until when its certificates hold. */
export function Program({ server }: { server: ServerDocument }) {
  const { version, node_version, started_at, shards, certificates } = server;
  const nowMs = followedNow();
  return (
    <Section title="Program and certificates">
      <dl class="facts">
        <Fact name="Version">
          {version}, Node {node_version}
        </Fact>
        <Fact name="Started">
          <Moment time={started_at} />
        </Fact>
        <Fact name="Shards">{shards}</Fact>
        {certificates.map(({ listener, expires_at }) => (
          <Fact
            key={listener}
            name={listener}
            class={Date.parse(expires_at) - nowMs < soonMs ? 'bad strong' : ''}
          >
            certificate ends <Moment time={expires_at} />
          </Fact>
        ))}
      </dl>
    </Section>
  );
}
