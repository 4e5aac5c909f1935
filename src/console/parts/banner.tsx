import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { forgetRecent } from '../page/recent.ts';
import { href, path } from '../page/router.ts';
import type { CallError } from '../server/call-error.ts';
import type { Resource } from '../server/resource.ts';
import { Act } from './act.tsx';
import { Icon } from './icon.tsx';
import { Untrusted } from './untrusted.tsx';

export interface BannerProps {
  kind?: 'bad' | 'warn' | 'good' | 'plain';
  children: ComponentChildren;
  tools?: ComponentChildren;
}

/** One sentence that matters. */
export function Banner({ kind = 'plain', children, tools }: BannerProps) {
  const icon = { bad: 'warning', warn: 'warning', good: 'done', plain: 'information' } as const;
  return (
    <div class={`notice is-${kind}`} role={kind === 'bad' ? 'alert' : 'status'}>
      <Icon name={icon[kind]} />
      <div class="grow">{children}</div>
      {tools && <div class="tools">{tools}</div>}
    </div>
  );
}

/** Why something cannot be shown or was not done, in the server's words. */
export function ErrorBanner({ error, onRetry }: { error: CallError; onRetry?: (() => void) | undefined }) {
  const isForbidden = error.status === 403;
  return (
    <Banner
      kind={isForbidden ? 'warn' : 'bad'}
      tools={onRetry && !isForbidden ? <Act onClick={onRetry}>Try again</Act> : undefined}
    >
      {isForbidden && 'No right to this. '}
      <Untrusted text={error.message} lengthMax={500} />
      <SchemaErrors errors={error.errors} />
    </Banner>
  );
}

/** Lists where a body does not match its schema, and how. */
export function SchemaErrors({ errors }: { errors: readonly { path: string; msg: string }[] }) {
  return errors.map(({ path, msg }) => (
    <div class="small" key={path + msg}>
      <code>
        <Untrusted text={path || '/'} />
      </code>{' '}
      <Untrusted text={msg} />
    </div>
  ));
}

/** Says what is not there, and leads to the list that it would be in. */
function NotThere({ error, children }: { error: CallError; children: ComponentChildren }) {
  const [fleetId = '', part, id, what] = path.value;
  const isOfThing = part === 'devices' && id !== undefined && what !== undefined;
  const list = isOfThing
    ? [fleetId, part, id]
    : part !== undefined && id !== undefined
      ? [fleetId, part]
      : [fleetId];
  useEffect(() => forgetRecent(path.value), [path.value]);
  return (
    <>
      <ErrorBanner error={error} />
      <p class="inline">
        <a href={href(list)}>
          {isOfThing ? 'To the device' : list.length > 1 ? 'To the list' : 'To the first page of the fleet'}
        </a>
        {children}
      </p>
    </>
  );
}

export interface LoadedProps<T> {
  resource: Resource<T>;
  /** Ways on from what is not there, beside the one to its list. */
  otherwise?: () => ComponentChildren;
  children: (value: T) => ComponentChildren;
}

/** A document once it is there; until then that it is awaited, or why it does not come. */
export function Loaded<T>({ resource, otherwise, children }: LoadedProps<T>) {
  const { value, error, refresh } = resource;
  if (value !== undefined) {
    const isGone = error !== undefined && error.status >= 400 && error.status < 500;
    return (
      <>
        {isGone && <ErrorBanner error={error} />}
        {children(value)}
      </>
    );
  }
  // An address that names nothing, or that nothing can have: trying again helps neither.
  if (error?.status === 404 || error?.status === 400)
    return <NotThere error={error}>{otherwise?.()}</NotThere>;
  if (error !== undefined) return <ErrorBanner error={error} onRetry={refresh} />;
  return (
    <p class="waiting" role="status">
      Reading…
    </p>
  );
}
