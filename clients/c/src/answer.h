#ifndef FLEETPOST_ANSWER_H
#define FLEETPOST_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Bytes of all header lines of an answer, beyond which it is FLEETPOST_HEADERS_TOO_LARGE. */
#define FLEETPOST_ANSWER_HEADERS_MAX 8192
/** One line that matters: X-Mail-Name with a name of 255 characters. A longer one is skipped, or MALFORMED if it matters. */
#define FLEETPOST_LINE_MAX 288

enum fleetpost_answer_state {
  FLEETPOST_ANSWER_STATUS,
  FLEETPOST_ANSWER_HEADERS,
  FLEETPOST_ANSWER_BODY,
  FLEETPOST_ANSWER_CHUNK_SIZE,
  FLEETPOST_ANSWER_CHUNK,
  FLEETPOST_ANSWER_CHUNK_END,
  FLEETPOST_ANSWER_TRAILERS,
  FLEETPOST_ANSWER_DONE
};

/** Takes the body of an answer, piece by piece. */
typedef void fleetpost_body_sink(void *context, const char *bytes, size_t size);

/** An HTTP/1.1 answer while it arrives, in any pieces. Nothing of it is kept but what a device needs. */
struct fleetpost_answer {
  enum fleetpost_answer_state state;
  fleetpost_body_sink *sink;
  void *sink_context;
  /** True for HEAD: its answer has the headers of a body, and none. */
  bool is_bodiless;
  bool is_chunked, will_close, messages_available;
  bool is_line_cut;
  uint16_t line_bytes;
  uint32_t header_bytes;
  int status;
  /** -1: the header was not there. */
  int32_t content_bytes, retry_after_seconds, mailbox_size;
  /** Bytes still to come of the body, or of the chunk. */
  uint32_t rest_bytes;
  /** Milliseconds since 1970 of `Date`; 0: none. */
  int64_t date_ms;
  char line[FLEETPOST_LINE_MAX];
  char mail_id[37];
  char mail_name[256];
};

void fleetpost_answer_begin(struct fleetpost_answer *answer, bool is_bodiless, fleetpost_body_sink *sink, void *context);

/** Feeds what arrived. Returns 1 when the answer is complete, 0 when it goes on, or a negative result. `used` is how far it got. */
int fleetpost_answer_feed(struct fleetpost_answer *answer, const char *bytes, size_t size, size_t *used);

#endif
