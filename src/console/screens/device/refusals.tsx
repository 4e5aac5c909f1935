import type { RefusalDocument } from '../../../contract/monitoring/refusal.ts';
import { Section } from '../../frame/frame.tsx';
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
              {items.map(
                ({ route, name, error, detail, msg, path: at, path_msg, count, last_at, last_address }) => (
                  <li key={route + name + error + detail + at} class="refusal">
                    <div class="inline">
                      <code class="bad strong">{detail ?? error}</code>
                      <span class="small soft">
                        {count > 1 && `${count.toLocaleString('en')}×, `}
                        <Moment time={last_at} />
                        {last_address !== null && ` from ${last_address}`}
                      </span>
                    </div>
                    <div class="small soft">
                      <Untrusted text={path_msg === null ? msg : `${at || '/'} ${path_msg}`} />
                    </div>
                    <code class="small faint">
                      <Untrusted text={name === null ? route : route.replace(/:[a-z_]+/, name)} />
                    </code>
                  </li>
                ),
              )}
            </ul>
          )
        }
      </Loaded>
    </Section>
  );
}
