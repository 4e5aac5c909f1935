/**
 * Feeds the parsers of the C client, and a whole device, what no server would say: cut at every byte, too long, mutated,
 * random. Sanitizers end it at the first byte out of place. `c-hostile ROUNDS SEED`.
 */
#include <string.h>

#include "c-hostile.h"
#include "fleetpost.h"

/** The outcome of parsing bytes; two that are the same had the same outcome. */
struct outcome {
  int result, status;
  size_t used;
  int32_t mailbox_size, retry_after;
  uint64_t body_sum;
  struct fleetpost_events events;
};

static void sum(void *context, const char *bytes, size_t size) {
  struct outcome *outcome = context;
  for (size_t at = 0; at < size; at++) outcome->body_sum = outcome->body_sum * 31 + (unsigned char)bytes[at] + 1;
  fleetpost_events_feed(&outcome->events, bytes, size);
}

/** Feeds in pieces of at most so many bytes, each in memory of exactly its size, so that ASan sees a read beyond it. */
static struct outcome feed(const char *bytes, size_t size, size_t piece_max, bool is_random) {
  struct fleetpost_answer answer;
  struct outcome outcome = {0};
  fleetpost_events_begin(&outcome.events);
  fleetpost_answer_begin(&answer, false, sum, &outcome);
  while (outcome.result == 0 && outcome.used < size) {
    size_t rest = size - outcome.used, piece = is_random ? 1 + draw((uint32_t)piece_max) : piece_max, used = 0;
    if (piece > rest) piece = rest;
    char *copy = malloc(piece);
    memcpy(copy, bytes + outcome.used, piece);
    outcome.result = fleetpost_answer_feed(&answer, copy, piece, &used);
    free(copy);
    REQUIRE(used <= piece && (outcome.result != 0 || used == piece));
    outcome.used += used;
  }
  outcome.status = answer.status;
  outcome.mailbox_size = answer.mailbox_size;
  outcome.retry_after = answer.retry_after_seconds;
  return outcome;
}

static bool is_same(const struct outcome *one, const struct outcome *other) {
  bool is_same_event = one->events.has_mail == other->events.has_mail && one->events.has_spoken == other->events.has_spoken &&
                       one->events.mailbox_size == other->events.mailbox_size && one->events.retry_ms == other->events.retry_ms;
  return one->result == other->result && one->status == other->status && one->used == other->used && is_same_event &&
         one->mailbox_size == other->mailbox_size && one->retry_after == other->retry_after && one->body_sum == other->body_sum;
}

