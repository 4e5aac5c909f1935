/**
 * How an id may be meant that was typed so: as it stands, and in capitals, which generated ids are in. Ids may be of
 * small letters too, so each is asked for: no index knows them in any other case.
 */
export function spellingsOf(text: string): string[] {
  return [...new Set([text, text.toUpperCase()])];
}
