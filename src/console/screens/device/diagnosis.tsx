import { below } from '../../../contract/routes/path.ts';
import { Banner, ErrorBanner } from '../../parts/banner.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { pathOfDevice } from '../../server/device-path.ts';
import { useDocument } from '../../server/resource.ts';

/** Findings about devices that are well, or not in need. */
const quietKinds = ['ok', 'delayed'];
const warningKinds = ['disabled', 'never_seen', 'offline', 'silent', 'requeues_all', 'never_fetches'];

/** In one sentence, why the device is stuck; what else was found below it. */
export function Diagnosis(props: { fleetId: string; deviceId: string; everySeconds: number }) {
  const { fleetId: fleet_id, deviceId: device_id, everySeconds } = props;
  const path = below(pathOfDevice(fleet_id, device_id), '/diagnosis', {});
  const diagnosis = useDocument(path, everySeconds);
  const { value, error } = diagnosis;
  if (value === undefined) return error ? <ErrorBanner error={error} onRetry={diagnosis.refresh} /> : null;
  const { kind, sentence, findings } = value;
  const tone = quietKinds.includes(kind) ? 'plain' : warningKinds.includes(kind) ? 'warn' : 'bad';
  if (kind === 'ok') return null;
  return (
    <Banner kind={tone}>
      <p>
        <Untrusted text={sentence} lengthMax={1_000} />
      </p>
      {findings.slice(1).map((finding) => (
        <p class="small soft" key={finding.kind}>
          <Untrusted text={finding.sentence} lengthMax={1_000} />
        </p>
      ))}
    </Banner>
  );
}
