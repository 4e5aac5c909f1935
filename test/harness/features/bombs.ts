/** TypeScript of some hundred bytes whose string doubles 24 times: the engine wants 256 MB in one piece once it is read. */
const doubled = (first: string, next: (before: number) => string): string =>
  [first, ...Array.from({ length: 24 }, (_, before) => next(before))].join('');

/** Ends a compiler that checks it. */
export const typeBomb = `${doubled(
  "type S0='aaaaaaaaaaaaaaaa';",
  (before) => `type S${before + 1}=\`\${S${before}}\${S${before}}\`;`,
)}let x:S24='b';export default()=>{}`;

/** Ends a compiler that translates it, for it folds enums. */
export const enumBomb = `enum E{${doubled('A0="aaaaaaaaaaaaaaaa"', (before) => `,A${before + 1}=A${before}+A${before}`)}}
  export default () => { console.log(E.A24); };`;

/** A schema of 3.6 KB that would take some 20 s to compile: 400,000 states. */
export const patternBomb = {
  type: 'object',
  properties: { p: { type: 'string', maxLength: 1, pattern: `^${'a{0,1000}'.repeat(400)}$` } },
};
