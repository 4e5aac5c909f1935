import { Counter, type Registry } from 'prom-client';
import type { AdminContext } from '../request/context.ts';

/** How the export of spans is doing; nothing where it is off. */
export function addTraceMetrics(registry: Registry, { traces }: AdminContext): void {
  if (traces === undefined) return;
  const registers = [registry];
  const add = (name: string, help: string, read: () => number): void => {
    new Counter({
      name,
      help,
      registers,
      collect() {
        this.reset();
        this.inc(read());
      },
    });
  };
  add('fleetpost_spans_exported_total', 'Spans that traceUrl has taken.', () => traces.exported);
  add('fleetpost_spans_dropped_total', 'Spans dropped: too many, or not taken.', () => traces.dropped);
}
