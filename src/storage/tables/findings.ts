/** Findings of a verification: the first ones in words, the rest just counted. */
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

  /** `sentence` must not contain unchecked bytes of a record. */
  add(sentence: string): void {
    this.#count += 1;
    if (this.sentences.length < this.#sentencesMax) this.sentences.push(sentence);
  }

  /** A view that prefixes findings with their part. */
  of(part: string): Pick<Findings, 'add'> {
    return { add: (sentence) => this.add(`${part}, ${sentence}`) };
  }
}
