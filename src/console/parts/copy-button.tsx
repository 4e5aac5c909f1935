import { useEffect, useState } from 'preact/hooks';
import { isCopied } from './hidden-characters.ts';
import { Icon } from './icon.tsx';

interface CopyButtonProps {
  text: string | (() => string);
  label: string;
  /** It is of several lines; else one with a line end is not copied. */
  hasLines?: boolean;
}

/** Puts a text on the clipboard, unless a terminal would act on it, and shows for a moment what came of it. */
export function CopyButton({ text, label, hasLines = false }: CopyButtonProps) {
  const [outcome, setOutcome] = useState<'copied' | 'failed' | 'refused' | undefined>();
  useEffect(() => {
    if (outcome === undefined) return;
    const timer = setTimeout(() => setOutcome(undefined), 1_500);
    return () => clearTimeout(timer);
  }, [outcome]);
  const copy = (): void => {
    const value = typeof text === 'string' ? text : text();
    if (!isCopied(value, hasLines)) {
      setOutcome('refused');
      return;
    }
    // Not there on a page without HTTPS that is not of this machine.
    const copying = navigator.clipboard?.writeText(value) ?? Promise.reject(new Error('no clipboard'));
    copying.then(
      () => setOutcome('copied'),
      () => setOutcome('failed'),
    );
  };
  const said = {
    copied: 'Copied',
    failed: 'The browser does not allow copying here',
    refused: 'Not copied: it has control characters',
  };
  const title = outcome === undefined ? label : said[outcome];
  return (
    <button type="button" class="button is-plain is-icon" aria-label={title} title={title} onClick={copy}>
      <Icon name={outcome === undefined ? 'copy' : outcome === 'copied' ? 'done' : 'warning'} />
    </button>
  );
}
