import typescript from 'fleetpost:pump.mjs';
import python from 'fleetpost:pump.py';
import { useState } from 'preact/hooks';
import { type AnswerAt, pathTo } from '../../../contract/routes/path.ts';
import { Section } from '../../frame/frame.tsx';
import { Loaded } from '../../parts/banner.tsx';
import { Choice } from '../../parts/choice.tsx';
import { CopyButton } from '../../parts/copy-button.tsx';
import { useDocument } from '../../server/resource.ts';
import { madeSecret } from './made-secrets.ts';
import { NeededSchema } from './needed-schema.tsx';
import { secretPlaceholder, UnknownSecret } from './unknown-secret.tsx';

interface Program {
  text: string;
  /** Names the page that has its client. */
  topic: string;
  /** The argument with the certificate, which is not needed everywhere. */
  certificate: RegExp;
}

const programs = {
  python: { text: python, topic: 'start/quickstart', certificate: /ca="[^"]*", / },
  typescript: { text: typescript, topic: 'devices/typescript', certificate: /^ +ca: '[^']*',\n/m },
} satisfies Record<string, Program>;
type Language = keyof typeof programs;

export interface DeviceProgramProps {
  fleetId: string;
  deviceId: string;
  /** A device that calls has one. */
  hasCalled: boolean;
}

/** The first program of a device: the twelve lines of the quickstart with its own ids, and where this server is. */
export function DeviceProgram({ hasCalled, ...device }: DeviceProgramProps) {
  const [isShown, setShown] = useState(!hasCalled);
  return (
    <Section title="A program for it">
      <details class="below" open={isShown} onToggle={({ currentTarget }) => setShown(currentTarget.open)}>
        <summary>Twelve lines of Python or JavaScript</summary>
        {isShown && <Programs {...device} />}
      </details>
    </Section>
  );
}

function Programs({ fleetId, deviceId }: Omit<DeviceProgramProps, 'hasCalled'>) {
  const [language, setLanguage] = useState<Language>('python');
  const endpoint = useDocument(pathTo('/device-endpoint', {}));
  const program = programs[language];
  const secret = madeSecret(fleetId, deviceId) ?? secretPlaceholder;
  return (
    <div class="stack">
      <UnknownSecret fleetId={fleetId} deviceId={deviceId} />
      <NeededSchema fleetId={fleetId} name="flow" />
      <Loaded resource={endpoint}>
        {(at) => {
          const text = programText(program, at)
            .replaceAll('ORCHARD1', fleetId)
            .replaceAll('PUMP000001', deviceId)
            .replaceAll(secretPlaceholder, secret);
          return (
            <>
              <div class="inline">
                <Choice
                  label="Language"
                  value={language}
                  options={[
                    ['python', 'Python'],
                    ['typescript', 'JavaScript'],
                  ]}
                  onChange={setLanguage}
                />
                <CopyButton text={text} label="Copy the program" hasLines />
              </div>
              <pre class="small">{text}</pre>
            </>
          );
        }}
      </Loaded>
      <p class="hint">
        The client is one file to copy beside it: <code>fleetpost help {program.topic}</code>
      </p>
    </div>
  );
}

/** The program with the address of this server, and the certificate that it has to be given. */
function programText(
  { text, certificate }: Program,
  { url, ca_file }: AnswerAt<'GET', '/device-endpoint'>,
): string {
  const placed = text.replaceAll('https://127.0.0.1:8443', url);
  if (ca_file === null) return placed.replace(certificate, '');
  return placed.replace(/(["'])data\/tls\/cert\.pem\1/, () => JSON.stringify(ca_file));
}
