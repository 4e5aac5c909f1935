import type { RefusalDocument } from '../../../contract/monitoring/refusal.ts';
import { Section } from '../../frame/frame.tsx';
import { whyRefused } from '../../lists/refused-rows.tsx';
import { Loaded } from '../../parts/banner.tsx';
import { Moment } from '../../parts/moment.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import type { Resource } from '../../server/resource.ts';

/** The requests of a device that were refused lately, equal ones together. */
export function LastRefusals({ refusals }: { refusals: Resource<{ items: RefusalDocument[] }> }) {
  return (
    <Section title="Last refusals">
      <Loaded resource={refusals}>
        {({ items }) =>
          items.length === 0 ? (
            <p class="empty">None since the server started.</p>
          ) : (
            <ul class="list">
              {items.map((one) => (
                <Refusal key={[one.route, one.name, one.error, one.detail, one.path].join(' ')} {...one} />
              ))}
            </ul>
          )
        }
      </Loaded>
    </Section>
  );
}

function Refusal(refusal: RefusalDocument) {
  const { route, name, error, detail, count, last_at, last_address } = refusal;
  return (
    <li class="refusal">
      <div class="inline">
        <code class="bad strong">{detail ?? error}</code>
        <span class="small soft">
          {count > 1 && `${count.toLocaleString('en')}×, `}
          <Moment time={last_at} />
          {last_address !== null && ` from ${last_address}`}
        </span>
      </div>
      <div class="small soft">
        <Untrusted text={whyRefused(refusal)} />
      </div>
      <code class="small faint">
        <Untrusted text={name === null ? route : route.replace(/:[a-z_]+/, name)} />
      </code>
    </li>
  );
}
