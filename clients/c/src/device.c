/** Decides what is done next, and what an answer means. */
#include "device.h"

#include <string.h>

#include "queue.h"

#define STEP_MS_MAX 60000
/** A server that has no POST /v1/sync is asked for it again after so long: it may be a newer one then. */
#define SYNC_AGAIN_MS 3600000

static bool are_options_valid(const struct fleetpost_options *options) {
  const struct fleetpost_port *port = options->port;
  if (port == NULL || options->url == NULL || strncmp(options->url, "https://", 8) != 0) return false;
  if (port->open == NULL || port->close == NULL || port->read == NULL || port->write == NULL) return false;
  if (port->time == NULL || port->random == NULL || port->store == NULL) return false;
  if (!fleetpost_text_fits(options->url + 8, 1, 255, ".-_:[]")) return false;
  if (!fleetpost_text_fits(options->fleet, 8, 8, "") || !fleetpost_text_fits(options->id, 10, 10, "")) return false;
  if (options->secret == NULL && !fleetpost_text_fits(options->claim, 1, 64, "_-")) return false;
  if (options->secret != NULL && !fleetpost_text_fits(options->secret, 36, 36, "-")) return false;
  if (options->buffer == NULL || options->buffer_bytes < FLEETPOST_HEAD_BYTES + FLEETPOST_BODY_BYTES_MIN) return false;
  return options->places != NULL && options->places_max >= 2 && options->places_max <= FLEETPOST_PLACES_MAX;
}

/** A device with a claim token has its secret from the store: of 36 characters when chosen, 37 when the server has it. */
static int load_secret(struct fleetpost_device *device) {
  char bytes[37];
  if (device->options.secret != NULL) {
    memcpy(device->secret, device->options.secret, 36);
    device->is_claimed = true;
    return FLEETPOST_OK;
  }
  long size = fleetpost_store(device, FLEETPOST_LOAD, FLEETPOST_SLOT_SECRET, bytes, sizeof bytes);
  if (size < 0) return (int)size;
  if (size < 36) return FLEETPOST_OK;
  memcpy(device->secret, bytes, 36);
  device->is_claimed = size == 37;
  return FLEETPOST_OK;
}

int fleetpost_start(struct fleetpost_device *device, const struct fleetpost_options *options) {
  if (!are_options_valid(options)) return FLEETPOST_INVALID_OPTION;
  memset(device, 0, sizeof *device);
  device->options = *options;
  memset(options->places, 0, options->places_max * sizeof *options->places);
  if (device->options.heartbeat_seconds == 0) device->options.heartbeat_seconds = 60;
  device->timing = (struct fleetpost_timing){60000, 300000, 600000, 30000, 300000};
  device->requests.channel = FLEETPOST_REQUESTS;
  device->stream.channel = FLEETPOST_EVENTS;
  device->mailbox = -1;
  fleetpost_events_begin(&device->events);
  device->poll_ms = device->timing.poll_ms_min;
  device->look_at_ms = options->is_polling ? 0 : INT64_MAX;
  int result = load_secret(device);
  if (result == FLEETPOST_OK) result = fleetpost_queue_load(device);
  if (result == FLEETPOST_OK) result = fleetpost_mail_load(device);
  int64_t now_ms = fleetpost_steady_ms(device);
  int32_t delay_ms = options->start_delay_seconds == 0 ? 10000 : options->start_delay_seconds > 0 ? 1000 * options->start_delay_seconds : 0;
  device->wait_until_ms = device->stream_at_ms = now_ms + fleetpost_backoff_ms(device, 16, delay_ms);
  device->last_ms = now_ms - INT64_C(1000) * device->options.heartbeat_seconds;
  memcpy(device->reason, "Not connected yet.", sizeof "Not connected yet.");
  return result;
}

void fleetpost_close(struct fleetpost_device *device) {
  fleetpost_exchange_close(device, &device->requests);
  fleetpost_exchange_close(device, &device->stream);
}

struct fleetpost_status fleetpost_status(const struct fleetpost_device *device) {
  const struct fleetpost_queue *queue = &device->queue;
  return (struct fleetpost_status){device->is_connected,
                                   device->reason,
                                   queue->entries,
                                   queue->bytes,
                                   queue->counts[FLEETPOST_DROPPED],
                                   queue->counts[FLEETPOST_REFUSED],
                                   queue->counts[FLEETPOST_DOUBTFUL],
                                   device->mailbox};
}

