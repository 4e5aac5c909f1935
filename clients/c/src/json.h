#ifndef FLEETPOST_JSON_H
#define FLEETPOST_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The longest name, number or string that is kept: a mail's name. Of a longer one the rest is read and forgotten. */
#define FLEETPOST_JSON_TEXT_MAX 256
/** Deeper than anything that the server takes (128 levels), within the lists of an answer. */
#define FLEETPOST_JSON_DEPTH_MAX 136

/** What a byte has completed. */
enum fleetpost_json_event {
  FLEETPOST_JSON_NOTHING,
  /** The name of a member, in `text`; its value follows. */
  FLEETPOST_JSON_NAME,
  /** A member's value, or an item of a list. If it is a string or a number, `fleetpost_json_text` has it. */
  FLEETPOST_JSON_VALUE
};

/**
 * JSON (RFC 8259) while it arrives, byte by byte. It takes no other text, and keeps no more of it than the last name,
 * number or string, escapes and all.
 */
struct fleetpost_json {
  uint8_t state, left;
  bool is_name, is_string, is_cut;
  /** Lists and objects that are open, and where `text` was. */
  uint8_t depth, text_depth;
  uint8_t is_object[FLEETPOST_JSON_DEPTH_MAX / 8];
  uint16_t text_bytes;
  const char *literal;
  char text[FLEETPOST_JSON_TEXT_MAX];
};

void fleetpost_json_begin(struct fleetpost_json *json);
/** Returns a `fleetpost_json_event` of the depth that it had before the byte, or FLEETPOST_MALFORMED. */
int fleetpost_json_take(struct fleetpost_json *json, char byte);
/** True if a whole list or object was taken, and nothing but spaces behind it. */
bool fleetpost_json_is_done(const struct fleetpost_json *json);
/** The string or number of a value of this depth that has just been completed; NULL for others, and for a longer one. */
const char *fleetpost_json_text(const struct fleetpost_json *json, uint8_t depth, bool is_string);
/** True if these bytes are one object. */
bool fleetpost_json_is_object(struct fleetpost_json *json, const char *bytes, size_t size);

#endif
