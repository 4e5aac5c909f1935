/** Drawn on 16 by 16, in lines. */
const shapes = {
  pulse: 'M1.5 8.5h3l2-5 3 9 2-4h3',
  device: 'M5 2h6a2 2 0 0 1 2 2v8a2 2 0 0 1-2 2H5a2 2 0 0 1-2-2V4a2 2 0 0 1 2-2zM6.5 11.5h3',
  live: 'M9.5 8a1.5 1.5 0 1 1-3 0 1.5 1.5 0 0 1 3 0zM4.8 11.2a4.5 4.5 0 0 1 0-6.4M11.2 4.8a4.5 4.5 0 0 1 0 6.4M2.7 13.3a7.5 7.5 0 0 1 0-10.6M13.3 2.7a7.5 7.5 0 0 1 0 10.6',
  tray: 'M2 9.5 4 3h8l2 6.5V13H2zM2 9.5h3.5l1 1.5h3l1-1.5H14',
  mail: 'M2 3.5h12v9H2zM2.4 4 8 8.6 13.6 4',
  search: 'M11.5 7a4.5 4.5 0 1 1-9 0 4.5 4.5 0 0 1 9 0zM10.5 10.5 14 14',
  send: 'M14.3 1.8 7.8 13.9 6.1 8.1 1.4 5.9z',
  copy: 'M7 5.5h5A1.5 1.5 0 0 1 13.5 7v5a1.5 1.5 0 0 1-1.5 1.5H7A1.5 1.5 0 0 1 5.5 12V7A1.5 1.5 0 0 1 7 5.5zM3.5 10.5h-1v-8h8v1',
  done: 'm3 8.5 3.2 3.2L13 4.5',
  warning: 'M8 2 1.5 13.5h13zM8 6.5v3M8 11.5v.01',
  information: 'M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0zM8 7.5v3.5M8 5v.01',
  close: 'm4 4 8 8M12 4l-8 8',
  next: 'M6 3.5 10.5 8 6 12.5',
  pause: 'M5.5 3.5v9M10.5 3.5v9',
  play: 'M5 3.5v9l7-4.5z',
  menu: 'M2.5 4.5h11M2.5 8h11M2.5 11.5h11',
  broadcast: 'M2.5 6.5v3h2l6 3.5v-10l-6 3.5zM13 6a3 3 0 0 1 0 4M5.5 10l1 3.5',
  forward: 'M2 4.5h5.5l4 3.5-4 3.5H2M10 8h4',
  sliders:
    'M2.5 4.5h6M12 4.5h1.5M2.5 11.5h2M8 11.5h5.5M12 4.5a1.7 1.7 0 1 1-3.4 0 1.7 1.7 0 0 1 3.4 0zM7.9 11.5a1.7 1.7 0 1 1-3.4 0 1.7 1.7 0 0 1 3.4 0z',
  key: 'M9 6a3.2 3.2 0 1 1-6.4 0A3.2 3.2 0 0 1 9 6zM8 8.3l5.5 5.2M11 11l1.5-1.5',
  server: 'M2.5 3h11v4h-11zM2.5 9h11v4h-11zM5 5v.01M5 11v.01',
  code: 'M5 4.5 1.5 8 5 11.5M11 4.5 14.5 8 11 11.5M9.2 2.5l-2.4 11',
  more: 'M3.5 8v.01M8 8v.01M12.5 8v.01',
  braces:
    'M6 2.5c-1.6 0-2 .8-2 2v1.7C4 7.3 3.3 8 2.3 8 3.3 8 4 8.7 4 9.8v1.7c0 1.200.4 2 2 2M10 2.5c1.6 0 2 .8 2 2v1.7C12 7.3 12.7 8 13.7 8 12.7 8 12 8.7 12 9.8v1.7c0 1.2-.4 2-2 2',
  exit: 'M6.5 2.5h-4v11h4M10 11l3-3-3-3M13 8H6',
} as const;

export type IconName = keyof typeof shapes;

/** A picture beside words, which say the same. */
export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={shapes[name]} />
    </svg>
  );
}
