import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { Banner } from '../parts/banner.tsx';

/** A screen in a file of its own, loaded when it is opened for the first time. */
export function lazyScreen<P extends object>(load: () => Promise<ComponentType<P>>): ComponentType<P> {
  let loaded: ComponentType<P> | undefined;
  return function LazyScreen(props: P) {
    const [attempt, setAttempt] = useState(0);
    const [state, setState] = useState<'loading' | 'loaded' | 'failed'>(loaded ? 'loaded' : 'loading');
    useEffect(() => {
      if (loaded !== undefined) return setState('loaded');
      load().then(
        (screen) => {
          loaded = screen;
          setState('loaded');
        },
        () => setState('failed'),
      );
    }, [attempt]);
    const again = (): void => {
      setState('loading');
      setAttempt(attempt + 1);
    };
    if (loaded !== undefined) {
      const Screen = loaded;
      return <Screen {...props} />;
    }
    return (
      <div class="body">
        {state === 'failed' ? (
          <Banner
            kind="bad"
            tools={
              <button type="button" class="button" onClick={again}>
                Try again
              </button>
            }
          >
            This screen did not load. If the server was upgraded meanwhile, load the page again.
          </Banner>
        ) : (
          <p class="waiting" role="status">
            Loading…
          </p>
        )}
      </div>
    );
  };
}
