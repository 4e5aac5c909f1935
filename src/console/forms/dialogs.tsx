import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { Icon } from '../parts/icon.tsx';

export interface DialogProps {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
}

/**
 * Opens a dialog when it is drawn: the browser keeps the keys within it and gives the focus back. `mayClose` is asked
 * before Esc closes it.
 */
function useModal(onClose: () => void, mayClose = () => true) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    dialog.current?.showModal();
    // The field that is to be filled in, or the button that does nothing, rather than the one that closes.
    const fields = dialog.current?.querySelectorAll<HTMLInputElement>('input, select, textarea') ?? [];
    const blank = [...fields].find(({ value }) => value === '');
    (blank ?? dialog.current?.querySelector<HTMLElement>('[data-safe]'))?.focus();
  }, []);
  const closed = (event: Event): void => {
    if (event.target === dialog.current) onClose();
  };
  const hold = (event: Event): void => {
    if (dialogOf(event) === dialog.current && !mayClose()) event.preventDefault();
  };
  // A second Esc closes a dialog whatever its first one was answered, unless the key itself is taken.
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === 'Escape') hold(event);
  };
  const latest = useRef(onKeyDown);
  latest.current = onKeyDown;
  useEffect(() => {
    const onPageKey = (event: KeyboardEvent): void => {
      if (event.target === document.body) latest.current(event);
    };
    document.addEventListener('keydown', onPageKey);
    return () => document.removeEventListener('keydown', onPageKey);
  }, []);
  const attributes = {
    ref: dialog,
    onClose: closed,
    onCancel: hold,
    onKeyDown,
  };
  const close = (): void => {
    if (mayClose()) dialog.current?.close();
  };
  return { attributes, close };
}

/** Finds the dialog that an event is meant for: the innermost one for a key of the page, where what had the focus is gone. */
function dialogOf({ target }: Event): Element | null | undefined {
  return target === document.body
    ? [...document.querySelectorAll('dialog[open]')].at(-1)
    : (target as Element).closest('dialog');
}

export interface DrawerProps extends DialogProps {
  /** Stays at its end. */
  foot?: ComponentChildren;
  /** Set for what needs the width of a page, such as the lines of a source. */
  isWide?: boolean;
  /** Asked before Esc or the cross closes it: false keeps it open. */
  mayClose?: (() => boolean) | undefined;
}

/** A sheet at the side of the screen, whose content stays in view beside it. */
export function Drawer({ title, onClose, children, foot, isWide = false, mayClose }: DrawerProps) {
  const { attributes, close } = useModal(onClose, mayClose);
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
