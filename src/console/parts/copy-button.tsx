import { useEffect, useState } from 'preact/hooks';
import { Icon } from './icon.tsx';

/** Puts a text on the clipboard, and shows for a moment that it has. */
export function CopyButton({ text, label }: { text: string | (() => string); label: string }) {
  const [outcome, setOutcome] = useState<'copied' | 'failed' | undefined>();
  useEffect(() => {
    if (outcome === undefined) return;
    const timer = setTimeout(() => setOutcome(undefined), 1_500);
    return () => clearTimeout(timer);
  }, [outcome]);
  const copy = (): void => {
    const value = typeof text === 'string' ? text : text();
    // Not there on a page without HTTPS that is not of this machine.
    const copying = navigator.clipboard?.writeText(value) ?? Promise.reject(new Error('no clipboard'));
    copying.then(
      () => setOutcome('copied'),
      () => setOutcome('failed'),
    );
  };
  const said = { copied: 'Copied', failed: 'The browser does not allow copying here' };
  const title = outcome === undefined ? label : said[outcome];
  return (
    <button type="button" class="button is-plain is-icon" aria-label={title} title={title} onClick={copy}>
      <Icon name={outcome === 'copied' ? 'done' : outcome === 'failed' ? 'warning' : 'copy'} />
    </button>
  );
}
