import type { Party } from '../../core/fair-share.ts';

/** Items of many parties, which take turns: first the groups, then the members of each. */
export class FairQueue<T> {
  readonly #groups = new Map<string, Map<string, Set<T>>>();

  add({ group, member }: Party, item: T): void {
    const members = this.#groups.get(group) ?? new Map<string, Set<T>>();
    const items = members.get(member) ?? new Set<T>();
    this.#groups.set(group, members.set(member, items.add(item)));
  }

  remove({ group, member }: Party, item: T): void {
    const members = this.#groups.get(group);
    const items = members?.get(member);
    items?.delete(item);
    if (items?.size === 0) members?.delete(member);
    if (members?.size === 0) this.#groups.delete(group);
  }

  /** Takes out the next item of those parties that `mayHave` one more: it is asked until it agrees. */
  next(mayHave: (party: Party) => boolean): T | undefined {
    for (const [group, members] of this.#groups) {
      for (const [member, items] of members) {
        const [item] = items;
        if (item === undefined || !mayHave({ group, member })) continue;
        this.#toTheEnd(group, members, member, items);
        this.remove({ group, member }, item);
        return item;
      }
    }
    return undefined;
  }

  #toTheEnd(group: string, members: Map<string, Set<T>>, member: string, items: Set<T>): void {
    members.delete(member);
    members.set(member, items);
    this.#groups.delete(group);
    this.#groups.set(group, members);
  }
}
