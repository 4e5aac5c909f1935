import typescript from 'fleetpost:pump.mjs';
import python from 'fleetpost:pump.py';
import { useState } from 'preact/hooks';
import { Section } from '../../frame/frame.tsx';
import { Choice } from '../../parts/choice.tsx';
import { CopyButton } from '../../parts/copy-button.tsx';

const programs = { python, typescript };
type Language = keyof typeof programs;

/** The first program of a device, with its own ids: the twelve lines of the quickstart. Its secret is not known here. */
export function DeviceProgram({ fleetId, deviceId }: { fleetId: string; deviceId: string }) {
  const [language, setLanguage] = useState<Language>('python');
  const text = programs[language]
    .replaceAll('ORCHARD1', fleetId)
    .replaceAll('PUMP000001', deviceId)
    .replaceAll('https://127.0.0.1:8443', `https://${location.hostname}:8443`);
  const topic = language === 'python' ? 'start/quickstart' : 'devices/typescript';
  return (
    <Section title="A program for it">
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
      <p class="hint">
        The client is one file to copy beside it: <code>fleetpost help {topic}</code>
      </p>
    </Section>
  );
}
