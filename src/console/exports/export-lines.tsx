import type { ComponentChildren } from 'preact';
import { LongWork } from '../forms/long-work.tsx';
import { Banner } from '../parts/banner.tsx';
import { bytesText } from '../parts/bytes.ts';
import { open, type Query } from '../server/client.ts';
import { saveFile } from '../server/save-file.ts';
import { openSink, type SavedStream, saveLines } from './save-stream.ts';

export interface ExportLinesProps {
  title: string;
  /** Where the lines are read. */
  path: string;
  /** As it is when the button is pressed. */
  query: () => Query;
  fileName: string;
  /** `records`. */
  what: string;
  /** The command that writes such a file without a bound. */
  command: string;
  /** Says what is written, and the fields that it takes. */
  children: ComponentChildren;
  onClose: () => void;
}

/** Writes an answer of many lines to a file, as it comes: the page holds it only where the browser wants it so. */
export function ExportLines(props: ExportLinesProps) {
  const { title, path, query, fileName, what, command, children, onClose } = props;
  const work = async (signal: AbortSignal, onProgress: (saved: SavedStream) => void): Promise<void> => {
    // First: the browser asks for a file only just after a click.
    const sink = await openSink(fileName, saveFile);
    const response = await open('GET', path, { query: query(), signal });
    await saveLines(response, sink, onProgress);
  };
  return (
    <LongWork<SavedStream>
      title={title}
      work={work}
      shown={({ bytes, lines, isCut }, isDone) => (
        <>
          <p role="status">
            {lines.toLocaleString('en')} {what}, {bytesText(bytes)}
            {isDone && !isCut && ', saved'}
          </p>
          {isCut && (
            <Banner kind="warn">
              The page holds no more than that: the file has these, whole, and not those after them. Take
              less, or <code>{command}</code>
            </Banner>
          )}
        </>
      )}
      onClose={onClose}
      onDone={() => undefined}
    >
      {children}
    </LongWork>
  );
}
