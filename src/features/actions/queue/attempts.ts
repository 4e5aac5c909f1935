import type { Action } from '../declaration/action.ts';
import type { ActionStatus } from '../service.ts';

type Counts = ActionStatus['attempts'];

/** Attempts at runs of each action since the server started, for the metrics. */
export class AttemptCounts {
  readonly #counts = new Map<string, Counts>();

  of({ id }: Action): Counts {
    return this.#counts.get(id) ?? { done: 0, failed: 0, parked: 0 };
  }

  count(action: Action, outcome: keyof Counts): void {
    const counts = this.of(action);
    this.#counts.set(action.id, { ...counts, [outcome]: counts[outcome] + 1 });
  }

  forget({ id }: Action): void {
    this.#counts.delete(id);
  }
}
