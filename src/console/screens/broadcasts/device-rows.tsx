import { useEffect, useState } from 'preact/hooks';
import type { ListDocument } from '../../../contract/document.ts';
import { href } from '../../page/router.ts';
import { Act } from '../../parts/act.tsx';
import { Loaded } from '../../parts/banner.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { useResource } from '../../server/resource.ts';

/** Rows that are drawn at most; the API pages on. */
const shownMax = 2_000;
const pageMax = 1_000;

export interface DeviceRowsProps<T> {
  fleetId: string;
  /** Address of the list, by which it is read anew. */
  path: string;
  read: ReadRows<T>;
  everySeconds: number | undefined;
  /** How many there are, counted elsewhere: the list is read again when it is another number. */
  count: number;
  /** Told when the whole list has another number: it was read after they were counted. */
  onOtherCount?: () => void;
  /** Parts of the address that a row leads to, after the fleet; `nameOf` and `textOf` are its words. */
  placeOf(item: T): readonly string[];
  /** Likewise, of what its text is about; undefined: nothing of its own. */
  aboutOf?(item: T): readonly string[] | undefined;
  /** Name of the device; null if the device no longer exists. */
  nameOf(item: T): string | null;
  textOf(item: T): string;
  /** Prints all of them. */
  command: string;
}

/** A list of devices, of which more are read when they are asked for. */
export function DeviceRows<T extends { device_id: string }>(props: DeviceRowsProps<T>) {
  const { fleetId, path, read, everySeconds, count, onOtherCount } = props;
  const { placeOf, aboutOf, nameOf, textOf, command } = props;
  const [limit, setLimit] = useState(100);
  const list = useResource(`${path} ${limit}`, (signal) => readRows(read, limit, signal), everySeconds);
  const { value, refresh } = list;
  useEffect(() => {
    if (value !== undefined) refresh();
  }, [count]);
  useEffect(() => {
    if (value !== undefined && value.next === null && value.items.length !== count) onOtherCount?.();
  }, [value]);
  return (
    <Loaded resource={list}>
      {({ items, next }) => (
        <>
          {items.length === 0 && next === null && <p class="empty">There are none now.</p>}
          <ul class="list">
            {items.map((item) => {
              const about = aboutOf?.(item);
              return (
                <li class="row is-double" key={item.device_id}>
                  <a class="inline" href={href([fleetId, ...placeOf(item)])}>
                    <code>{item.device_id}</code>
                    <span class="cut">
                      <Untrusted text={nameOf(item) ?? ''} lengthMax={80} />
                    </span>
                  </a>
                  <span class="end small">
                    {about === undefined ? (
                      textOf(item)
                    ) : (
                      <a class="link" href={href([fleetId, ...about])}>
                        {textOf(item)}
                      </a>
                    )}
                  </span>
                </li>
              );
            })}
          </ul>
          {next !== null && limit < shownMax && (
            <Act kind="plain" onClick={() => setLimit(Math.min(limit * 5, shownMax))}>
              Show more
            </Act>
          )}
          {next !== null && limit >= shownMax && (
            <p class="hint">
              The first {shownMax.toLocaleString('en')}. All: <code>{command}</code>
            </p>
          )}
        </>
      )}
    </Loaded>
  );
}

/** Reads a page of the list. */
export type ReadRows<T> = (
  page: { after: string; limit: number },
  signal: AbortSignal,
) => Promise<ListDocument<T>>;

/** Reads so many rows, page by page. */
export async function readRows<T>(
  read: ReadRows<T>,
  limit: number,
  signal: AbortSignal,
): Promise<ListDocument<T>> {
  const items: T[] = [];
  let next: string | null = '';
  while (next !== null && items.length < limit) {
    const page = await read({ after: next, limit: Math.min(limit - items.length, pageMax) }, signal);
    items.push(...page.items);
    next = page.next;
  }
  return { items, next };
}
