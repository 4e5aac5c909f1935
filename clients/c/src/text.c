#include "text.h"

#include <string.h>

#define DAY_MS INT64_C(86400000)

void fleetpost_text_add(struct fleetpost_text *text, const char *string) {
  for (; *string != '\0'; string++) {
    if (text->length + 1 >= text->size) {
      text->is_cut = true;
      break;
    }
    text->bytes[text->length++] = *string;
  }
  text->bytes[text->length] = '\0';
}

void fleetpost_text_add_number(struct fleetpost_text *text, uint64_t number, int digits_min) {
  char digits[24];
  size_t at = sizeof digits - 1;
  digits[at] = '\0';
  while ((number > 0 || digits_min > 0) && at > 0) {
    digits[--at] = (char)('0' + number % 10);
    number /= 10;
    digits_min--;
  }
  fleetpost_text_add(text, digits + at);
}

/** Days of 1970-01-01 until a date of the Gregorian calendar, by eras of 400 years that begin in March. */
static int64_t days_of(int64_t year, int month, int day) {
  int64_t shifted = month <= 2 ? year - 1 : year;
  int64_t era = shifted / 400, of_era = shifted - era * 400;
  int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

void fleetpost_text_add_time(struct fleetpost_text *text, int64_t time_ms) {
  if (time_ms < 0) time_ms = 0;
  int64_t days = time_ms / DAY_MS, rest = time_ms % DAY_MS;
  int64_t shifted = days + 719468, era = shifted / 146097, of_era = shifted - era * 146097;
  int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
  int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
  int64_t month = (5 * of_year + 2) / 153;
  const int64_t parts[] = {year + era * 400 + (month >= 10), month < 10 ? month + 3 : month - 9,
                           of_year - (153 * month + 2) / 5 + 1, rest / 3600000, rest / 60000 % 60, rest / 1000 % 60, rest % 1000};
  const char *const after[] = {"-", "-", "T", ":", ":", ".", "Z"};
  for (int part = 0; part < 7; part++) {
    fleetpost_text_add_number(text, (uint64_t)parts[part], part == 0 ? 4 : part == 6 ? 3 : 2);
    fleetpost_text_add(text, after[part]);
  }
}

void fleetpost_text_add_uuid(struct fleetpost_text *text, const uint8_t uuid[16]) {
  char digits[37];
  size_t at = 0;
  for (int byte = 0; byte < 16; byte++) {
    if (byte == 4 || byte == 6 || byte == 8 || byte == 10) digits[at++] = '-';
    digits[at++] = "0123456789abcdef"[uuid[byte] >> 4];
    digits[at++] = "0123456789abcdef"[uuid[byte] & 15];
  }
  digits[at] = '\0';
  fleetpost_text_add(text, digits);
}

void fleetpost_text_add_foreign(struct fleetpost_text *text, const char *from, const char *end) {
  for (; from < end; from++) {
    char one[2] = {*from, '\0'};
    if ((unsigned char)*from < ' ' || (unsigned char)*from >= 127) one[0] = '?';
    fleetpost_text_add(text, one);
  }
}

int32_t fleetpost_text_number(const char *string) {
  int64_t number = 0;
  if (*string == '\0') return -1;
  for (; *string != '\0'; string++) {
    if (*string < '0' || *string > '9') return -1;
    number = number * 10 + (*string - '0');
    if (number > INT32_MAX) return -1;
  }
  return (int32_t)number;
}

int fleetpost_text_hex(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

static char lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? (char)(letter + ('a' - 'A')) : letter;
}

bool fleetpost_text_is(const char *text, const char *other) {
  for (; *text != '\0' && lower(*text) == lower(*other); text++) other++;
  return *text == *other;
}

bool fleetpost_text_fits(const char *text, size_t length_min, size_t length_max, const char *more) {
  size_t length = 0;
  if (text == NULL) return false;
  for (; text[length] != '\0'; length++) {
    char letter = lower(text[length]);
    bool is_common = (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9');
    if (length >= length_max || (!is_common && strchr(more, letter) == NULL)) return false;
  }
  return length >= length_min;
}

/** The digits of a date, of which each has its place. */
static int digits_at(const char *string, int at, int count) {
  int number = 0;
  for (; count > 0; count--, at++) {
    if (string[at] < '0' || string[at] > '9') return -1;
    number = number * 10 + (string[at] - '0');
  }
  return number;
}

int64_t fleetpost_text_date(const char *string) {
  static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
  if (strlen(string) != 29 || strcmp(string + 25, " GMT") != 0) return 0;
  int day = digits_at(string, 5, 2), year = digits_at(string, 12, 4), month = 0;
  int hour = digits_at(string, 17, 2), minute = digits_at(string, 20, 2), second = digits_at(string, 23, 2);
  while (month < 12 && strncmp(months + 3 * month, string + 8, 3) != 0) month++;
  if (month == 12 || day < 1 || day > 31 || year < 1970 || hour < 0 || minute < 0 || second < 0) return 0;
  return days_of(year, month + 1, day) * DAY_MS + (INT64_C(3600) * hour + 60 * minute + second) * 1000;
}

bool fleetpost_text_uuid(const char *string, uint8_t uuid[16]) {
  if (strlen(string) != 36) return false;
  for (int byte = 0; byte < 16; byte++) {
    if ((byte == 4 || byte == 6 || byte == 8 || byte == 10) && *string++ != '-') return false;
    int high = fleetpost_text_hex(string[0]), low = fleetpost_text_hex(string[1]);
    if (high < 0 || low < 0) return false;
    uuid[byte] = (uint8_t)(high << 4 | low);
    string += 2;
  }
  return true;
}