static int add(struct fleetpost_device *device, bool is_message, const char *name, const char *json, int64_t at_ms) {
  size_t bytes = strlen(json), bytes_max = device->options.buffer_bytes - FLEETPOST_HEAD_BYTES;
  struct fleetpost_entry entry = {0};
  if (!fleetpost_text_fits(name, 1, 255, "_-")) return FLEETPOST_INVALID_NAME;
  if (bytes < 2 || bytes > FLEETPOST_BODY_BYTES_MAX || bytes > bytes_max) return FLEETPOST_INVALID_PAYLOAD;
  if (device->options.queue_bytes_max > 0 && bytes > device->options.queue_bytes_max) return FLEETPOST_INVALID_PAYLOAD;
  memcpy(entry.name, name, strlen(name) + 1);
  entry.body_bytes = (uint32_t)bytes;
  entry.is_message = is_message;
  entry.at_ms = at_ms != 0 ? at_ms : fleetpost_now_ms(device);
  device->sleep = FLEETPOST_AWAKE;
  uint32_t dropped = device->queue.counts[FLEETPOST_DROPPED];
  int result = fleetpost_queue_add(device, &entry, json);
  if (dropped != device->queue.counts[FLEETPOST_DROPPED]) {
    fleetpost_say(device, device->is_connected, "The queue is full: the oldest entries were dropped.", "");
  }
  return result;
}

int fleetpost_datapoint(struct fleetpost_device *device, const char *name, const char *json, int64_t at_ms) {
  return json == NULL ? FLEETPOST_INVALID_PAYLOAD : add(device, false, name, json, at_ms);
}

int fleetpost_message(struct fleetpost_device *device, const char *name, const char *json, int64_t at_ms) {
  return add(device, true, name, json == NULL ? "{}" : json, at_ms);
}

void fleetpost_heartbeat(struct fleetpost_device *device) {
  device->sleep = FLEETPOST_AWAKE;
  device->is_heartbeat_asked = true;
}

void fleetpost_on_mail(struct fleetpost_device *device, fleetpost_mail_handler *handler, void *context) {
  device->on_mail = handler;
  device->mail_context = context;
}

/** Mail may be fetched: there may be some, and not all of it was put off. */
static bool may_fetch(const struct fleetpost_device *device, int64_t now_ms) {
  return device->on_mail != NULL && device->is_mail_wanted && now_ms >= device->mail_at_ms;
}

bool fleetpost_sleep(struct fleetpost_device *device) {
  if (device->sleep == FLEETPOST_AWAKE && device->on_mail != NULL) device->is_mail_wanted = true;
  if (device->sleep == FLEETPOST_AWAKE) device->sleep = FLEETPOST_DROWSY;
  bool is_sending = device->queue.entries > 0 || device->is_heartbeat_asked || device->requests.phase != FLEETPOST_IDLE;
  if (is_sending || device->has_mail || !device->is_claimed || may_fetch(device, fleetpost_steady_ms(device))) return false;
  device->sleep = FLEETPOST_ASLEEP;
  fleetpost_close(device);
  return true;
}

/** The times of what waits go by the server's clock: that is asked for before the oldest entry is sent. */
static bool needs_clock(struct fleetpost_device *device) {
  if (device->is_clock_heard || fleetpost_queue_read(device, device->place, &device->entry) != FLEETPOST_OK) return false;
  return fleetpost_needs_clock(device, &device->entry);
}

static int64_t heartbeat_at_ms(const struct fleetpost_device *device) {
  if (device->is_heartbeat_asked) return 0;
  int32_t seconds = device->options.heartbeat_seconds;
  return seconds < 0 ? INT64_MAX : device->last_ms + INT64_C(1000) * seconds;
}

/** The mailbox is to be looked at without a reason: nothing would tell of mail. */
static bool is_look_due(const struct fleetpost_device *device, int64_t now_ms) {
  return device->on_mail != NULL && now_ms >= device->look_at_ms && device->sleep != FLEETPOST_ASLEEP;
}

