// Runs in a page of the console before its own code, and says when something was drawn, by the clock of the page.
(() => {
  const timeoutMs = 30_000;
  let pressedMs = 0;
  let drawn;
  for (const type of ['keydown', 'pointerdown']) {
    const onPress = (event) => {
      pressedMs = event.timeStamp;
    };
    addEventListener(type, onPress, { capture: true });
  }

  const isThere = ({ selector, text = '' }) =>
    [...document.querySelectorAll(selector)].some(({ textContent }) => textContent.includes(text));

  const untilDrawn = (wanted) =>
    new Promise((resolve, reject) => {
      const look = () => {
        if (!wanted.every(isThere)) return;
        observer.disconnect();
        clearTimeout(timer);
        // A task of its own behind the next frame: by then it is painted.
        requestAnimationFrame(() => setTimeout(() => resolve(performance.now())));
      };
      const observer = new MutationObserver(look);
      observer.observe(document, { attributes: true, characterData: true, childList: true, subtree: true });
      const timer = setTimeout(() => {
        observer.disconnect();
        reject(new Error(`was not drawn: ${JSON.stringify(wanted.filter((one) => !isThere(one)))}`));
      }, timeoutMs);
      look();
    });

  globalThis.bench = {
    expect(wanted) {
      drawn = untilDrawn(wanted);
      // A failure is reported when the time is asked for; until then it must not count as unhandled.
      drawn.catch(() => {});
    },
    /** Time from the last key or button that was pressed until what is expected was drawn. */
    sincePress: async () => (await drawn) - pressedMs,
    /** Times from the end of the response with the HTML until what is expected was drawn, and until anything was. */
    async sinceDocument() {
      const drawnMs = await drawn;
      const [navigation] = performance.getEntriesByType('navigation');
      const [paint] = performance.getEntriesByName('first-contentful-paint');
      return {
        milliseconds: drawnMs - navigation.responseEnd,
        paintedMilliseconds: paint.startTime - navigation.responseEnd,
      };
    },
  };
})();
