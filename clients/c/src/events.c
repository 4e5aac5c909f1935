#include "events.h"

#include <string.h>

#include "text.h"

void fleetpost_events_begin(struct fleetpost_events *events) {
  memset(events, 0, sizeof *events);
  events->retry_ms = 5000;
  events->mailbox_size = -1;
}

/** The number behind a member of a JSON object that the server wrote, or -1. */
static int32_t member(const char *json, const char *name) {
  const char *found = strstr(json, name);
  char digits[11];
  size_t length = 0;
  if (found == NULL) return -1;
  for (found += strlen(name); *found >= '0' && *found <= '9' && length < sizeof digits - 1; found++) digits[length++] = *found;
  digits[length] = '\0';
  return fleetpost_text_number(digits);
}

static void end_line(struct fleetpost_events *events) {
  char *value = events->line;
  events->line[events->line_bytes] = '\0';
  if (events->line_bytes == 0) {
    events->is_of_mail = false;
    return;
  }
  value = strchr(events->line, ':');
  if (value == NULL || value == events->line) return;
  *value++ = '\0';
  if (*value == ' ') value++;
  if (strcmp(events->line, "event") == 0) {
    events->is_of_mail = strcmp(value, "connected") == 0 || strcmp(value, "new_mail") == 0;
  } else if (strcmp(events->line, "retry") == 0) {
    int32_t retry_ms = fleetpost_text_number(value);
    if (retry_ms >= 0) events->retry_ms = retry_ms < 60000 ? retry_ms : 60000;
  } else if (strcmp(events->line, "data") == 0 && events->is_of_mail) {
    int32_t size = member(value, "\"mailbox_size\":");
    if (size >= 0) events->mailbox_size = size;
    if (size != 0) events->has_mail = true;
    events->has_spoken = true;
  }
}

void fleetpost_events_feed(void *context, const char *bytes, size_t size) {
  struct fleetpost_events *events = context;
  for (size_t at = 0; at < size; at++) {
    char byte = bytes[at];
    bool is_after_return = events->is_after_return;
    events->is_after_return = byte == '\r';
    if (byte == '\n' && is_after_return) continue;
    if (byte == '\n' || byte == '\r') {
      end_line(events);
      events->line_bytes = 0;
    } else if (events->line_bytes < FLEETPOST_EVENT_LINE_MAX - 1) events->line[events->line_bytes++] = byte;
  }
}
