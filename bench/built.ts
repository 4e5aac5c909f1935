/**
 * A module of the build in `dist/`, as it is shipped: tsx keeps the names of functions, which makes every
 * closure of the sources several times as dear as it is. `T` is `typeof import` of its source.
 */
export function built<T>(path: string): Promise<T> {
  return import(builtUrl(path)) as Promise<T>;
}

export function builtUrl(path: string): string {
  return new URL(`../dist/${path}`, import.meta.url).href;
}
