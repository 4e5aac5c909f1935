/**
 * One check under way at a time: of what is typed meanwhile only the last is checked, once the answer is there. An
 * answer for a text that is no longer the current one is undefined.
 */
export function checkInTurn<T>(
  check: (text: string) => Promise<T>,
): (text: string) => Promise<T | undefined> {
  let underWay: Promise<unknown> | undefined;
  let latest: string | undefined;
  return async (text) => {
    latest = text;
    while (underWay !== undefined) await underWay;
    if (latest !== text) return undefined;
    const answer = check(text);
    const ended = answer.then(
      () => undefined,
      () => undefined,
    );
    underWay = ended;
    try {
      const value = await answer;
      return latest === text ? value : undefined;
    } finally {
      underWay = undefined;
    }
  };
}
