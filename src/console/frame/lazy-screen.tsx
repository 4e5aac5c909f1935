import type { ComponentChildren, ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { path } from '../page/router.ts';
import { Act } from '../parts/act.tsx';
import { Banner } from '../parts/banner.tsx';
import { screenOf } from './navigation.tsx';

/** A part of the console that is loaded when it is first opened, and then drawn at once; `waiting` is drawn until then. */
export function lazyScreen<P extends object>(
  load: () => Promise<ComponentType<P>>,
  waiting: () => ComponentChildren = () => null,
): ComponentType<P> {
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
    return <>{waiting()}</>;
  };
}

/** The shape of a screen that is on its way. */
export function Skeleton() {
  return (
    <>
      <div class="head">
        <h1>{screenOf(path.value[1])?.name}</h1>
      </div>
      <div class="body skeleton" role="status" aria-label="Loading the screen">
        <i />
        <i />
        <i />
        <i />
      </div>
    </>
  );
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
