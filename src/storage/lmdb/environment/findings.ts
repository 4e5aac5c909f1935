/** What a walk of a data folder found wrong: the first of it in words, the rest as a number. */
export class Findings {
  readonly sentences: string[] = [];
  readonly #sentencesMax: number;
  #count = 0;

  constructor(sentencesMax: number) {
    this.#sentencesMax = sentencesMax;
  }

  get count(): number {
    return this.#count;
  }

  /** `sentence` must not carry bytes of a record that were not checked. */
  add(sentence: string): void {
    this.#count += 1;
    if (this.sentences.length < this.#sentencesMax) this.sentences.push(sentence);
  }

  /** Findings that are added here, of one part of it. */
  of(part: string): Pick<Findings, 'add'> {
    return { add: (sentence) => this.add(`${part}, ${sentence}`) };
  }
}
