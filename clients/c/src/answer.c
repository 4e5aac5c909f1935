#include "answer.h"

#include <string.h>

#include "fleetpost.h"
#include "text.h"

void fleetpost_answer_begin(struct fleetpost_answer *answer, bool is_bodiless, fleetpost_body_sink *sink, void *context) {
  memset(answer, 0, sizeof *answer);
  answer->is_bodiless = is_bodiless;
  answer->sink = sink;
  answer->sink_context = context;
  answer->content_bytes = answer->retry_after_seconds = answer->mailbox_size = -1;
}

/** Takes bytes up to the end of a line. Returns 1 with the line in `line`, 0 when it goes on. */
static int take_line(struct fleetpost_answer *answer, const char *bytes, size_t size, size_t *at) {
  while (*at < size) {
    char byte = bytes[(*at)++];
    answer->header_bytes++;
    if (answer->header_bytes > FLEETPOST_ANSWER_HEADERS_MAX) return FLEETPOST_HEADERS_TOO_LARGE;
    if (byte == '\0') return FLEETPOST_MALFORMED;
    if (byte == '\n') {
      if (answer->line_bytes > 0 && answer->line[answer->line_bytes - 1] == '\r') answer->line_bytes--;
      answer->line[answer->line_bytes] = '\0';
      return 1;
    }
    if (answer->line_bytes < FLEETPOST_LINE_MAX - 1) answer->line[answer->line_bytes++] = byte;
    else answer->is_line_cut = true;
  }
  return 0;
}

static void next_line(struct fleetpost_answer *answer) {
  answer->line_bytes = 0;
  answer->is_line_cut = false;
}

static int read_status(struct fleetpost_answer *answer) {
  const char *line = answer->line;
  int32_t status;
  if (strncmp(line, "HTTP/1.1 ", 9) != 0 || answer->line_bytes < 12) return FLEETPOST_MALFORMED;
  if (line[12] != ' ' && line[12] != '\0') return FLEETPOST_MALFORMED;
  answer->line[12] = '\0';
  status = fleetpost_text_number(line + 9);
  if (status < 100 || status > 599) return FLEETPOST_MALFORMED;
  answer->status = status;
  answer->state = FLEETPOST_ANSWER_HEADERS;
  return 0;
}

/** Copies a value that has to fit. */
static int keep(char *to, size_t size, const char *value) {
  size_t length = strlen(value);
  if (length >= size) return FLEETPOST_MALFORMED;
  memcpy(to, value, length + 1);
  return 0;
}

static int read_length(struct fleetpost_answer *answer, const char *value) {
  int32_t bytes = fleetpost_text_number(value);
  if (bytes < 0 || (answer->content_bytes >= 0 && answer->content_bytes != bytes)) return FLEETPOST_MALFORMED;
  answer->content_bytes = bytes;
  return 0;
}

static int read_header(struct fleetpost_answer *answer) {
  char *value = strchr(answer->line, ':');
  if (value == NULL) return answer->is_line_cut ? 0 : FLEETPOST_MALFORMED;
  *value++ = '\0';
  while (*value == ' ' || *value == '\t') value++;
  for (size_t length = strlen(value); length > 0 && (value[length - 1] == ' ' || value[length - 1] == '\t'); length--) {
    value[length - 1] = '\0';
  }
  const char *name = answer->line;
#define IS(text) fleetpost_text_is(name, text)
  if (IS("Content-Length")) return answer->is_line_cut ? FLEETPOST_MALFORMED : read_length(answer, value);
  if (IS("X-Mail-Id")) return answer->is_line_cut ? FLEETPOST_MALFORMED : keep(answer->mail_id, sizeof answer->mail_id, value);
  if (IS("X-Mail-Name")) return answer->is_line_cut ? FLEETPOST_MALFORMED : keep(answer->mail_name, sizeof answer->mail_name, value);
  if (IS("Transfer-Encoding")) {
    if (!fleetpost_text_is(value, "chunked")) return FLEETPOST_MALFORMED;
    answer->is_chunked = true;
  } else if (IS("Connection")) answer->will_close = fleetpost_text_is(value, "close");
  else if (IS("Date")) answer->date_ms = fleetpost_text_date(value);
  else if (IS("Retry-After")) answer->retry_after_seconds = fleetpost_text_number(value);
  else if (IS("X-Mailbox-Size")) answer->mailbox_size = fleetpost_text_number(value);
  else if (IS("X-Messages-Available")) answer->messages_available = strcmp(value, "true") == 0;
#undef IS
  return 0;
}

