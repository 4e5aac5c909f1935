import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { Act } from '../parts/act.tsx';
import { Banner } from '../parts/banner.tsx';

/** A part of the console that is loaded when it is first opened, and then drawn at once. */
export function lazyScreen<P extends object>(load: () => Promise<ComponentType<P>>): ComponentType<P> {
  let loaded: ComponentType<P> | undefined;
  return function LazyScreen(props: P) {
    const [state, setState] = useState<'loaded' | 'failed' | undefined>();
    useEffect(() => {
      if (loaded !== undefined) return;
      load().then(
        (screen) => {
          loaded = screen;
          setState('loaded');
        },
        () => setState('failed'),
      );
    }, []);
    if (loaded !== undefined) {
      const Loaded = loaded;
      return <Loaded {...props} />;
    }
    if (state === 'failed') return <NotLoaded />;
    return <p class="waiting" role="status" />;
  };
}

/** The server is away, or has become another version, whose files have other names. */
function NotLoaded() {
  return (
    <div class="body">
      <Banner kind="bad" tools={<Act onClick={() => location.reload()}>Load the page again</Act>}>
        This screen could not be loaded: the server does not answer, or has been upgraded.
      </Banner>
    </div>
  );
}