static const char *const answers[] = {
    "HTTP/1.1 201 Created\r\nDate: Mon, 23 Nov 2026 05:35:30 GMT\r\nX-Messages-Available: true\r\nContent-Length: 11\r\n\r\n{\"ok\":true}",
    "HTTP/1.1 200 OK\r\nX-Mailbox-Size: 7\r\nX-Mail-Name: water\r\nX-Mail-Id: 01a2062d-d47d-7795-86a4-c19900000001\r\n"
    "Content-Length: 14\r\n\r\n{\"seconds\":30}",
    "HTTP/1.1 204 No Content\r\nX-Mailbox-Size: 0\r\nX-Mail-Name: \r\nX-Mail-Id: \r\n\r\n",
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 503 Service Unavailable\r\nRetry-After: 3\r\nContent-Length: 54\r\nConnection: close\r\n\r\n"
    "{\"error\":\"unavailable\",\"msg\":\"Too much. Retry later.\"}",
    "HTTP/1.1 400 Bad Request\r\nContent-Length: 75\r\n\r\n"
    "{\"error\":\"invalid_recorded_at\",\"msg\":\"A time with \\\"quotes\\\" in its text.\"}",
    "HTTP/1.1 400 Bad Request\r\nContent-Length: 48\r\n\r\n{\"error\":\"invalid_idempotency_key\",\"msg\":\"Old.\"}",
    "HTTP/1.1 200 OK\r\nX-Mailbox-Size: 0\r\nContent-Length: 68\r\n\r\n"
    "{\"records\":[],\"settled\":[{\"status\":200}],\"mailbox_size\":0,\"mail\":[]}",
    "HTTP/1.1 200 OK\r\nX-Mailbox-Size: 1\r\nContent-Length: 218\r\n\r\n"
    "{\"records\":[{\"status\":201}],\"settled\":[],\"stored_to\":1,\"skipped\":0,\"mailbox_size\":1,\"mail\":[{\"id\":"
    "\"01a2062d-d47d-7795-86a4-c19900000001\",\"name\":\"water\",\"payload\":{\"seconds\":30},\"requeue_count\":0}],\"time\":1795399994120}",
    "HTTP/1.1 404 Not Found\r\nContent-Length: 45\r\n\r\n{\"error\":\"route_not_found\",\"msg\":\"No route.\"}",
    "HTTP/1.1 200 OK\r\nX-Mailbox-Size: 1\r\nContent-Length: 11\r\n\r\n{\"ok\":true}",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2f\r\nretry: 7229\n\nevent: connected\ndata: {\"fleet_id\"\r\n"
    "22\r\n:\"GARDEN01\",\"mailbox_size\":12}\n\n:\n\r\n4d\r\nid: 1\r\nevent: new_mail\r\ndata: {\"id\":\"x\",\"name\":\"water\","
    "\"mailbox_size\":13}\r\n\r\n\r\n0\r\n\r\n",
};
#define ANSWERS (sizeof answers / sizeof *answers)

static void check_pieces(void) {
  for (size_t one = 0; one < ANSWERS; one++) {
    size_t size = strlen(answers[one]);
    struct outcome whole = feed(answers[one], size, size, false);
    REQUIRE(whole.result == 1);
    for (size_t piece = 1; piece < size; piece++) {
      struct outcome cut = feed(answers[one], size, piece, false);
      REQUIRE(is_same(&whole, &cut));
      struct outcome early = feed(answers[one], piece, piece, false);
      REQUIRE(early.result == 0);
    }
  }
  struct outcome events = feed(answers[ANSWERS - 1], strlen(answers[ANSWERS - 1]), 3, false);
  REQUIRE(events.events.has_mail && events.events.mailbox_size == 13 && events.events.retry_ms == 7229);
}

static void check_names(void) {
  static char large[FLEETPOST_ANSWER_HEADERS_MAX + 64] = "HTTP/1.1 200 OK\r\nX-Large: ";
  static const char *const malformed[] = {
      "HTTP/1.0 200 OK\r\n",
      "HTTP/1.1 2000 OK\r\n",
      "HTTP/1.1 99\r\n",
      "\r\n",
      "HTTP/1.1 200 OK\r\nno colon\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 4294967297\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n",
      "HTTP/1.1 200 OK\r\n\r\n",
      "HTTP/1.1 200 OK\r\nX-Mail-Id: 01a2062d-d47d-7795-86a4-c199000000011\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffff\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
  };
  for (size_t one = 0; one < sizeof malformed / sizeof *malformed; one++) {
    struct outcome outcome = feed(malformed[one], strlen(malformed[one]), 5, false);
    if (outcome.result != FLEETPOST_MALFORMED) fprintf(stderr, "%s", malformed[one]);
    REQUIRE(outcome.result == FLEETPOST_MALFORMED);
  }
  size_t begun = strlen(large);
  memset(large + begun, 'a', sizeof large - begun);
  REQUIRE(feed(large, sizeof large, 100, false).result == FLEETPOST_HEADERS_TOO_LARGE);
}

/** An answer with a few bytes changed, removed or doubled, or nothing but random bytes. */
static size_t mutate(char *bytes, size_t size_max) {
  const char *from = answers[draw(ANSWERS)];
  size_t size = 0, changes = draw(6), length = strlen(from);
  if (draw(20) == 0) {
    for (size = draw(400); size_max > 0 && length > 0 && changes-- > 0;) bytes[draw(400)] = (char)draw(256);
    return size;
  }
  for (size_t at = 0; at < length && size + 2 < size_max; at++) {
    bool is_changed = changes > 0 && draw((uint32_t)length) < changes;
    uint32_t how = draw(4);
    if (!is_changed) bytes[size++] = from[at];
    else if (how == 0) bytes[size++] = (char)draw(256);
    else if (how == 1) bytes[size++] = "\r\n:0 9f\0"[draw(8)];
    else if (how == 2) bytes[size] = bytes[size + 1] = from[at], size += 2;
  }
  return size;
}

static void check_mutations(long rounds) {
  char bytes[1024] = {0};
  for (; rounds > 0; rounds--) {
    size_t size = mutate(bytes, sizeof bytes);
    struct outcome whole = feed(bytes, size, size + 1, false), pieces = feed(bytes, size, 9, true);
    REQUIRE(is_same(&whole, &pieces));
  }
}

/** A platform whose network answers with mutations, whose store sometimes fails, and whose clock runs as it is asked. */
static struct {
  int64_t now_ms;
  char answer[2048];
  size_t answer_bytes, read_bytes;
  uint8_t slots[64][1200];
  size_t slot_bytes[64];
} world;

static int world_open(void *context, enum fleetpost_channel channel) {
  (void)context, (void)channel;
  world.answer_bytes = world.read_bytes = 0;
  return draw(4) == 0 ? -(int)(1 + draw(6)) : (int)draw(2);
}

static void world_close(void *context, enum fleetpost_channel channel) { (void)context, (void)channel; }

static long world_read(void *context, enum fleetpost_channel channel, void *bytes, size_t size) {
  size_t rest = world.answer_bytes - world.read_bytes, piece = 1 + draw(300);
  (void)context, (void)channel;
  if (draw(5) == 0) return 0;
  if (rest == 0) return draw(3) == 0 ? FLEETPOST_CLOSED : 0;
  if (piece > rest) piece = rest;
  if (piece > size) piece = size;
  memcpy(bytes, world.answer + world.read_bytes, piece);
  world.read_bytes += piece;
  return (long)piece;
}

/** The answer of a server to a request; NULL for one that is not known. */
static const char *right_answer(const char *request) {
  if (strncmp(request, "POST /v1/sync ", 14) == 0) return answers[ANSWERS - 3 - (draw(20) == 0 ? 0 : 1 + draw(2))];
  if (strncmp(request, "POST ", 5) == 0) return answers[0];
  if (strncmp(request, "GET /v1/mailbox/", 16) == 0) return answers[draw(2) + 1];
  if (strncmp(request, "HEAD ", 5) == 0) return draw(3) == 0 ? answers[1] : answers[2];
  if (strncmp(request, "PUT ", 4) == 0) return answers[ANSWERS - 2];
  return strncmp(request, "GET /v1/events ", 15) == 0 ? answers[ANSWERS - 1] : NULL;
}

static void answer(const char *request) {
  static const char large[] = "HTTP/1.1 200 OK\r\nX-Mail-Name: water\r\nX-Mail-Id: 01a2062d-d47d-7795-86a4-c19900000001\r\n"
                              "Content-Length: 1800\r\n\r\n";
  const char *right = draw(2) == 0 ? right_answer(request) : NULL;
  memset(world.answer, ' ', sizeof world.answer);
  world.answer_bytes = sizeof large - 1 + 1800;
  world.read_bytes = 0;
  if (right != NULL) strcpy(world.answer, right), world.answer_bytes = strlen(right);
  else if (draw(30) == 0) memcpy(world.answer, large, sizeof large - 1);
  else world.answer_bytes = mutate(world.answer, 1024);
  char *id = strstr(world.answer, "c19900000001\r");
  if (id != NULL) memset(id + 4, (int)('0' + draw(10)), 4 + draw(5));
  if (strncmp(request, "HEAD ", 5) == 0 && right != NULL) world.answer_bytes = (size_t)(strstr(right, "\r\n\r\n") + 4 - right);
}

static long world_write(void *context, enum fleetpost_channel channel, const void *bytes, size_t size) {
  (void)context, (void)channel;
  REQUIRE(size > 0 && memchr(bytes, '\0', size) == NULL);
  if (draw(10) == 0) return draw(2) == 0 ? 0 : FLEETPOST_CLOSED;
  if (draw(3) == 0) return 1 + (long)draw((uint32_t)size);
  answer(bytes);
  return (long)size;
}

static int64_t world_time(void *context, enum fleetpost_clock clock) {
  (void)context;
  world.now_ms += draw(3) == 0 ? draw(40) : 0;
  return clock == FLEETPOST_STEADY ? world.now_ms : INT64_C(1795412130000) + world.now_ms;
}

static int world_random(void *context, void *bytes, size_t size) {
  (void)context;
  for (size_t at = 0; at < size; at++) ((uint8_t *)bytes)[at] = (uint8_t)draw(256);
  return draw(50) == 0 ? FLEETPOST_RANDOM_FAILED : FLEETPOST_OK;
}

static long world_store(void *context, enum fleetpost_operation operation, uint32_t slot, void *bytes, size_t size) {
  (void)context;
  if (slot >= 64) return operation == FLEETPOST_LOAD ? 0 : FLEETPOST_STORE_FAILED;
  if (draw(40) == 0) return FLEETPOST_STORE_FAILED;
  if (operation == FLEETPOST_LOAD) {
    size_t found = world.slot_bytes[slot] < size ? world.slot_bytes[slot] : size;
    if (found > 0) memcpy(bytes, world.slots[slot], found);
    // A payload is passed on as it is; what the device itself reads may have gone bad.
    bool is_record = slot < 16 || slot % 2 == 0;
    if (found > 0 && is_record && draw(100) == 0) ((uint8_t *)bytes)[draw((uint32_t)found)] ^= (uint8_t)(1 + draw(255));
    return (long)found;
  }
  REQUIRE(operation == FLEETPOST_ERASE || size <= sizeof world.slots[slot]);
  world.slot_bytes[slot] = operation == FLEETPOST_ERASE ? 0 : size;
  if (operation == FLEETPOST_SAVE) memcpy(world.slots[slot], bytes, size);
  return FLEETPOST_OK;
}

static enum fleetpost_verb on_mail(void *device, const struct fleetpost_mail *mail) {
  REQUIRE(strlen(mail->id) == 36 && strlen(mail->name) < 256 && mail->payload[mail->payload_bytes] == '\0');
  (void)fleetpost_datapoint(device, "reading", "{\"from\":\"handler\"}", 0);
  return (enum fleetpost_verb)draw(3);
}

static void on_status(void *context, const struct fleetpost_status *status) {
  (void)context;
  for (const char *at = status->reason; *at != '\0'; at++) REQUIRE(*at >= ' ' && *at <= '~');
}

static void check_device(long rounds) {
  static const struct fleetpost_port port = {NULL,       world_open,   world_close, world_read, world_write,
                                             world_time, world_random, world_store};
  for (; rounds > 0; rounds--) {
    // Of its exact size on the heap, so that ASan sees a byte beyond any of it.
    size_t buffer_bytes = FLEETPOST_HEAD_BYTES + FLEETPOST_BODY_BYTES_MIN + draw(300);
    struct fleetpost_device *device = malloc(sizeof *device);
    char *buffer = malloc(buffer_bytes);
    struct fleetpost_place *places = malloc(8 * sizeof *places);
    bool is_claiming = draw(4) == 0, is_quiet = draw(2) == 0;
    struct fleetpost_options options = {.port = &port, .url = "https://fleet.lan:8443", .fleet = "GARDEN01", .id = "PUMP000001",
        .secret = is_claiming ? NULL : "FOS-P1MJOJV826VEFJ0ZXYJ2DBRP3AXLZ39B", .claim = is_claiming ? "FPC-1" : NULL,
        .buffer = buffer, .buffer_bytes = buffer_bytes, .places = places, .places_max = 8, .queue_bytes_max = 200,
        .start_delay_seconds = -1, .is_polling = draw(3) == 0, .on_status = on_status};
    if (fleetpost_start(device, &options) == FLEETPOST_OK) {
      fleetpost_on_mail(device, on_mail, device);
      for (int step = 0; step < 600; step++) {
        if (draw(is_quiet ? 200 : 8) == 0 && fleetpost_datapoint(device, "reading", "{\"pressure\":2.4}", 0) == FLEETPOST_OK) {
          REQUIRE(device->queue.entries <= 8 && device->queue.bytes <= 200);
        }
        if (draw(99) == 0) fleetpost_heartbeat(device);
        if (draw(is_quiet ? 300 : 20) == 0) (void)fleetpost_message(device, "note", NULL, 0);
        int32_t wait_ms = fleetpost_step(device);
        REQUIRE(wait_ms >= 0 && wait_ms <= 60000);
        world.now_ms += wait_ms > 0 ? (int32_t)draw((uint32_t)wait_ms + 1) : 0;
      }
      fleetpost_close(device);
    }
    free(places);
    free(buffer);
    free(device);
  }
}

int main(int count, char **args) {
  long rounds = count > 1 ? atol(args[1]) : 1000;
  seed = count > 2 ? strtoull(args[2], NULL, 10) : 1;
  check_pieces();
  check_names();
  check_mutations(rounds);
  check_device(rounds / 100);
  printf("%ld mutations, %ld devices\n", rounds, rounds / 100);
  return 0;
}
