/** Built thread of a `SchemaChecker`: from the sources there is none. */
export const schemaCheckThread = new URL(
  '../../../dist/declarations/schema-checks/schema-check-thread.js',
  import.meta.url,
);
