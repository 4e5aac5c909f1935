import { useState } from 'preact/hooks';
import type { DiagnosisDocument } from '../../../contract/monitoring/diagnosis.ts';
import { lazyScreen } from '../../frame/lazy-screen.tsx';
import { Act } from '../../parts/act.tsx';
import { Banner, ErrorBanner } from '../../parts/banner.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import type { Resource } from '../../server/resource.ts';

const Rotate = lazyScreen(async () => (await import('../set-up.tsx')).Rotate);

type Kind = DiagnosisDocument['kind'];
/** Findings about devices that are well, or not in need. */
const quietKinds: readonly Kind[] = ['ok', 'delayed'];
const warningKinds: readonly Kind[] = [
  'disabled',
  'never_seen',
  'offline',
  'silent',
  'requeues_all',
  'never_fetches',
];
/** Findings that a new secret may be the answer to. */
const secretKinds: readonly Kind[] = ['wrong_secret', 'locked_out'];

export interface DiagnosisProps {
  fleetId: string;
  deviceId: string;
  diagnosis: Resource<DiagnosisDocument>;
}

/** In one sentence, why the device is stuck; what else was found below it. */
export function Diagnosis({ fleetId, deviceId, diagnosis }: DiagnosisProps) {
  const [isRotating, setRotating] = useState(false);
  const { value, error } = diagnosis;
  if (value === undefined) return error ? <ErrorBanner error={error} onRetry={diagnosis.refresh} /> : null;
  const { kind, sentence, findings } = value;
  const tone = quietKinds.includes(kind) ? 'plain' : warningKinds.includes(kind) ? 'warn' : 'bad';
  if (kind === 'ok') return null;
  return (
    <>
      <Banner
        kind={tone}
        tools={
          secretKinds.includes(kind) && (
            <Act scope="provision" onClick={() => setRotating(true)}>
              New secret…
            </Act>
          )
        }
      >
        <p>
          <Untrusted text={sentence} lengthMax={1_000} />
        </p>
        {findings.slice(1).map((finding) => (
          <p class="small soft" key={finding.kind}>
            <Untrusted text={finding.sentence} lengthMax={1_000} />
          </p>
        ))}
      </Banner>
      {isRotating && <Rotate fleetId={fleetId} deviceId={deviceId} onClose={() => setRotating(false)} />}
    </>
  );
}
