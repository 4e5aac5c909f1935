import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { ErrorBanner } from '../parts/banner.tsx';
import { useSubmit } from '../server/submit.ts';
import { Drawer } from './dialogs.tsx';
import { formTexts } from './field.tsx';

export interface MakeDrawerProps<Made> {
  title: string;
  /** Label of the button. */
  verb: string;
  /** Makes it of the texts of the fields, by their names. */
  make(text: (name: string) => string): Promise<Made>;
  /** Shows the thing that was made, this one time, in place of the fields. */
  shown(made: Made): ComponentChildren;
  isIncomplete?: boolean;
  /** The fields. */
  children: ComponentChildren;
  /** Below the button. */
  foot?: ComponentChildren;
  onClose: () => void;
}

/** Asks for what it takes to make a thing, makes it, and shows it. */
export function MakeDrawer<Made>(props: MakeDrawerProps<Made>) {
  const { title, verb, make, shown, isIncomplete = false, children, foot, onClose } = props;
  const [made, setMade] = useState<{ document: Made } | undefined>();
  const { error, isBusy, submit } = useSubmit();
  const start = (event: SubmitEvent): void => {
    const text = formTexts(event);
    void submit(async () => setMade({ document: await make(text) }));
  };
  return (
    <Drawer title={title} onClose={onClose}>
      {made === undefined ? (
        <form class="drawer-form" onSubmit={start}>
          {children}
          {error && <ErrorBanner error={error} />}
          <button type="submit" class="button is-main" disabled={isBusy || isIncomplete}>
            {verb}
          </button>
        </form>
      ) : (
        shown(made.document)
      )}
      {made === undefined && foot}
    </Drawer>
  );
}
