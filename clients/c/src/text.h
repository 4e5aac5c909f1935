#ifndef FLEETPOST_TEXT_H
#define FLEETPOST_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A text that is written into a buffer of fixed size. Not snprintf: that of small C libraries allocates. */
struct fleetpost_text {
  char *bytes;
  size_t size, length;
  /** Set when something did not fit. */
  bool is_cut;
};

void fleetpost_text_add(struct fleetpost_text *text, const char *string);
void fleetpost_text_add_number(struct fleetpost_text *text, uint64_t number, int digits_min);
/** RFC 3339 with milliseconds, as `Recorded-At` has it. */
void fleetpost_text_add_time(struct fleetpost_text *text, int64_t time_ms);
void fleetpost_text_add_uuid(struct fleetpost_text *text, const uint8_t uuid[16]);
/** Adds text of the server, for people: bounded, and without control characters. `end` is where it ends. */
void fleetpost_text_add_foreign(struct fleetpost_text *text, const char *from, const char *end);

/** A number of digits only; -1 for any other text, and for one beyond 2,147,483,647. */
int32_t fleetpost_text_number(const char *string);
int fleetpost_text_hex(char digit);
/** True if two texts are the same but for the case of their letters. */
bool fleetpost_text_is(const char *text, const char *other);
/** True if a text has between these many characters, all of them [A-Za-z0-9] or in `more`. */
bool fleetpost_text_fits(const char *text, size_t length_min, size_t length_max, const char *more);
/** Milliseconds since 1970 of an HTTP date ("Mon, 23 Nov 2026 05:35:30 GMT"), or 0. */
int64_t fleetpost_text_date(const char *string);
/** Reads a UUID of 36 characters; whether it is one. */
bool fleetpost_text_uuid(const char *string, uint8_t uuid[16]);

#endif
