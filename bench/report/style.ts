import { Markup } from './markup.ts';

/** Inline, with the system's own letters: the page loads nothing. */
export const style = new Markup(`<style>
:root {
  color-scheme: light dark;
  --page: #fff; --ink: #1c1f23; --soft: #626973; --line: #e3e6ea; --band: #f6f7f9;
  --s0: #1f5fbf; --s1: #8a929c; --s2: #b9a13c; --s3: #c4633f; --s4: #4c8f6b; --s5: #8b64ad;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #15181c; --ink: #e4e7eb; --soft: #98a1ac; --line: #2c3138; --band: #1c2025;
    --s0: #6ba3f5; --s1: #858e99; --s2: #c9b250; --s3: #dd8460; --s4: #69b08b; --s5: #ab86cf;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 3rem 1.5rem 5rem; max-width: 63rem; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Liberation Sans", Arial, sans-serif;
}
h1 { margin: 0; font-size: 1.9rem; font-weight: 600; letter-spacing: -0.015em; }
h2 { margin: 3.5rem 0 0.4rem; padding-top: 1rem; border-top: 1px solid var(--line); font-size: 1.3rem; font-weight: 600; }
h3 { margin: 2rem 0 0.2rem; font-size: 1rem; font-weight: 600; }
p { max-width: 46rem; margin: 0.4rem 0; }
.soft, figcaption span, .unit { color: var(--soft); font-weight: 400; }
nav { margin: 1.5rem 0 0; }
nav a { margin-right: 1.2rem; white-space: nowrap; }
a { color: var(--s0); text-decoration: none; }
a:hover { text-decoration: underline; }
dl { display: grid; grid-template-columns: repeat(2, max-content 1fr); gap: 0.15rem 1.5rem; margin: 1.5rem 0; }
dt { color: var(--soft); }
dd { margin: 0; font-variant-numeric: tabular-nums; }
figure { margin: 1.8rem 0 2.2rem; }
figcaption { margin-bottom: 0.7rem; }
figcaption span::before { content: "· "; }
.scroll { overflow-x: auto; }
svg { display: block; max-width: 100%; min-width: 46rem; height: auto; font-size: 13px; font-variant-numeric: tabular-nums; }
svg text { fill: var(--ink); }
svg .tick, svg .detail, svg .subject { fill: var(--soft); font-size: 12px; }
svg .grid { stroke: var(--line); }
svg polyline { fill: none; stroke-width: 2; }
svg g line { stroke-width: 2; }
svg g line.leader { stroke-width: 1; stroke-dasharray: 1 3; }
svg g .ring { fill: var(--page); stroke-width: 2; }
${[0, 1, 2, 3, 4, 5].map((at) => `rect.s${at}, g.s${at} { fill: var(--s${at}); stroke: none; } g.s${at} line, g.s${at} polyline, g.s${at} .ring { stroke: var(--s${at}); }`).join('\n')}
details { margin: 0.4rem 0; }
summary { width: max-content; color: var(--soft); cursor: pointer; font-size: 13px; }
summary:hover { color: var(--ink); }
table { border-collapse: collapse; margin: 0.5rem 0; font-size: 13.5px; font-variant-numeric: tabular-nums; }
th, td { padding: 0.26rem 0.9rem 0.26rem 0; text-align: left; vertical-align: baseline; font-weight: 400; }
th.number, td.number { padding: 0.26rem 0 0.26rem 1.1rem; text-align: right; white-space: nowrap; }
.number + :not(.number) { padding-left: 1.4rem; }
thead th { color: var(--soft); border-bottom: 1px solid var(--line); white-space: nowrap; }
tbody tr { border-bottom: 1px solid var(--line); }
tbody tr:hover { background: var(--band); }
.pad { visibility: hidden; }
@media (max-width: 50rem) { dl { grid-template-columns: max-content 1fr; } }
@media print { details { display: none; } body { max-width: none; padding: 0; } }
</style>`);