static enum fleetpost_job choose_sync(struct fleetpost_device *device, int64_t now_ms) {
  bool has_entry = device->place != FLEETPOST_NO_PLACE;
  if (has_entry && needs_clock(device)) return FLEETPOST_JOB_HEARTBEAT;
  if (device->is_mail_large && !device->has_mail && may_fetch(device, now_ms)) return FLEETPOST_JOB_FETCH;
  if (has_entry || device->has_mail || may_fetch(device, now_ms) || is_look_due(device, now_ms)) return FLEETPOST_JOB_SYNC;
  bool is_beat_due = device->sleep != FLEETPOST_ASLEEP && now_ms >= heartbeat_at_ms(device);
  return is_beat_due ? FLEETPOST_JOB_HEARTBEAT : FLEETPOST_JOB_NONE;
}

static enum fleetpost_job choose(struct fleetpost_device *device, int64_t now_ms) {
  if (!device->is_claimed) return FLEETPOST_JOB_CLAIM;
  device->place = fleetpost_queue_head(device);
  if (now_ms >= device->sync_again_at_ms) return choose_sync(device, now_ms);
  if (device->has_mail) return FLEETPOST_JOB_SETTLE;
  // In turns, so that neither a full queue nor a full mailbox holds up the other.
  if (may_fetch(device, now_ms) && (device->is_mail_turn || device->place == FLEETPOST_NO_PLACE)) return FLEETPOST_JOB_FETCH;
  if (device->place != FLEETPOST_NO_PLACE) return needs_clock(device) ? FLEETPOST_JOB_HEARTBEAT : FLEETPOST_JOB_SEND;
  if (device->sleep == FLEETPOST_ASLEEP) return FLEETPOST_JOB_NONE;
  if (now_ms >= heartbeat_at_ms(device)) return FLEETPOST_JOB_HEARTBEAT;
  return is_look_due(device, now_ms) ? FLEETPOST_JOB_LOOK : FLEETPOST_JOB_NONE;
}

/** Takes from any answer what it says beside its body. */
static void hear(struct fleetpost_device *device, const struct fleetpost_answer *answer) {
  if (answer->date_ms > 0) fleetpost_hear_date(device, answer->date_ms);
  if (answer->mailbox_size >= 0) device->mailbox = answer->mailbox_size;
  if (answer->status < 300 && !device->is_connected) fleetpost_say(device, true, "Connected.", "");
}

/** An entry leaves the queue; a negative result when the store fails, and it stays. */
static int leave(struct fleetpost_device *device, int count) {
  int result = count < 0 ? FLEETPOST_OK : fleetpost_queue_count(device, (enum fleetpost_count)count, 1);
  return result < 0 ? result : fleetpost_queue_remove(device, device->place);
}

bool fleetpost_is_final(int status) {
  return status >= 400 && status < 500 && status != 401 && status != 403 && status != 408 && status != 425 && status != 429;
}

/** Any answer says whether there is mail (D28). Not with an event stream: that may have told of mail since. */
static void hear_of_mail(struct fleetpost_device *device, const struct fleetpost_answer *answer) {
  if (device->options.is_polling && answer->mailbox_size >= 0) device->is_mail_wanted = device->on_mail != NULL && answer->mailbox_size > 0;
}

static int finish_send(struct fleetpost_device *device, int status) {
  struct fleetpost_key key = device->queue.key;
  if (status == 201) {
    device->is_mail_turn = true;
    hear_of_mail(device, &device->requests.answer);
    return leave(device, -1);
  }
  if (status == 400 && fleetpost_answer_has_code(device, "invalid_idempotency_key")) {
    key.number = 0;  // The clock was wrong. Nothing was stored, so another key is safe.
    (void)fleetpost_queue_save_key(device, &key);
  } else if (status == 400 && key.at_ms != 0 && fleetpost_answer_has_code(device, "invalid_recorded_at")) {
    key.at_ms = 0;
    (void)fleetpost_queue_save_key(device, &key);
  } else if (fleetpost_is_final(status)) {
    int result = leave(device, FLEETPOST_REFUSED);
    fleetpost_say_refused(device, NULL);
    return result;
  }
  return 1;
}

