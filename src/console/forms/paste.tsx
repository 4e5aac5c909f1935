import { CopyButton } from '../parts/copy-button.tsx';

export interface PasteProps {
  text: string;
  /** Of the button that copies it. */
  label: string;
  hasLines?: boolean;
}

/** Text that is meant to be copied as it stands. */
export function Paste({ text, label, hasLines = false }: PasteProps) {
  return (
    <div class="paste">
      <pre>{text}</pre>
      <CopyButton text={text} label={label} hasLines={hasLines} />
    </div>
  );
}
