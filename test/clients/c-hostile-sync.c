/**
 * Holds a device of the C client, and its reader of JSON, against answers to a sync: right ones, cut at every byte, in
 * any pieces, and mutated. Sanitizers end it at the first byte out of place. `c-hostile-sync ROUNDS SEED`.
 */
#include <string.h>

#include "c-hostile.h"
#include "device.h"
#include "queue.h"

static const char *const jsons[] = {
    "{}",
    "[ ]",
    "{\"a\":[1,-0,0.5,1e9,1.5E-3,true,false,null,\"\\u00e9\\n\"],\"b\":{\"c\":{}}}\n",
    "[[[[{\"a\":[{}]}]]]]",
    "{ \"\" : \"\" ,\t\"a\" : 123456789012345678901234567890 }",
};
static const char *const no_jsons[] = {
    "{,}", "[1,]", "{\"a\"}", "{\"a\":1,}", "{\"a\":01}", "[1.]", "[.5]", "[1e]", "[+1]", "[- 1]", "[tru]", "[nulll]", "{1:2}", "[1}",
    "{\"a\":1]", "[\"\\x\"]", "[\"\\u12g4\"]", "[\"\n\"]", "{} {}", "[]]", "]", "[1 2]", "{\"a\" 1}", "['a']", "[\"a\"\"b\"]", "{\"a\":}",
};

static bool is_json(struct fleetpost_json *json, const char *text) {
  fleetpost_json_begin(json);
  for (; *text != '\0'; text++) {
    if (fleetpost_json_take(json, *text) < 0) return false;
  }
  return fleetpost_json_is_done(json);
}

static void check_json(void) {
  struct fleetpost_json json;
  for (size_t one = 0; one < sizeof jsons / sizeof *jsons; one++) {
    REQUIRE(is_json(&json, jsons[one]));
    REQUIRE(fleetpost_json_is_object(&json, jsons[one], strlen(jsons[one])) == (jsons[one][0] == '{'));
  }
  for (size_t one = 0; one < sizeof no_jsons / sizeof *no_jsons; one++) {
    if (is_json(&json, no_jsons[one])) fprintf(stderr, "%s\n", no_jsons[one]);
    REQUIRE(!is_json(&json, no_jsons[one]));
  }
  int depth = 0;
  for (fleetpost_json_begin(&json); fleetpost_json_take(&json, '[') >= 0;) depth++;
  REQUIRE(depth > 131 && depth < FLEETPOST_JSON_DEPTH_MAX);
}

/** A platform that stores, and has no network. */
static struct {
  char slots[64][600];
  size_t slot_bytes[64];
} store;

static int no_open(void *context, enum fleetpost_channel channel) { return (void)context, (void)channel, 0; }
static void no_close(void *context, enum fleetpost_channel channel) { (void)context, (void)channel; }
static long no_read(void *context, enum fleetpost_channel channel, void *bytes, size_t size) {
  return (void)context, (void)channel, (void)bytes, (void)size, 0;
}
static long no_write(void *context, enum fleetpost_channel channel, const void *bytes, size_t size) {
  return (void)context, (void)channel, (void)bytes, (void)size, 0;
}
static int64_t one_time(void *context, enum fleetpost_clock clock) { return (void)context, (void)clock, INT64_C(1795412130000); }
static int drawn(void *context, void *bytes, size_t size) { return (void)context, memset(bytes, (int)draw(256), size), FLEETPOST_OK; }
static long stored(void *context, enum fleetpost_operation operation, uint32_t slot, void *bytes, size_t size) {
  (void)context;
  REQUIRE(slot < 64);
  if (operation == FLEETPOST_LOAD) {
    size_t found = store.slot_bytes[slot] < size ? store.slot_bytes[slot] : size;
    if (found > 0) memcpy(bytes, store.slots[slot], found);
    return (long)found;
  }
  store.slot_bytes[slot] = operation == FLEETPOST_SAVE ? size : 0;
  REQUIRE(store.slot_bytes[slot] <= sizeof store.slots[slot]);
  if (operation == FLEETPOST_SAVE) memcpy(store.slots[slot], bytes, size);
  return FLEETPOST_OK;
}