/** Decides, after the empty line, where the body ends. Only one that says so is taken: a cut one could not be told. */
static int end_headers(struct fleetpost_answer *answer) {
  if (answer->status < 200) {  // 100 and 103 come before the answer itself.
    fleetpost_answer_begin(answer, answer->is_bodiless, answer->sink, answer->sink_context);
    return 0;
  }
  if (answer->is_chunked && answer->content_bytes >= 0) return FLEETPOST_MALFORMED;
  if (answer->is_bodiless || answer->status == 204 || answer->status == 304 || answer->content_bytes == 0) {
    answer->state = FLEETPOST_ANSWER_DONE;
    return 1;
  }
  if (!answer->is_chunked && answer->content_bytes < 0) return FLEETPOST_MALFORMED;
  answer->rest_bytes = answer->is_chunked ? 0 : (uint32_t)answer->content_bytes;
  answer->state = answer->is_chunked ? FLEETPOST_ANSWER_CHUNK_SIZE : FLEETPOST_ANSWER_BODY;
  return 0;
}

static int read_chunk_size(struct fleetpost_answer *answer) {
  uint32_t size = 0;
  size_t at = 0;
  for (; answer->line[at] != '\0' && answer->line[at] != ';' && answer->line[at] != ' '; at++) {
    int digit = fleetpost_text_hex(answer->line[at]);
    if (digit < 0 || at >= 7) return FLEETPOST_MALFORMED;
    size = size << 4 | (uint32_t)digit;
  }
  if (at == 0) return FLEETPOST_MALFORMED;
  answer->rest_bytes = size;
  answer->header_bytes = 0;
  answer->state = size == 0 ? FLEETPOST_ANSWER_TRAILERS : FLEETPOST_ANSWER_CHUNK;
  return 0;
}

static int end_line(struct fleetpost_answer *answer) {
  int result = 0;
  switch (answer->state) {
    case FLEETPOST_ANSWER_STATUS:
      result = read_status(answer);
      break;
    case FLEETPOST_ANSWER_HEADERS:
      result = answer->line_bytes == 0 ? end_headers(answer) : read_header(answer);
      break;
    case FLEETPOST_ANSWER_CHUNK_SIZE:
      result = read_chunk_size(answer);
      break;
    case FLEETPOST_ANSWER_CHUNK_END:
      if (answer->line_bytes != 0) return FLEETPOST_MALFORMED;
      answer->state = FLEETPOST_ANSWER_CHUNK_SIZE;
      break;
    default:  // Trailers: nothing in them is of use.
      if (answer->line_bytes == 0) {
        answer->state = FLEETPOST_ANSWER_DONE;
        result = 1;
      }
  }
  next_line(answer);
  return result;
}

int fleetpost_answer_feed(struct fleetpost_answer *answer, const char *bytes, size_t size, size_t *used) {
  size_t at = 0;
  int result = answer->state == FLEETPOST_ANSWER_DONE;
  while (result == 0 && at < size) {
    if (answer->state == FLEETPOST_ANSWER_BODY || answer->state == FLEETPOST_ANSWER_CHUNK) {
      size_t piece = size - at < answer->rest_bytes ? size - at : answer->rest_bytes;
      answer->sink(answer->sink_context, bytes + at, piece);
      at += piece;
      answer->rest_bytes -= (uint32_t)piece;
      if (answer->rest_bytes > 0) continue;
      result = answer->state == FLEETPOST_ANSWER_BODY;
      answer->state = result ? FLEETPOST_ANSWER_DONE : FLEETPOST_ANSWER_CHUNK_END;
    } else {
      result = take_line(answer, bytes, size, &at);
      if (result == 1) result = end_line(answer);
    }
  }
  *used = at;
  return result;
}
