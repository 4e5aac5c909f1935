/** D10: application/json, with or without parameters. */
export function isJson(contentType: string): boolean {
  if (contentType === 'application/json') return true;
  return contentType.split(';', 1)[0]?.trim().toLowerCase() === 'application/json';
}