static const struct fleetpost_port port = {NULL, no_open, no_close, no_read, no_write, one_time, drawn, stored};

/** What became of an answer; two that are the same were read in the same way. */
struct outcome {
  int result;
  struct fleetpost_status status;
  bool has_mail;
  uint32_t mails;
  char payload[600], name[256], request[2048];
  size_t payload_bytes;
};

static enum fleetpost_verb on_mail(void *context, const struct fleetpost_mail *mail) {
  struct outcome *outcome = context;
  REQUIRE(strlen(mail->id) == 36 && mail->payload[mail->payload_bytes] == '\0' && mail->payload_bytes < sizeof outcome->payload);
  outcome->mails++;
  outcome->payload_bytes = mail->payload_bytes;
  memcpy(outcome->payload, mail->payload, mail->payload_bytes + 1);
  strcpy(outcome->name, mail->name);
  return FLEETPOST_ACK;
}

/** Has a device that three entries wait in send a sync, and feeds it an answer in pieces of at most so many bytes. */
static struct outcome answer(const char *bytes, size_t size, size_t piece_max, size_t room) {
  // Of its exact size on the heap, so that ASan sees a byte beyond any of it.
  size_t buffer_bytes = FLEETPOST_HEAD_BYTES + room;
  struct fleetpost_device *device = malloc(sizeof *device);
  char *buffer = malloc(buffer_bytes);
  struct fleetpost_place *places = malloc(8 * sizeof *places);
  struct outcome outcome = {0};
  struct fleetpost_options options = {.port = &port, .url = "https://fleet.lan:8443", .fleet = "GARDEN01", .id = "PUMP000001",
      .secret = "FOS-P1MJOJV826VEFJ0ZXYJ2DBRP3AXLZ39B", .buffer = buffer, .buffer_bytes = buffer_bytes, .places = places,
      .places_max = 8, .start_delay_seconds = -1};
  memset(&store, 0, sizeof store);
  REQUIRE(fleetpost_start(device, &options) == FLEETPOST_OK);
  fleetpost_on_mail(device, on_mail, &outcome);
  REQUIRE(fleetpost_datapoint(device, "reading", "{\"n\":0}", 0) == FLEETPOST_OK);
  REQUIRE(fleetpost_message(device, "note", NULL, 0) == FLEETPOST_OK);
  REQUIRE(fleetpost_datapoint(device, "reading", "{\"n\":2}", 0) == FLEETPOST_OK);
  device->place = fleetpost_queue_head(device);
  device->job = FLEETPOST_JOB_SYNC;
  device->asks_mail = device->is_mail_turn = device->is_connected = true;
  REQUIRE(fleetpost_compose(device) == FLEETPOST_OK && device->job == FLEETPOST_JOB_SYNC && device->requests.request_bytes < buffer_bytes);
  memcpy(outcome.request, buffer, device->requests.request_bytes);
  fleetpost_sync_begin_answer(device);
  device->requests.answer.status = 200;
  device->requests.answer.mailbox_size = 1;
  for (size_t at = 0; at < size;) {
    size_t piece = 1 + draw((uint32_t)piece_max);
    if (piece > size - at) piece = size - at;
    char *copy = malloc(piece);
    memcpy(copy, bytes + at, piece);
    fleetpost_sync_feed(device, copy, piece);
    free(copy);
    at += piece;
  }
  outcome.result = fleetpost_sync_finish(device);
  outcome.has_mail = device->has_mail;
  outcome.status = fleetpost_status(device);
  outcome.status.reason = NULL;
  free(places);
  free(buffer);
  free(device);
  return outcome;
}

