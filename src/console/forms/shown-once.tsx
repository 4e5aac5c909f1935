import { Banner } from '../parts/banner.tsx';
import { Paste } from './paste.tsx';

export interface ShownOnceProps {
  /** `token`. */
  what: string;
  text: string;
  /** Name of what is copied, if the text is more than that. */
  copied?: string;
  /** Set if the server uses the secret itself, and so keeps it whole. */
  isUsedByServer?: boolean;
}

/** A secret that was just made: shown this one time, and kept nowhere in the page. */
export function ShownOnce({ what, text, copied = what, isUsedByServer = false }: ShownOnceProps) {
  return (
    <div class="field">
      <Banner kind="warn">
        This {what} is shown this one time
        {isUsedByServer
          ? ': the server signs with it, and shows it to nobody. '
          : ': the server keeps only its digest. '}
        Store it now.
      </Banner>
      <Paste text={text} label={`Copy the ${copied}`} hasLines={copied !== what} />
    </div>
  );
}

/** The secret of a device, and what it sends with it. */
export function DeviceSecret(props: { fleetId: string; deviceId: string; secret: string }) {
  const { fleetId, deviceId, secret } = props;
  const headers = `X-Fleet-ID: ${fleetId}\nX-Device-ID: ${deviceId}\nX-Device-Secret: ${secret}`;
  return <ShownOnce what="secret" text={headers} copied="headers" />;
}
