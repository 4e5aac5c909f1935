import type { Static, TUnsafe } from 'typebox';
import type { AdminRoutes } from './admin-routes.ts';
import type { AnswerOf, ParameterName, RouteMethod } from './route.ts';

type RouteKey = keyof AdminRoutes & string;

/** A path of the admin API with its parameters in braces, relative to `/admin/v1`. */
export type Template = RouteKey extends infer Key
  ? Key extends `${RouteMethod} ${infer Path}`
    ? Path
    : never
  : never;

declare const template: unique symbol;
/** A path whose parameters are filled in, which knows its routes. */
export type Path<T extends Template = Template> = string & { readonly [template]: T };

/** The methods that a path has. */
export type MethodOf<T extends Template> = T extends Template
  ? RouteKey extends infer Key
    ? Key extends `${infer M extends RouteMethod} ${T}`
      ? M
      : never
    : never
  : never;

type RouteAt<M extends RouteMethod, T extends Template> = `${M} ${T}` extends infer Key
  ? Key extends RouteKey
    ? AdminRoutes[Key]
    : never
  : never;

/** The document that a route answers with. */
export type AnswerAt<M extends RouteMethod, T extends Template> =
  RouteAt<M, T> extends infer R ? (R extends AdminRoutes[RouteKey] ? AnswerOf<R> : never) : never;

/** An item of the list that a path answers a GET with. */
export type ItemAt<T extends Template> = AnswerAt<'GET', T> extends { items: (infer I)[] } ? I : never;

/** The query that a route takes. A parameter that has a default may be absent; a cursor is what an answer named. */
export type QueryAt<M extends RouteMethod, T extends Template> =
  RouteAt<M, T> extends infer R
    ? R extends { query: infer Q }
      ? { after?: string | undefined } & {
          [Name in Exclude<keyof Static<Q & object>, 'after'>]?: Static<Q & object>[Name] | undefined;
        }
      : { after?: string | undefined }
    : never;

/** The body that a route takes. */
export type BodyAt<M extends RouteMethod, T extends Template> =
  RouteAt<M, T> extends infer R
    ? R extends { body: infer B }
      ? B extends TUnsafe<Uint8Array | null | undefined>
        ? unknown
        : Unset<Static<B & object>>
      : undefined
    : never;

/** The same, with undefined allowed where a member may be absent: it is not sent then. */
type Unset<Document> = Document extends object
  ? {
      [Name in keyof Document]: object extends Pick<Document, Name>
        ? Unset<Document[Name]> | undefined
        : Document[Name];
    }
  : Document;

type Values<Text extends string> = { [Name in ParameterName<Text>]: string | number };

/** Fills in the parameters of a path, each escaped: `pathTo('/fleets/{fleet_id}', { fleet_id: id })`. */
export function pathTo<T extends Template>(path: T, values: Values<T>): Path<T> {
  return path.replace(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent((values as Record<string, string | number>)[name] ?? ''),
  ) as Path<T>;
}

/** The path below another: `below(pathTo('/fleets/{fleet_id}', …), '/consumers', {})`. */
export function below<T extends Template, Rest extends string>(
  path: Path<T>,
  rest: `${T}${Rest}` extends Template ? Rest : never,
  values: Values<Rest>,
): Path<`${T}${Rest}` & Template> {
  return `${path}${pathTo(rest as string as Template, values as Values<Template>)}` as Path<
    `${T}${Rest}` & Template
  >;
}
