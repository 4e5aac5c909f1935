/** The port for POSIX with OpenSSL 1.1.1 or newer. */
#include <openssl/err.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "posix.h"

/** 2026-01-01: a clock before it is that of a device without one, and says nothing of a certificate's dates. */
#define RELEASED 1767225600

/** One for the process: a device has one server. */
static struct tls {
  struct fleetpost_posix posix;  // First, so that what is a `struct tls` to this file is one of these to posix.c.
  struct fleetpost_port port;
  struct fleetpost_trust trust;
  SSL_CTX *context;
  SSL *sessions[2];
  /** What the last connection left behind: to resume it takes no certificates and no signatures. */
  SSL_SESSION *last;
  int failure;
} tls;

/** Keeps a copy of a session, or none: OpenSSL spoils that of a connection which ends without a farewell. */
static int keep_last(SSL *session, SSL_SESSION *last) {
  (void)session;
  SSL_SESSION_free(tls.last);
  tls.last = last == NULL ? NULL : SSL_SESSION_dup(last);
  return 0;
}

static bool offer_last(SSL *session) {
  SSL_SESSION *offered = tls.last == NULL ? NULL : SSL_SESSION_dup(tls.last);
  bool is_set = offered == NULL || SSL_set_session(session, offered) == 1;
  SSL_SESSION_free(offered);
  return is_set;
}

static bool is_pinned(X509 *certificate) {
  unsigned char digest[SHA256_DIGEST_LENGTH], *key = NULL;
  int size = certificate == NULL ? -1 : i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &key);
  if (size <= 0) return false;
  SHA256(key, (size_t)size, digest);
  OPENSSL_free(key);
  return fleetpost_posix_is_pinned(&tls.trust, digest);
}

/** Replaces OpenSSL's own verification: by authorities, by pins, or by both. With none of them nothing is trusted. */
static int verify(X509_STORE_CTX *store, void *unused) {
  bool has_pins = tls.trust.pins[0] != NULL || tls.trust.pins[1] != NULL;
  (void)unused;
  if (time(NULL) < RELEASED) X509_STORE_CTX_set_flags(store, X509_V_FLAG_NO_CHECK_TIME);
  tls.failure = FLEETPOST_UNTRUSTED;
  if ((tls.trust.ca != NULL || !has_pins) && X509_verify_cert(store) != 1) return 0;
  tls.failure = FLEETPOST_NOT_PINNED;
  if (has_pins && !is_pinned(X509_STORE_CTX_get0_cert(store))) {
    X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION);
    return 0;
  }
  X509_STORE_CTX_set_error(store, X509_V_OK);
  return 1;
}

/** Result of a call of OpenSSL that did nothing: 0 where it is to be called again. */
static int outcome(enum fleetpost_channel channel, int result, int failure) {
  int error = SSL_get_error(tls.sessions[channel], result);
  ERR_clear_error();
  tls.posix.wants_write[channel] = error == SSL_ERROR_WANT_WRITE;
  return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? 0 : failure;
}

static void close_channel(void *context, enum fleetpost_channel channel) {
  (void)context;
  SSL_free(tls.sessions[channel]);
  tls.sessions[channel] = NULL;
  fleetpost_posix_disconnect(&tls.posix, channel);
}

/** The certificate has to be for this host, be it a name or an address. */
static bool begin_session(enum fleetpost_channel channel) {
  SSL *session = tls.sessions[channel] = SSL_new(tls.context);
  if (session == NULL || SSL_set_fd(session, tls.posix.sockets[channel]) != 1 || !offer_last(session)) return false;
  X509_VERIFY_PARAM *parameters = SSL_get0_param(session);
  if (X509_VERIFY_PARAM_set1_ip_asc(parameters, tls.posix.host) == 1) return true;
  ERR_clear_error();
  return SSL_set_tlsext_host_name(session, tls.posix.host) == 1 && SSL_set1_host(session, tls.posix.host) == 1;
}

static int open_channel(void *context, enum fleetpost_channel channel) {
  int result = fleetpost_posix_connect(&tls.posix, channel);
  (void)context;
  if (result <= 0) return result;
  if (tls.sessions[channel] == NULL && !begin_session(channel)) return FLEETPOST_UNREACHABLE;
  tls.failure = FLEETPOST_CLOSED;
  result = SSL_connect(tls.sessions[channel]);
  if (result == 1) return 1;
  result = outcome(channel, result, tls.failure);
  if (result < 0) keep_last(NULL, NULL);
  return result;
}

static long read_channel(void *context, enum fleetpost_channel channel, void *bytes, size_t size) {
  int result = SSL_read(tls.sessions[channel], bytes, (int)size);
  (void)context;
  return result > 0 ? result : outcome(channel, result, FLEETPOST_CLOSED);
}

static long write_channel(void *context, enum fleetpost_channel channel, const void *bytes, size_t size) {
  int result = SSL_write(tls.sessions[channel], bytes, (int)size);
  (void)context;
  return result > 0 ? result : outcome(channel, result, FLEETPOST_CLOSED);
}

static int random_bytes(void *context, void *bytes, size_t size) {
  (void)context;
  return RAND_bytes(bytes, (int)size) == 1 ? FLEETPOST_OK : FLEETPOST_RANDOM_FAILED;
}

struct fleetpost_port *fleetpost_posix_port(const char *url, const char *folder, const struct fleetpost_trust *trust) {
  if (fleetpost_posix_begin(&tls.posix, url, folder) < 0) return NULL;
  signal(SIGPIPE, SIG_IGN);  // OpenSSL writes to a socket whose other end may be gone.
  tls.trust = *trust;
  tls.context = SSL_CTX_new(TLS_client_method());
  if (tls.context == NULL || SSL_CTX_set_min_proto_version(tls.context, TLS1_2_VERSION) != 1) return NULL;
  bool has_pins = trust->pins[0] != NULL || trust->pins[1] != NULL;
  if (trust->ca != NULL && SSL_CTX_load_verify_locations(tls.context, trust->ca, NULL) != 1) return NULL;
  if (trust->ca == NULL && !has_pins && SSL_CTX_set_default_verify_paths(tls.context) != 1) return NULL;
  SSL_CTX_set_verify(tls.context, SSL_VERIFY_PEER, NULL);
  SSL_CTX_set_cert_verify_callback(tls.context, verify, NULL);
  SSL_CTX_set_session_cache_mode(tls.context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_sess_set_new_cb(tls.context, keep_last);
  SSL_CTX_set_mode(tls.context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  tls.port = (struct fleetpost_port){&tls.posix,    open_channel, close_channel,       read_channel, write_channel, fleetpost_posix_time,
                                     random_bytes, fleetpost_posix_store};
  return &tls.port;
}

void fleetpost_posix_end(struct fleetpost_port *port) {
  for (int channel = 0; channel < 2; channel++) port->close(port->context, (enum fleetpost_channel)channel);
  keep_last(NULL, NULL);
  SSL_CTX_free(tls.context);
  tls.context = NULL;
  fleetpost_posix_release(&tls.posix);
}
