#ifndef FLEETPOST_EVENTS_H
#define FLEETPOST_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A line of the event stream. Of a longer one the rest is skipped: an event is a hint, and its beginning says enough. */
#define FLEETPOST_EVENT_LINE_MAX 128

/** A server-sent event stream while it arrives, in any pieces. */
struct fleetpost_events {
  uint16_t line_bytes;
  bool is_after_return, is_of_mail;
  /** Set when an event has said that the mailbox has mail; whoever acts on it clears it. */
  bool has_mail;
  /** Set when an event has named the mailbox: from then on the stream has worked. */
  bool has_spoken;
  /** Mails waiting, as last heard; -1: not yet heard. */
  int32_t mailbox_size;
  /** Pause that the server asks for before the stream is opened again. */
  int32_t retry_ms;
  char line[FLEETPOST_EVENT_LINE_MAX];
};

void fleetpost_events_begin(struct fleetpost_events *events);

/** A `fleetpost_body_sink`: `events` is the stream. */
void fleetpost_events_feed(void *events, const char *bytes, size_t size);

#endif
