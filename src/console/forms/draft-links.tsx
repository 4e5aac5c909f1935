import { draftKeys } from '../page/drafts.ts';
import { href } from '../page/router.ts';
import { Banner } from '../parts/banner.tsx';

export interface DraftLinksProps {
  /** Beginning of the keys of these drafts. */
  beginning: string;
  /** The screen that each is on, but for its name. */
  place: readonly string[];
  /** Names of what the server has: its drafts are found there. */
  names: readonly string[];
  /** `not deployed`. */
  state: string;
}

/** Ways to the drafts of what the server does not have yet: no row of a list leads to them. */
export function DraftLinks({ beginning, place, names, state }: DraftLinksProps) {
  const shown = draftKeys(beginning)
    .map((key) => key.slice(beginning.length))
    .filter((name) => !name.includes('#') && !names.includes(name));
  if (shown.length === 0) return null;
  return (
    <Banner>
      <span class="inline">
        Written in this tab and {state}:
        {shown.map((name) => (
          <a key={name} class="link" href={href([...place, ...name.split('/')])}>
            {name.replace('/', ' ')}
          </a>
        ))}
      </span>
    </Banner>
  );
}
