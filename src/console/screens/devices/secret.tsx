import { Banner } from '../../parts/banner.tsx';
import { CopyButton } from '../../parts/copy-button.tsx';

/** A secret that the server shows once, and what its device sends with it. */
export function Secret({ fleetId, deviceId, secret }: { fleetId: string; deviceId: string; secret: string }) {
  const headers = `X-Fleet-ID: ${fleetId}\nX-Device-ID: ${deviceId}\nX-Device-Secret: ${secret}`;
  return (
    <div class="field">
      <Banner kind="warn">This secret is shown this one time: the server keeps only its digest.</Banner>
      <div class="paste">
        <pre>{headers}</pre>
        <CopyButton text={headers} label="Copy the headers" hasLines />
      </div>
    </div>
  );
}
