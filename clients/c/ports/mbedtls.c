/** The port for POSIX with Mbed TLS 2.28 or 3, by TLS 1.2: what 2.28 has, and 3 without PSA. */
#include <mbedtls/ctr_drbg.h>
#include <mbedtls/entropy.h>
#include <mbedtls/md.h>
#include <mbedtls/net_sockets.h>
#include <mbedtls/ssl.h>
#include <signal.h>
#include <time.h>

#include "posix.h"

/** 2026-01-01: a clock before it is that of a device without one, and says nothing of a certificate's dates. */
#define RELEASED 1767225600
/** The system's authorities, where Debian and others have them. */
#define SYSTEM_AUTHORITIES "/etc/ssl/certs/ca-certificates.crt"

/** One for the process: a device has one server. */
static struct tls {
  struct fleetpost_posix posix;  // First, so that what is a `struct tls` to this file is one of these to posix.c.
  struct fleetpost_port port;
  struct fleetpost_trust trust;
  mbedtls_entropy_context entropy;
  mbedtls_ctr_drbg_context random;
  mbedtls_x509_crt authorities;
  mbedtls_ssl_config config;
  mbedtls_ssl_context sessions[2];
  bool has_session[2];
  /** What the last connection left behind: to resume it takes no certificates and no signatures. */
  mbedtls_ssl_session last;
  bool has_last;
  int failure;
} tls;

/** True if the certificate names the host by its address, which Mbed TLS before 3.5 does not look at. */
static bool names_address(const mbedtls_x509_crt *certificate) {
  for (const mbedtls_x509_sequence *name = &certificate->subject_alt_names; name != NULL; name = name->next) {
    if (name->buf.tag == (MBEDTLS_ASN1_CONTEXT_SPECIFIC | 7) && fleetpost_posix_has_address(&tls.posix, name->buf.p, name->buf.len)) return true;
  }
  return false;
}

/** Is asked for each certificate of the chain, that of the server (depth 0) last: by authorities, by pins, or by both. */
static int verify(void *unused, mbedtls_x509_crt *certificate, int depth, uint32_t *flags) {
  bool has_pins = tls.trust.pins[0] != NULL || tls.trust.pins[1] != NULL;
  unsigned char digest[32];
  (void)unused;
  if (time(NULL) < RELEASED) *flags &= ~(uint32_t)(MBEDTLS_X509_BADCERT_EXPIRED | MBEDTLS_X509_BADCERT_FUTURE);
  if (depth == 0 && names_address(certificate)) *flags &= ~(uint32_t)MBEDTLS_X509_BADCERT_CN_MISMATCH;
  if (has_pins && tls.trust.ca == NULL) *flags = 0;  // The pinned keys are what is trusted; a name or a date proves nothing more.
  if (*flags != 0) tls.failure = FLEETPOST_UNTRUSTED;
  if (!has_pins || depth != 0 || *flags != 0) return 0;
  bool is_hashed = mbedtls_md(mbedtls_md_info_from_type(MBEDTLS_MD_SHA256), certificate->pk_raw.p, certificate->pk_raw.len, digest) == 0;
  if (is_hashed && fleetpost_posix_is_pinned(&tls.trust, digest)) return 0;
  tls.failure = FLEETPOST_NOT_PINNED;
  *flags = MBEDTLS_X509_BADCERT_OTHER;
  return 0;
}

/** Result of a call of Mbed TLS that did nothing: 0 where it is to be called again. */
static int outcome(enum fleetpost_channel channel, int result, int failure) {
  tls.posix.wants_write[channel] = result == MBEDTLS_ERR_SSL_WANT_WRITE;
  return result == MBEDTLS_ERR_SSL_WANT_READ || result == MBEDTLS_ERR_SSL_WANT_WRITE ? 0 : failure;
}

static void forget_last(void) {
  mbedtls_ssl_session_free(&tls.last);
  tls.has_last = false;
}

static void close_channel(void *context, enum fleetpost_channel channel) {
  (void)context;
  if (tls.has_session[channel]) mbedtls_ssl_free(&tls.sessions[channel]);
  tls.has_session[channel] = false;
  fleetpost_posix_disconnect(&tls.posix, channel);
}

static bool begin_session(enum fleetpost_channel channel) {
  mbedtls_ssl_context *session = &tls.sessions[channel];
  mbedtls_ssl_init(session);
  tls.has_session[channel] = true;
  if (mbedtls_ssl_setup(session, &tls.config) != 0 || mbedtls_ssl_set_hostname(session, tls.posix.host) != 0) return false;
  // A `mbedtls_net_context` is a struct of nothing but the number of a socket.
  mbedtls_ssl_set_bio(session, &tls.posix.sockets[channel], mbedtls_net_send, mbedtls_net_recv, NULL);
  return !tls.has_last || mbedtls_ssl_set_session(session, &tls.last) == 0;
}