/** What would spoil a sync, or has no room in it, goes by its own route, and what waits behind it by a sync. */
static void check_alone(void) {
  static const char *const bodies[] = {"{\"n\":1", "{\"n\":1},\"recorded_at\":\"\"", "[{\"n\":1}]", "{\"n\":0x1}"};
  static char buffer[FLEETPOST_HEAD_BYTES + 400], large[400];
  memset(large, ' ', sizeof large - 1);
  memcpy(large, "{}", 2);
  for (size_t one = 0; one <= sizeof bodies / sizeof *bodies; one++) {
    struct fleetpost_place places[8];
    struct fleetpost_device device;
    struct fleetpost_options options = {.port = &port, .url = "https://fleet.lan:8443", .fleet = "GARDEN01", .id = "PUMP000001",
        .secret = "FOS-P1MJOJV826VEFJ0ZXYJ2DBRP3AXLZ39B", .buffer = buffer, .buffer_bytes = sizeof buffer, .places = places,
        .places_max = 8, .start_delay_seconds = -1};
    memset(&store, 0, sizeof store);
    REQUIRE(fleetpost_start(&device, &options) == FLEETPOST_OK);
    REQUIRE(fleetpost_datapoint(&device, "reading", "{\"n\":0}", 0) == FLEETPOST_OK);
    REQUIRE(fleetpost_datapoint(&device, "reading", one == 0 ? large : bodies[one - 1], 0) == FLEETPOST_OK);
    REQUIRE(fleetpost_datapoint(&device, "reading", "{\"n\":2}", 0) == FLEETPOST_OK);
    for (int request = 0; request < 3; request++) {
      device.place = fleetpost_queue_head(&device);
      device.job = FLEETPOST_JOB_SYNC;
      REQUIRE(fleetpost_compose(&device) == FLEETPOST_OK);
      REQUIRE(device.job == (request == 1 ? FLEETPOST_JOB_SEND : FLEETPOST_JOB_SYNC));
      REQUIRE(device.job == FLEETPOST_JOB_SEND || device.sync.records_count == 1);
      REQUIRE(fleetpost_queue_remove(&device, device.place) == FLEETPOST_OK);
    }
  }
}

#define PAYLOAD " {\"b\":123456789012345678901234567890, \"a\":1.50e+1,\"a\":[{},\"\\u0041\\\\\"]} "
#define MAIL "{\"id\":\"01a2062d-d47d-7795-86a4-c19900000001\",\"name\":\"water\",\"payload\":" PAYLOAD ",\"requeue_count\":0}"
#define REFUSED "{\"status\":400,\"error\":\"schema_mismatch\",\"msg\":\"It does not \\\"fit\\\".\",\"errors\":[{\"path\":\"/a\",\"status\":201}]}"

static const char right[] = "{\"records\":[{\"status\":201}," REFUSED ",{\"status\":201}],\"settled\":[],\"stored_to\":3,\"skipped\":0,"
                            "\"mailbox_size\":1,\"mail\":[" MAIL "],\"time\":1795399994120}";

static void check_right(void) {
  struct outcome outcome = answer(right, sizeof right - 1, 1000, 600);
  REQUIRE(outcome.result == FLEETPOST_OK && outcome.status.queued == 0 && outcome.status.refused == 1);
  REQUIRE(outcome.mails == 1 && strcmp(outcome.payload, PAYLOAD) == 0 && strcmp(outcome.name, "water") == 0);
  const char *body = strstr(outcome.request, "\r\n\r\n{\"mail\":{\"max\":1,\"bytes\":1623},\"queue\":\"");
  REQUIRE(body != NULL && strstr(body, "\",\"seq\":1,\"records\":[{\"kind\":\"datapoint\",\"schema\":\"reading\",\"payload\":{\"n\":0}},{\"kind\":\"message\","
                                       "\"schema\":\"note\",\"payload\":{}},{\"kind\":\"datapoint\",\"schema\":\"reading\",\"payload\":{\"n\":2}}]}") != NULL);
  for (size_t size = 0; size < sizeof right - 1; size++) {
    outcome = answer(right, size, 50, 600);
    REQUIRE(outcome.result == FLEETPOST_MALFORMED && outcome.status.queued == 3 && outcome.status.refused == 0 && outcome.mails == 0);
  }
}

