import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { ErrorBanner } from '../parts/banner.tsx';
import { useSubmit } from '../server/submit.ts';
import { Confirm } from './confirm.tsx';
import { Drawer } from './dialogs.tsx';
import { formTexts } from './field.tsx';

export interface MakeDrawerProps<Made> {
  title: string;
  /** Label of the button. */
  verb: string;
  /** Makes it of the texts of the fields, by their names. */
  make(text: (name: string) => string): Promise<Made>;
  /** Shows the thing that was made, in place of the fields. */
  shown(made: Made): ComponentChildren;
  /** Set if that has a secret, which is shown this one time: nothing throws it away by accident. */
  secret?: string;
  /** Says whether this one has; by default each does. */
  hasSecret?(made: Made): boolean;
  isIncomplete?: boolean;
  /** What it lacks, said beside the button. */
  lack?: string | undefined;
  /** The fields. */
  children: ComponentChildren;
  /** Below the button. */
  foot?: ComponentChildren;
  onClose: () => void;
}

function focusOnce(element: HTMLElement | null): void {
  element?.focus();
}

/** Asks for what it takes to make a thing, makes it, and shows it. */
export function MakeDrawer<Made>(props: MakeDrawerProps<Made>) {
  const { title, verb, make, shown, secret, isIncomplete = false, children, foot, onClose } = props;
  const [made, setMade] = useState<{ document: Made } | undefined>();
  const [isLeaving, setLeaving] = useState(false);
  const isHeld = made !== undefined && secret !== undefined && (props.hasSecret?.(made.document) ?? true);
  const { error, isBusy, submit } = useSubmit();
  const start = (event: SubmitEvent): void => {
    const text = formTexts(event);
    void submit(async () => setMade({ document: await make(text) }));
  };
  const mayClose = (): boolean => {
    if (isHeld) setLeaving(true);
    // What is being made now may have a secret in a moment.
    return !isHeld && !(isBusy && secret !== undefined);
  };
  // Closed by the browser, which gives the focus back.
  const stored = (
    <form method="dialog">
      <button type="submit" class="button is-main">
        I have stored it
      </button>
    </form>
  );
  return (
    <Drawer title={title} onClose={onClose} mayClose={mayClose} foot={isHeld ? stored : undefined}>
      {made === undefined ? (
        <form class="drawer-form" onSubmit={start}>
          {children}
          {error && <ErrorBanner error={error} />}
          <span class="inline">
            <button type="submit" class="button is-main" disabled={isBusy || isIncomplete}>
              {verb}
            </button>
            {isIncomplete && props.lack && <span class="hint">{props.lack}</span>}
          </span>
        </form>
      ) : (
        // Where the button was, there would be no focus, and keys would not reach the drawer.
        <div class="stack" tabIndex={-1} ref={focusOnce}>
          {shown(made.document)}
        </div>
      )}
      {isLeaving && (
        <Confirm
          title={`Close without storing the ${secret}?`}
          verb="Close"
          otherwise="Show it again"
          work={onClose}
          onClose={() => setLeaving(false)}
        >
          It is shown this one time. If it is not stored, it cannot be used, and another has to be made.
        </Confirm>
      )}
      {made === undefined && foot}
    </Drawer>
  );
}
