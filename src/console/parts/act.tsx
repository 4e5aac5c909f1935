import type { ComponentChildren } from 'preact';
import type { Scope } from '../../core/scope.ts';
import { may } from '../session/session.ts';

export interface ActProps {
  /** Scope that the session needs for it; absent: it changes nothing on the server. */
  scope?: Scope;
  onClick: () => void;
  children: ComponentChildren;
  kind?: 'main' | 'bad' | 'plain';
  /** Why it cannot be done now. */
  unless?: string | undefined;
  title?: string;
  /** Does nothing: a question about what cannot be taken back begins here. */
  isSafe?: boolean;
}

/** A button. One that changes something stays where the session lacks the right, and says which. */
export function Act({ scope, onClick, children, kind, unless, title, isSafe }: ActProps) {
  const why = scope === undefined || may(scope) ? unless : `Your session lacks the scope ${scope}.`;
  return (
    <button
      type="button"
      class={`button ${kind ? `is-${kind}` : ''}`}
      aria-disabled={why !== undefined}
      title={why ?? title}
      data-safe={isSafe ? '' : undefined}
      onClick={() => why === undefined && onClick()}
    >
      {children}
      {why !== undefined && <span class="visually-hidden"> ({why})</span>}
    </button>
  );
}