static int open_channel(void *context, enum fleetpost_channel channel) {
  int result = fleetpost_posix_connect(&tls.posix, channel);
  (void)context;
  if (result <= 0) return result;
  if (!tls.has_session[channel] && !begin_session(channel)) return FLEETPOST_UNREACHABLE;
  tls.failure = FLEETPOST_CLOSED;
  result = mbedtls_ssl_handshake(&tls.sessions[channel]);
  result = result == 0 ? 1 : outcome(channel, result, tls.failure);
  if (result != 0) forget_last();
  if (result > 0) tls.has_last = mbedtls_ssl_get_session(&tls.sessions[channel], &tls.last) == 0;
  return result;
}

static long read_channel(void *context, enum fleetpost_channel channel, void *bytes, size_t size) {
  int result = mbedtls_ssl_read(&tls.sessions[channel], bytes, size);
  (void)context;
  return result > 0 ? result : outcome(channel, result, FLEETPOST_CLOSED);
}

static long write_channel(void *context, enum fleetpost_channel channel, const void *bytes, size_t size) {
  int result = mbedtls_ssl_write(&tls.sessions[channel], bytes, size);
  (void)context;
  return result > 0 ? result : outcome(channel, result, FLEETPOST_CLOSED);
}

static int random_bytes(void *context, void *bytes, size_t size) {
  (void)context;
  return mbedtls_ctr_drbg_random(&tls.random, bytes, size) == 0 ? FLEETPOST_OK : FLEETPOST_RANDOM_FAILED;
}

struct fleetpost_port *fleetpost_posix_port(const char *url, const char *folder, const struct fleetpost_trust *trust) {
  bool has_pins = trust->pins[0] != NULL || trust->pins[1] != NULL;
  const char *authorities = trust->ca != NULL || has_pins ? trust->ca : SYSTEM_AUTHORITIES;
  if (fleetpost_posix_begin(&tls.posix, url, folder) < 0) return NULL;
  signal(SIGPIPE, SIG_IGN);  // Mbed TLS writes to a socket whose other end may be gone.
  tls.trust = *trust;
  mbedtls_entropy_init(&tls.entropy);
  mbedtls_ctr_drbg_init(&tls.random);
  mbedtls_x509_crt_init(&tls.authorities);
  mbedtls_ssl_config_init(&tls.config);
  if (mbedtls_ctr_drbg_seed(&tls.random, mbedtls_entropy_func, &tls.entropy, NULL, 0) != 0) return NULL;
  // A positive result is how many authorities could not be read, of a file of the system that has many.
  if (authorities != NULL && mbedtls_x509_crt_parse_file(&tls.authorities, authorities) < 0) return NULL;
  if (mbedtls_ssl_config_defaults(&tls.config, MBEDTLS_SSL_IS_CLIENT, MBEDTLS_SSL_TRANSPORT_STREAM, MBEDTLS_SSL_PRESET_DEFAULT) != 0) return NULL;
  mbedtls_ssl_conf_min_version(&tls.config, MBEDTLS_SSL_MAJOR_VERSION_3, MBEDTLS_SSL_MINOR_VERSION_3);
  mbedtls_ssl_conf_max_version(&tls.config, MBEDTLS_SSL_MAJOR_VERSION_3, MBEDTLS_SSL_MINOR_VERSION_3);  // TLS 1.2
  mbedtls_ssl_conf_authmode(&tls.config, MBEDTLS_SSL_VERIFY_REQUIRED);
  mbedtls_ssl_conf_ca_chain(&tls.config, &tls.authorities, NULL);
  mbedtls_ssl_conf_verify(&tls.config, verify, NULL);
  mbedtls_ssl_conf_rng(&tls.config, mbedtls_ctr_drbg_random, &tls.random);
  tls.port = (struct fleetpost_port){&tls.posix,    open_channel, close_channel,       read_channel, write_channel, fleetpost_posix_time,
                                     random_bytes, fleetpost_posix_store};
  return &tls.port;
}

void fleetpost_posix_end(struct fleetpost_port *port) {
  for (int channel = 0; channel < 2; channel++) port->close(port->context, (enum fleetpost_channel)channel);
  forget_last();
  mbedtls_ssl_config_free(&tls.config);
  mbedtls_x509_crt_free(&tls.authorities);
  mbedtls_ctr_drbg_free(&tls.random);
  mbedtls_entropy_free(&tls.entropy);
  fleetpost_posix_release(&tls.posix);
}