static int finish_claim(struct fleetpost_device *device, int status) {
  char bytes[37];
  if (status != 201) return 1;
  memcpy(bytes, device->secret, 36);
  bytes[36] = '!';  // Its length says that the server has it.
  if (fleetpost_store(device, FLEETPOST_SAVE, FLEETPOST_SLOT_SECRET, bytes, sizeof bytes) < 0) return FLEETPOST_STORE_FAILED;
  device->is_claimed = true;
  return FLEETPOST_OK;
}

/** The mailbox was looked at: the next time is later, if it was empty. */
static void look_later(struct fleetpost_device *device, bool is_empty, int64_t now_ms) {
  int32_t longer = device->poll_ms / 2 * 3, longest = device->timing.poll_ms_max;
  if (device->look_at_ms == INT64_MAX) return;
  device->poll_ms = !is_empty ? device->timing.poll_ms_min : longer < longest ? longer : longest;
  device->look_at_ms = now_ms + device->poll_ms;
}

static int finish_look(struct fleetpost_device *device, int status, int64_t now_ms) {
  if (status != 200 && status != 204) return 1;
  look_later(device, status == 204, now_ms);
  if (status == 200) device->is_mail_wanted = true;
  return FLEETPOST_OK;
}

static int finish_sync(struct fleetpost_device *device, int status, int64_t now_ms) {
  const struct fleetpost_sync *sync = &device->sync;
  bool asked_mail = device->asks_mail;
  if (status == 404) {
    device->sync_again_at_ms = now_ms + SYNC_AGAIN_MS;
    return FLEETPOST_OK;
  }
  // Nothing of it was stored. The route of each entry will say which it is.
  if (fleetpost_is_final(status) && sync->records_count > 0) device->alone_to = sync->first_number + sync->records_count - 1;
  if (status != 200) return 1;
  int result = fleetpost_sync_finish(device);
  if (result < 0) return result;
  device->is_heartbeat_asked = false;
  if (asked_mail) {
    device->is_mail_turn = false;
    look_later(device, !sync->has_mail, now_ms);
  }
  return FLEETPOST_OK;
}

static int finish_heartbeat(struct fleetpost_device *device, const struct fleetpost_answer *answer) {
  if (answer->status != 201) return 1;
  device->is_heartbeat_asked = false;
  if (answer->messages_available) device->is_mail_wanted = true;
  return FLEETPOST_OK;
}

static int finish_fetch(struct fleetpost_device *device, int status) {
  device->is_mail_turn = false;
  if (status != 200 && status != 204) return 1;
  device->asks_mail = false;
  if (status == 204) device->requeues = 0;
  else {
    device->is_mail_wanted = true;
    fleetpost_mail_fetched(device);
  }
  return FLEETPOST_OK;
}

/** 404 and 409: the mail is gone, expired or withdrawn, say. */
static int finish_settle(struct fleetpost_device *device, int status) {
  if (status != 200 && status != 404 && status != 409) return 1;
  fleetpost_mail_settled(device);
  return FLEETPOST_OK;
}

static void finish(struct fleetpost_device *device, int64_t now_ms) {
  const struct fleetpost_answer *answer = &device->requests.answer;
  enum fleetpost_job job = device->job;
  int status = answer->status, result = 1;
  device->job = FLEETPOST_JOB_NONE;
  device->wait_until_ms = 0;
  hear(device, answer);
  if (job == FLEETPOST_JOB_SYNC) result = finish_sync(device, status, now_ms);
  else if (job == FLEETPOST_JOB_SEND) result = finish_send(device, status);
  else if (job == FLEETPOST_JOB_FETCH) result = finish_fetch(device, status);
  else if (job == FLEETPOST_JOB_SETTLE) result = finish_settle(device, status);
  else if (job == FLEETPOST_JOB_HEARTBEAT) result = finish_heartbeat(device, answer);
  else if (job == FLEETPOST_JOB_LOOK) result = finish_look(device, status, now_ms);
  else result = finish_claim(device, status);
  fleetpost_mail_not_asked(device);
  if (result > 0) fleetpost_wait_after_answer(device, job == FLEETPOST_JOB_CLAIM && status < 429 ? 5 : 0);
  else if (result < 0) fleetpost_wait_after(device, result);
  else if (now_ms >= device->wait_until_ms) {
    device->attempt = 0;
    device->last_ms = now_ms;
  }
}

