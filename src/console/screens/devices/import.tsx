import { useRef, useState } from 'preact/hooks';
import { importedMembers } from '../../../contract/columns/device.ts';
import type { ImportedLine } from '../../../contract/device.ts';
import { Drawer } from '../../forms/dialogs.tsx';
import { SelectField } from '../../forms/field.tsx';
import { Act } from '../../parts/act.tsx';
import { ErrorBanner } from '../../parts/banner.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { CallError } from '../../server/call-error.ts';
import { open } from '../../server/client.ts';
import { linesOf } from '../../server/lines.ts';
import { saveFile } from '../../server/save-file.ts';
import { useSubmit } from '../../server/submit.ts';

interface Progress {
  counts: Readonly<Partial<Record<ImportedLine['result'], number>>>;
  failed: readonly ImportedLine[];
  isDone: boolean;
}

const existingWays = [
  ['error', 'are an error'],
  ['skip', 'are skipped'],
  ['update', 'are updated'],
] as const;
const shownFailuresMax = 200;
const none: Progress = { counts: {}, failed: [], isDone: false };

export interface ImportProps {
  fleetId: string;
  onClose: () => void;
  onImported: () => void;
}

/** Sends a file of devices and reads the outcome of each of its lines as it is stored. */
export function Import({ fleetId, onClose, onImported }: ImportProps) {
  const [progress, setProgress] = useState<Progress | undefined>();
  const [existing, setExisting] = useState('error');
  const [isOver, setOver] = useState(false);
  const answer = useRef<string[]>([]);
  const { error, isBusy, submit } = useSubmit();
  const start = async (file: File | undefined): Promise<void> => {
    if (file === undefined) return;
    answer.current = [];
    setProgress(none);
    await submit(() => importFile(fleetId, file, existing, answer.current, setProgress));
    onImported();
  };
  const drop = (event: DragEvent): void => {
    event.preventDefault();
    setOver(false);
    void start(event.dataTransfer?.files[0]);
  };
  return (
    <Drawer title="Import devices" onClose={onClose}>
      <SelectField
        label="Devices that exist already"
        value={existing}
        options={existingWays}
        onChange={setExisting}
      />
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the field in it does the same by keys */}
      <div
        class={`drop ${isOver ? 'is-over' : ''}`}
        onDragOver={(event) => {
          event.preventDefault();
          setOver(true);
        }}
        onDragLeave={() => setOver(false)}
        onDrop={drop}
      >
        <label for="import-file">Drop a file here, CSV with a head or NDJSON, or choose one</label>
        <input
          id="import-file"
          type="file"
          accept=".csv,.ndjson,.jsonl"
          disabled={isBusy}
          onChange={({ currentTarget }) => start(currentTarget.files?.[0])}
        />
        <span class="hint">Columns: {importedMembers}; none is required.</span>
      </div>
      {error && <ErrorBanner error={error} />}
      {progress && <Outcome progress={progress} isBusy={isBusy} answer={answer.current} fleetId={fleetId} />}
    </Drawer>
  );
}

function Outcome(props: { progress: Progress; isBusy: boolean; answer: string[]; fleetId: string }) {
  const { progress, isBusy, answer, fleetId } = props;
  const counts = Object.entries(progress.counts).map(([result, count]) => `${count} ${result}`);
  return (
    <>
      {isBusy && <progress aria-label="Importing" />}
      <p role="status">{counts.join(', ') || 'No line yet'}</p>
      {progress.isDone && (
        <Act
          onClick={() =>
            saveFile(new Blob(answer, { type: 'application/x-ndjson' }), `imported-${fleetId}.ndjson`)
          }
        >
          Save the outcome of each line, with new secrets
        </Act>
      )}
      <ul class="list">
        {progress.failed.map(({ line, msg = '', error = '' }) => (
          <li key={line} class="small">
            line {line}: <Untrusted text={msg || error} />
          </li>
        ))}
      </ul>
    </>
  );
}

async function importFile(
  fleetId: string,
  file: File,
  onExisting: string,
  answer: string[],
  onProgress: (progress: Progress) => void,
): Promise<void> {
  const isCsv = file.name.toLowerCase().endsWith('.csv');
  const response = await open('POST', `/fleets/${fleetId}/devices:import`, {
    query: { on_existing: onExisting },
    body: file,
    contentType: isCsv ? 'text/csv' : 'application/x-ndjson',
  });
  const counts: Partial<Record<ImportedLine['result'], number>> = {};
  const failed: ImportedLine[] = [];
  try {
    for await (const lines of linesOf(response)) {
      answer.push(`${lines.join('\n')}\n`);
      // The head of a CSV is no outcome.
      const outcomes = lines.map((line) => (isCsv ? csvOutcome(line) : (JSON.parse(line) as ImportedLine)));
      for (const one of outcomes.filter(({ line }) => !Number.isNaN(line))) {
        if (one.error === 'import_ended') {
          failed.unshift(one);
          continue;
        }
        counts[one.result] = (counts[one.result] ?? 0) + 1;
        if (one.result === 'error' && failed.length < shownFailuresMax) failed.push(one);
      }
      onProgress({ counts: { ...counts }, failed: [...failed], isDone: false });
    }
  } catch {
    const msg = 'The import ended early. Import the same file again with “are skipped”.';
    throw new CallError(0, { error: 'import_ended', msg });
  }
  onProgress({ counts, failed, isDone: true });
}

/** A line of the answer to a CSV: line, device_id, result, device_secret, error, msg. */
function csvOutcome(text: string): ImportedLine {
  const cells = [...text.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)].map(
    ([, quoted, plain = '']) => quoted?.replaceAll('""', '"') ?? plain,
  );
  const [line = '', , result = 'error', , error = '', msg = ''] = cells;
  return {
    line: line === '' ? Number.NaN : Number(line),
    result: result as ImportedLine['result'],
    error,
    msg,
  };
}