/** Answers that are whole, and not as one hopes. */
static void check_others(void) {
  static const char later[] = "{\"records\":[{\"status\":201},{\"status\":503,\"error\":\"unavailable\",\"msg\":\"Later.\"},{\"status\":503}],"
                              "\"settled\":[],\"stored_to\":1,\"mail\":[]}";
  static const char untimed[] = "{\"records\":[{\"status\":400,\"error\":\"invalid_recorded_at\"},{\"status\":201},{\"status\":201}],"
                                "\"settled\":[],\"stored_to\":3,\"mail\":[]}";
  static const char *const malformed[] = {
      "{}", "[]", "null", "{\"records\":[{\"status\":201}],\"settled\":[],\"stored_to\":3,\"mail\":[]}",
      "{\"records\":[{\"status\":201},{\"status\":201},{\"status\":201}],\"settled\":[],\"mail\":[]}",
      "{\"records\":[{\"status\":201},{\"status\":201},{\"status\":201}],\"settled\":[],\"stored_to\":2,\"mail\":[]}",
      "{\"records\":[{\"status\":201},{\"status\":201},{\"status\":[201]}],\"settled\":[],\"stored_to\":3,\"mail\":[]}",
      "{\"records\":[{\"status\":201},{\"status\":201},{\"status\":\"201\"}],\"settled\":[],\"stored_to\":3,\"mail\":[]}",
      "{\"records\":[{\"status\":201},{\"status\":201},{\"status\":201},{\"status\":201}],\"settled\":[],\"stored_to\":3,\"mail\":[]}",
      "{\"records\":{\"a\":{\"status\":201},\"b\":{\"status\":201},\"c\":{\"status\":201}},\"stored_to\":3,\"mail\":[]}",
      "{\"records\":[{\"status\":201},{\"status\":201},{\"status\":201}],\"stored_to\":3,\"mail\":[1]}",
      "{\"records\":[{\"status\":201},{\"status\":201},{\"status\":201}],\"stored_to\":3,\"mail\":[" MAIL "," MAIL "]}",
  };
  struct outcome outcome = answer(later, sizeof later - 1, 9, 600);
  REQUIRE(outcome.result == FLEETPOST_OK && outcome.status.queued == 2 && outcome.status.refused == 0);
  outcome = answer(untimed, sizeof untimed - 1, 9, 600);
  REQUIRE(outcome.result == FLEETPOST_OK && outcome.status.queued == 1 && outcome.status.refused == 0);
  for (size_t one = 0; one < sizeof malformed / sizeof *malformed; one++) {
    outcome = answer(malformed[one], strlen(malformed[one]), 9, 600);
    if (outcome.result != FLEETPOST_MALFORMED || outcome.mails > 0 || outcome.status.queued != 3) fprintf(stderr, "%s\n", malformed[one]);
    REQUIRE(outcome.result == FLEETPOST_MALFORMED && outcome.mails == 0 && outcome.status.queued == 3);
  }
}

static void check_mutations(long rounds) {
  for (; rounds > 0; rounds--) {
    char bytes[sizeof right + 64];
    size_t size = 0, from = 0, end = sizeof right - 1, changes = 1 + draw(4);
    while (from < end && size < sizeof bytes - 2) {
      bool is_changed = draw((uint32_t)end) < changes;
      uint32_t how = is_changed ? draw(4) : 4;
      if (how == 0) bytes[size++] = (char)draw(256), from++;
      else if (how == 1) bytes[size++] = "{}[]\",:\\0e"[draw(10)], from++;
      else if (how == 2) from += draw(20);
      else if (how == 3) from -= draw(20) < from ? from < 20 ? from : 20 : 0, bytes[size++] = right[from];
      else bytes[size++] = right[from++];
    }
    uint64_t before = seed;
    struct outcome whole = answer(bytes, size, 100000, 600), pieces;
    seed = before;
    pieces = answer(bytes, size, 9, 600);
    REQUIRE(whole.result == pieces.result && memcmp(&whole.status, &pieces.status, sizeof whole.status) == 0);
    REQUIRE(whole.mails == pieces.mails && whole.has_mail == pieces.has_mail && strcmp(whole.payload, pieces.payload) == 0);
    (void)answer(bytes, size, 30, FLEETPOST_BODY_BYTES_MIN + draw(60));
  }
}

int main(int count, char **args) {
  long rounds = count > 1 ? atol(args[1]) : 1000;
  seed = count > 2 ? strtoull(args[2], NULL, 10) : 1;
  check_json();
  check_right();
  check_others();
  check_alone();
  check_mutations(rounds);
  printf("%ld mutations\n", rounds);
  return 0;
}
