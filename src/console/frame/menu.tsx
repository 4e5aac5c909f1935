import type { ComponentChildren } from 'preact';
import { useId, useRef } from 'preact/hooks';
import { Icon } from '../parts/icon.tsx';

/** Buttons that are used seldom, behind one: found in the palette by their names as if they stood beside it. */
export function Menu({ label, children }: { label: string; children: ComponentChildren }) {
  const id = useId();
  const button = useRef<HTMLButtonElement>(null);
  const list = useRef<HTMLDivElement>(null);
  // A popover is drawn above all, from the corner of the window on.
  const place = (): void => {
    const at = button.current?.getBoundingClientRect();
    if (at === undefined || list.current === null) return;
    list.current.style.top = `${at.bottom + 4}px`;
    list.current.style.right = `${Math.max(document.documentElement.clientWidth - at.right, 8)}px`;
  };
  const close = (): void => {
    if (list.current?.matches(':popover-open')) list.current.hidePopover();
  };
  return (
    <>
      <button
        type="button"
        class="button is-icon menu-opener"
        aria-label={label}
        title={label}
        popovertarget={id}
        ref={button}
      >
        <Icon name="more" />
      </button>
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: it is the click of a button within, by key or pointer */}
      {/* biome-ignore lint/a11y/noStaticElementInteractions: as above */}
      <div class="menu" id={id} popover="auto" ref={list} onBeforeToggle={place} onClick={close}>
        {children}
      </div>
    </>
  );
}