static void begin(struct fleetpost_device *device, enum fleetpost_job job, int64_t now_ms) {
  int result = FLEETPOST_OK;
  // How a mail ended is in the store before the server is told: a crash from here on handles it no second time.
  // A store that is full must not hold up what would empty it.
  bool is_settling = job == FLEETPOST_JOB_SETTLE || (job == FLEETPOST_JOB_SYNC && device->has_mail);
  if (is_settling && !device->is_settled_saved) result = fleetpost_mail_save(device);
  if (result < 0) fleetpost_say(device, device->is_connected, "It could not be noted that a mail was handled: ", fleetpost_describe(result));
  // A device that polls asks each time: that is one request less. What comes to be known from here on is wanted later.
  bool may_ask = device->options.is_polling ? now_ms >= device->mail_at_ms : may_fetch(device, now_ms) || is_look_due(device, now_ms);
  device->asks_mail = job == FLEETPOST_JOB_FETCH || (job == FLEETPOST_JOB_SYNC && device->on_mail != NULL && may_ask);
  if (device->asks_mail) device->is_mail_wanted = device->is_mail_large = false;
  device->job = job;
  fleetpost_exchange_begin(&device->requests, now_ms);
}

static void fail(struct fleetpost_device *device, int result) {
  bool is_sent = device->job == FLEETPOST_JOB_SEND;
  device->job = FLEETPOST_JOB_NONE;
  fleetpost_mail_not_asked(device);
  if (is_sent && result == FLEETPOST_INVALID_PAYLOAD) {  // The store has lost it, or the buffer is smaller than it was.
    result = leave(device, FLEETPOST_DROPPED);
    fleetpost_say(device, device->is_connected, "An entry could not be read from the store, and was dropped.", "");
    if (result == FLEETPOST_OK) return;
  }
  fleetpost_wait_after(device, result);
}

static bool step_requests(struct fleetpost_device *device, int64_t now_ms) {
  struct fleetpost_exchange *requests = &device->requests;
  int result = fleetpost_exchange_step(device, requests, now_ms);
  if (result == 2) finish(device, now_ms);
  else if (result < 0) fail(device, result);
  else if (result == 0 && requests->phase == FLEETPOST_IDLE && now_ms >= device->wait_until_ms) {
    enum fleetpost_job job = choose(device, now_ms);
    if (job == FLEETPOST_JOB_NONE) return false;
    begin(device, job, now_ms);
    return true;
  }
  return result != 0;
}

static int64_t earlier(int64_t one, int64_t other) {
  return one < other ? one : other;
}

/** When something is due that no connection tells of. */
static int64_t due_at_ms(const struct fleetpost_device *device) {
  const struct fleetpost_exchange *requests = &device->requests, *stream = &device->stream;
  bool takes_mail = device->on_mail != NULL;
  int64_t at_ms = stream->phase != FLEETPOST_IDLE ? stream->deadline_ms : INT64_MAX;
  if (device->sleep == FLEETPOST_ASLEEP && device->queue.entries == 0) return INT64_MAX;
  if (takes_mail && stream->phase == FLEETPOST_IDLE && !device->options.is_polling && device->is_claimed) at_ms = device->stream_at_ms;
  if (requests->phase != FLEETPOST_IDLE) return earlier(at_ms, requests->deadline_ms);
  if (requests->is_open) at_ms = earlier(at_ms, requests->used_ms + 7000);
  int64_t next_ms = heartbeat_at_ms(device);
  if (takes_mail) next_ms = earlier(next_ms, device->look_at_ms);
  if (takes_mail && device->is_mail_wanted) next_ms = earlier(next_ms, device->mail_at_ms);
  if (!device->is_claimed || device->has_mail || device->queue.entries > 0) next_ms = 0;
  return earlier(at_ms, next_ms > device->wait_until_ms ? next_ms : device->wait_until_ms);
}

int32_t fleetpost_step(struct fleetpost_device *device) {
  int64_t now_ms = fleetpost_steady_ms(device);
  bool is_busy = fleetpost_stream_step(device, now_ms);
  if (step_requests(device, now_ms) || is_busy) return 0;
  int64_t rest_ms = due_at_ms(device) - fleetpost_steady_ms(device);
  return rest_ms < 0 ? 0 : rest_ms > STEP_MS_MAX ? STEP_MS_MAX : (int32_t)rest_ms;
}
