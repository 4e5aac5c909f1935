import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { Icon } from '../parts/icon.tsx';

export interface DialogProps {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
}

/** Opens a dialog when it is drawn: the browser keeps the keys within it and gives the focus back. */
function useModal(onClose: () => void) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    dialog.current?.showModal();
    // The field that is to be filled in, rather than the button that closes.
    const fields = dialog.current?.querySelectorAll<HTMLInputElement>('input, select, textarea') ?? [];
    [...fields].find(({ value }) => value === '')?.focus();
  }, []);
  const closed = (event: Event): void => {
    if (event.target === dialog.current) onClose();
  };
  return { attributes: { ref: dialog, onClose: closed }, close: () => dialog.current?.close() };
}

export interface DrawerProps extends DialogProps {
  /** Stays at its end. */
  foot?: ComponentChildren;
  /** Set for what needs the width of a page, such as the lines of a source. */
  isWide?: boolean;
}

/** A sheet at the side of the screen, whose content stays in view beside it. */
export function Drawer({ title, onClose, children, foot, isWide = false }: DrawerProps) {
  const { attributes, close } = useModal(onClose);
  return (
    <dialog class={isWide ? 'drawer is-wide' : 'drawer'} aria-label={title} {...attributes}>
      <div class="drawer-head">
        <h2>{title}</h2>
        <button
          type="button"
          class="button is-plain is-icon"
          aria-label="Close"
          title="Close (Esc)"
          onClick={close}
        >
          <Icon name="close" />
        </button>
      </div>
      <div class="drawer-body">{children}</div>
      {foot && <div class="drawer-foot">{foot}</div>}
    </dialog>
  );
}

/** A question in the middle of the screen. */
export function Ask({ title, onClose, children }: DialogProps) {
  const { attributes } = useModal(onClose);
  return (
    <dialog class="ask" aria-label={title} {...attributes}>
      <div class="stack">
        <h2>{title}</h2>
        {children}
      </div>
    </dialog>
  );
}
