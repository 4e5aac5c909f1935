import { useState } from 'preact/hooks';
import { Act } from '../../parts/act.tsx';
import { shownText } from '../../parts/untrusted.tsx';
import { open, type Query } from '../../server/client.ts';
import { saveFile } from '../../server/save-file.ts';
import { useSubmit } from '../../server/submit.ts';

/** Writes the devices that fit to a file, in the form that an import takes. */
export function Export({ fleetId, filter }: { fleetId: string; filter: Query }) {
  const { error, isBusy, submit } = useSubmit();
  const [isDone, setDone] = useState(false);
  const start = async (): Promise<void> => {
    const query = { ...filter, format: 'csv' };
    const isWritten = await submit(async () => {
      const response = await open('GET', `/fleets/${fleetId}/devices:export`, { query });
      saveFile(await response.blob(), `devices-${fleetId}.csv`);
    });
    setDone(isWritten);
  };
  return (
    <>
      <Act
        scope="provision"
        onClick={start}
        unless={isBusy ? 'The export is on its way.' : undefined}
        title="The devices that fit, as CSV"
      >
        {isBusy ? 'Exporting…' : isDone ? 'Exported' : 'Export'}
      </Act>
      {error && (
        <span class="wrong" role="alert">
          {shownText(error.message)}
        </span>
      )}
    </>
  );
}
