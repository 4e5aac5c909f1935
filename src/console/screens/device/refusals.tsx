import { below } from '../../../contract/routes/path.ts';
import { Section } from '../../frame/frame.tsx';
import { Loaded } from '../../parts/banner.tsx';
import { Moment } from '../../parts/moment.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { pathOfDevice } from '../../server/device-path.ts';
import { useDocument } from '../../server/resource.ts';

/** The requests of a device that were refused lately, equal ones together. */
export function LastRefusals({ fleetId, deviceId }: { fleetId: string; deviceId: string }) {
  const path = below(pathOfDevice(fleetId, deviceId), '/refusals', {});
  const refusals = useDocument(path, 60);
  return (
    <Section title="Last refusals">
      <Loaded resource={refusals}>
        {({ items }) =>
          items.length === 0 ? (
            <p class="empty">None since the server started.</p>
          ) : (
            <ul class="list">
              {items.map(({ route, name, error, detail, msg, path: at, path_msg, count, last_at }) => (
                <li key={route + name + error + detail + at} class="refusal">
                  <div class="inline">
                    <code class="bad strong">{detail ?? error}</code>
                    <span class="small soft">
                      {count > 1 && `${count.toLocaleString('en')}×, `}
                      <Moment time={last_at} />
                    </span>
                  </div>
                  <div class="small soft">
                    <Untrusted text={path_msg === null ? msg : `${at || '/'} ${path_msg}`} />
                  </div>
                  <code class="small faint">
                    <Untrusted text={name === null ? route : route.replace(/:[a-z_]+/, name)} />
                  </code>
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </Section>
  );
}
