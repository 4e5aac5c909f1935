import { Banner } from '../parts/banner.tsx';
import { CopyButton } from '../parts/copy-button.tsx';

/** A secret that was just made: shown this one time, and kept nowhere in the page. */
export function ShownOnce({ what, secret }: { what: string; secret: string }) {
  return (
    <div class="field">
      <Banner kind="warn">
        This {what} is shown this one time: the server keeps only its digest. Store it now.
      </Banner>
      <div class="paste">
        <pre>{secret}</pre>
        <CopyButton text={secret} label={`Copy the ${what}`} />
      </div>
    </div>
  );
}
