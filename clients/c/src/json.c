#include "json.h"

#include <string.h>

#include "fleetpost.h"
#include "text.h"

enum {
  VALUE,
  FIRST_VALUE,
  FIRST_NAME,
  NAME,
  COLON,
  AFTER,
  STRING,
  ESCAPE,
  HEX,
  LITERAL,
  // The parts of a number; behind those of the second line it may end.
  SIGN, POINT, EXPONENT, EXPONENT_SIGN,
  ZERO, WHOLE, FRACTION, EXPONENT_DIGITS
};

void fleetpost_json_begin(struct fleetpost_json *json) {
  memset(json, 0, sizeof *json);
}

static bool is_in_object(const struct fleetpost_json *json) {
  uint8_t level = (uint8_t)(json->depth - 1);
  return (json->is_object[level / 8] >> level % 8 & 1) != 0;
}

static int go(struct fleetpost_json *json, uint8_t state) {
  json->state = state;
  return FLEETPOST_JSON_NOTHING;
}

static int keep(struct fleetpost_json *json, char byte, uint8_t state) {
  if (json->text_bytes < FLEETPOST_JSON_TEXT_MAX - 1) json->text[json->text_bytes++] = byte;
  else json->is_cut = true;
  json->text[json->text_bytes] = '\0';
  return go(json, state);
}

static int begin_text(struct fleetpost_json *json, bool is_name, bool is_string, uint8_t state) {
  json->is_name = is_name;
  json->is_string = is_string;
  json->is_cut = false;
  json->text_bytes = 0;
  json->text_depth = json->depth;
  json->text[0] = '\0';
  return go(json, state);
}

static int open_nesting(struct fleetpost_json *json, bool is_object) {
  uint8_t bit = (uint8_t)(1 << json->depth % 8), *bits = &json->is_object[json->depth / 8];
  if (json->depth >= FLEETPOST_JSON_DEPTH_MAX - 1) return FLEETPOST_MALFORMED;
  *bits = (uint8_t)(is_object ? *bits | bit : *bits & ~bit);
  json->depth++;
  return go(json, is_object ? FIRST_NAME : FIRST_VALUE);
}

static int close_nesting(struct fleetpost_json *json, char byte, int event) {
  if ((byte != '}' && byte != ']') || is_in_object(json) != (byte == '}')) return FLEETPOST_MALFORMED;
  json->depth--;
  json->state = AFTER;
  return event;
}

static int begin_value(struct fleetpost_json *json, char byte) {
  if (byte == '{' || byte == '[') return open_nesting(json, byte == '{');
  if (byte == '"') return begin_text(json, false, true, STRING);
  bool is_number = byte == '-' || (byte >= '0' && byte <= '9');
  json->literal = byte == 't' ? "true" : byte == 'f' ? "false" : "null";
  json->left = 1;
  if (!is_number && byte != *json->literal) return FLEETPOST_MALFORMED;
  (void)begin_text(json, false, false, LITERAL);
  return is_number ? keep(json, byte, byte == '-' ? SIGN : byte == '0' ? ZERO : WHOLE) : FLEETPOST_JSON_NOTHING;
}

/** The part of a number that a digit belongs to; 0 for none. */
static uint8_t digit_state(uint8_t state, char digit) {
  if (state == SIGN) return digit == '0' ? ZERO : WHOLE;
  if (state == WHOLE) return WHOLE;
  if (state == POINT || state == FRACTION) return FRACTION;
  return state == ZERO ? 0 : EXPONENT_DIGITS;
}

static int take_number(struct fleetpost_json *json, char byte) {
  uint8_t state = json->state, next = 0;
  if (byte >= '0' && byte <= '9') next = digit_state(state, byte);
  else if (byte == '.' && (state == ZERO || state == WHOLE)) next = POINT;
  else if ((byte == 'e' || byte == 'E') && state >= ZERO && state < EXPONENT_DIGITS) next = EXPONENT;
  else if ((byte == '+' || byte == '-') && state == EXPONENT) next = EXPONENT_SIGN;
  if (next != 0) return keep(json, byte, next);
  if (state < ZERO) return FLEETPOST_MALFORMED;
  json->state = AFTER;
  return fleetpost_json_take(json, byte);
}

static int take_string(struct fleetpost_json *json, char byte) {
  if (json->state == HEX) {
    if (fleetpost_text_hex(byte) < 0) return FLEETPOST_MALFORMED;
    return keep(json, byte, --json->left == 0 ? STRING : HEX);
  }
  if (json->state == ESCAPE) {
    json->left = 4;
    if (byte == '\0' || strchr("\"\\/bfnrtu", byte) == NULL) return FLEETPOST_MALFORMED;
    return keep(json, byte, byte == 'u' ? HEX : STRING);
  }
  if (byte == '"') return go(json, json->is_name ? COLON : AFTER);
  return (unsigned char)byte < ' ' ? FLEETPOST_MALFORMED : keep(json, byte, byte == '\\' ? ESCAPE : STRING);
}

static int take_literal(struct fleetpost_json *json, char byte) {
  if (byte != json->literal[json->left++]) return FLEETPOST_MALFORMED;
  return go(json, json->literal[json->left] == '\0' ? AFTER : LITERAL);
}

int fleetpost_json_take(struct fleetpost_json *json, char byte) {
  if (json->state >= SIGN) return take_number(json, byte);
  if (json->state == LITERAL) return take_literal(json, byte);
  if (json->state >= STRING) return take_string(json, byte);
  if (byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t') return FLEETPOST_JSON_NOTHING;
  switch (json->state) {
    case FIRST_VALUE:
      return byte == ']' ? close_nesting(json, byte, FLEETPOST_JSON_NOTHING) : begin_value(json, byte);
    case VALUE:
      return begin_value(json, byte);
    case FIRST_NAME:
    case NAME:
      if (byte == '"') return begin_text(json, true, true, STRING);
      return json->state == FIRST_NAME ? close_nesting(json, byte, FLEETPOST_JSON_NOTHING) : FLEETPOST_MALFORMED;
    case COLON:
      json->state = VALUE;
      return byte == ':' ? FLEETPOST_JSON_NAME : FLEETPOST_MALFORMED;
    default:
      if (json->depth == 0) return FLEETPOST_MALFORMED;
      if (byte != ',') return close_nesting(json, byte, FLEETPOST_JSON_VALUE);
      json->state = is_in_object(json) ? NAME : VALUE;
      return FLEETPOST_JSON_VALUE;
  }
}

bool fleetpost_json_is_done(const struct fleetpost_json *json) {
  return json->state == AFTER && json->depth == 0;
}

const char *fleetpost_json_text(const struct fleetpost_json *json, uint8_t depth, bool is_string) {
  bool is_it = json->text_depth == depth && !json->is_name && json->is_string == is_string && !json->is_cut;
  return is_it ? json->text : NULL;
}

bool fleetpost_json_is_object(struct fleetpost_json *json, const char *bytes, size_t size) {
  bool is_object = false;
  fleetpost_json_begin(json);
  for (size_t at = 0; at < size; at++) {
    if (fleetpost_json_take(json, bytes[at]) < 0) return false;
    if (json->depth == 1) is_object = is_in_object(json);
  }
  return is_object && fleetpost_json_is_done(json);
}
