"""A device of a Fleetpost server: datapoints, messages, heartbeats and a mailbox, over HTTPS.

Python 3.9 or newer, standard library only. This file is the whole client: install the package or copy it.

    from fleetpost import Device

    device = Device("https://fleet.lan:8443", "GARDEN01", "PUMP000001", "FOS-...", ca="ca.pem", queue="pump.db")
    device.on_mail(lambda mail: print(mail.name, mail.payload))
    device.datapoint("reading", {"pressure": 2.4})

What is sent waits in a queue on disk until the server has answered that it is stored. Mail is handled one at a time;
the handler acknowledges it by returning, rejects it by returning REJECT or raising, puts it off by returning REQUEUE.
"""

import base64
import contextlib
import email.utils
import hashlib
import http.client
import json
import logging
import random
import secrets
import socket
import sqlite3
import ssl
import string
import threading
import time
import urllib.parse
from datetime import datetime, timezone
from typing import Any, Callable, Iterator, NamedTuple, Optional, Sequence, Tuple

__all__ = ["ACK", "REJECT", "REQUEUE", "Device", "Mail", "Status"]
__version__ = "0.1.0"

ACK, REJECT, REQUEUE = "ack", "reject", "requeue"

BODY_BYTES_MAX = 65_536
"""Largest payload that the server takes (D9)."""
RETRY_SECONDS_BASE, RETRY_SECONDS_MAX = 1.0, 60.0
UNAUTHORIZED_SECONDS_MAX = 300.0
"""An operator may enable the device or restore its secret, so nothing is thrown away; but locked-out devices wait."""
TIMEOUT_SECONDS = 30.0
IDLE_SECONDS_MAX = 7.0
"""The server closes connections that idle for 8 s (D22)."""
STREAM_SILENCE_SECONDS_MAX = 60.0
STREAM_FAILURES_MAX, STREAM_AGAIN_SECONDS = 3, 600.0
POLL_SECONDS_MIN, POLL_SECONDS_MAX = 30.0, 300.0
KEY_SECONDS_MAX = 82_800
"""The server remembers a key for 24 h (D18); an older one could be stored twice, so it is renewed before and counted."""
SETTLED_MAX = 64
CLOCK_SECONDS_TOLERATED = 30.0
RELEASED_AT = 1_767_225_600.0
"""2026-01-01. A clock that is before it is one of a device that has none: what it says of a certificate is not asked."""
X509_V_FLAG_NO_CHECK_TIME = 0x200000
"""A flag of OpenSSL; the ssl module has no name for it."""

log = logging.getLogger("fleetpost")


class Mail(NamedTuple):
    id: str
    name: str
    payload: dict
    body: bytes
    """The payload as it was sent, byte for byte."""


class Status(NamedTuple):
    connected: bool
    reason: str
    """Why it is not connected, or what happened last: a sentence."""
    queued: int
    queued_bytes: int
    dropped: int
    """Entries thrown away because the queue was full, since it was made."""
    refused: int
    """Entries that the server refused for good, since the queue was made."""
    doubtful: int
    """Entries that may be stored twice: their answer was missing for a day."""
    mailbox: Optional[int]
    """Mails waiting, as last heard."""


class _Answer(NamedTuple):
    status: int
    headers: Any
    body: bytes

    def error(self) -> Tuple[str, str]:
        try:
            found = json.loads(self.body)
            return str(found.get("error", "")), str(found.get("msg", ""))[:500]
        except (ValueError, AttributeError):
            return "", ""

    def retry_after(self) -> Optional[float]:
        text = self.headers.get("Retry-After") or ""
        return min(float(text), 3_600.0) if text.isdigit() else None


class _Unreachable(OSError):
    """There is no connection, which says nothing of event streams."""


class _Untrusted(OSError):
    """The server has none of the pinned keys."""


class _Entry(NamedTuple):
    number: int
    kind: str
    name: str
    body: bytes
    at_ms: Optional[int]
    key: Optional[str]
    key_ms: Optional[int]


def _backoff(attempt: int, seconds_max: Optional[float] = None) -> float:
    """Full jitter: devices that lost the same server do not come back at the same moment."""
    return random.uniform(0, min(seconds_max or RETRY_SECONDS_MAX, RETRY_SECONDS_BASE * 2 ** min(attempt, 16)))


def _uuid7(time_ms: int) -> str:
    number = (time_ms << 80 | secrets.randbits(80)) & ~(0xF << 76) & ~(0x3 << 62) | 0x7 << 76 | 0x2 << 62
    text = f"{number:032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def _key_of(certificate: bytes) -> str:
    """The SHA-256 of a certificate's SubjectPublicKeyInfo in base64, as in RFC 7469."""

    def element(at: int) -> Tuple[int, int, int]:
        """Tag, where its content begins, and where it ends (X.690)."""
        length, begin = certificate[at + 1], at + 2
        if length > 0x80:
            begin += length - 0x80
            length = int.from_bytes(certificate[at + 2 : begin], "big")
        return certificate[at], begin, begin + length

    _, at, _ = element(element(0)[1])
    if certificate[at] == 0xA0:  # version
        at = element(at)[2]
    for _ in range(5):  # serial number, signature, issuer, validity, subject
        at = element(at)[2]
    return base64.b64encode(hashlib.sha256(certificate[at : element(at)[2]]).digest()).decode()


class _Server:
    """Where the server is, how it proves itself, and the TLS session that the last connection left behind."""

    def __init__(self, url: str, context: ssl.SSLContext, pins: Sequence[str]):
        parts = urllib.parse.urlsplit(url)
        if parts.scheme != "https" or not parts.hostname:
            raise ValueError("The URL of a server is https://HOST or https://HOST:PORT.")
        self._address = (parts.hostname, parts.port or 443)
        self._context, self._pins = context, pins
        self.session: Optional[ssl.SSLSession] = None
        """To resume it takes no certificates and no signatures."""

    def open(self, timeout: float) -> http.client.HTTPSConnection:
        if time.time() < RELEASED_AT:
            self._context.verify_flags |= X509_V_FLAG_NO_CHECK_TIME
        connection = http.client.HTTPSConnection(*self._address, timeout=timeout, context=self._context)
        http.client.HTTPConnection.connect(connection)  # Its own would offer no session.
        session = self.session
        try:
            connection.sock = self._context.wrap_socket(connection.sock, server_hostname=self._address[0], session=session)
            if self._pins and _key_of(connection.sock.getpeercert(True)) not in self._pins:
                raise _Untrusted("The server's key is none of the pinned ones.")
        except BaseException:
            if self.session is session:
                self.session = None
            connection.close()
            raise
        return connection


class _Connection:
    """Keeps one connection to the server alive, for one thread."""

    def __init__(self, server: _Server):
        self._server = server
        self._connection: Optional[http.client.HTTPSConnection] = None
        self._used_at = 0.0

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def request(self, method: str, path: str, headers: dict, body: Optional[bytes] = None) -> _Answer:
        """Raises OSError or http.client.HTTPException when there is no whole answer."""
        if self._connection is not None and time.monotonic() - self._used_at > IDLE_SECONDS_MAX:
            self.close()
        is_reused = self._connection is not None
        try:
            if self._connection is None:
                self._connection = self._server.open(TIMEOUT_SECONDS)
            sock = self._connection.sock
            self._connection.request(method, path, body, headers)
            response = self._connection.getresponse()
            answer = _Answer(response.status, response.headers, response.read(2 * BODY_BYTES_MAX))
            if not is_reused:  # With TLS 1.3 it comes behind the handshake, so it is there with the first answer.
                self._server.session = sock.session
        except (OSError, http.client.HTTPException):
            self.close()
            if is_reused:  # The server may have closed it meanwhile. Everything sent can be repeated.
                return self.request(method, path, headers, body)
            raise
        self._used_at = time.monotonic()
        if response.will_close:
            self.close()
        return answer

    def stream(self, path: str, headers: dict) -> Tuple[http.client.HTTPSConnection, http.client.HTTPResponse]:
        try:
            connection = self._server.open(STREAM_SILENCE_SECONDS_MAX)
        except OSError as error:
            raise _Unreachable(str(error)) from error
        try:
            connection.request("GET", path, headers=headers)
            return connection, connection.getresponse()
        except BaseException:
            connection.close()
            raise


class _Queue:
    """Keeps what waits to be sent, settled and counted: in SQLite, since a device can lose power."""

    def __init__(self, path: str, bytes_max: int, entries_max: int):
        self._lock = threading.Lock()
        self._bytes_max, self._entries_max = bytes_max, entries_max
        self._sending: Optional[int] = None
        self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._db.executescript(
            """PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
            CREATE TABLE IF NOT EXISTS entry (number INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT, name TEXT, body BLOB,
              at_ms INTEGER, key TEXT, key_ms INTEGER);
            CREATE TABLE IF NOT EXISTS settled (number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE, verb TEXT);
            CREATE TABLE IF NOT EXISTS value (name TEXT PRIMARY KEY, value);"""
        )
        self.entries, self.bytes = self._db.execute("SELECT count(*), coalesce(sum(length(body)), 0) FROM entry").fetchone()

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def value(self, name: str, default: Any = None) -> Any:
        with self._lock:
            row = self._db.execute("SELECT value FROM value WHERE name = ?", (name,)).fetchone()
        return default if row is None else row[0]

    def put(self, name: str, value: Any) -> None:
        with self._lock:
            self._db.execute("INSERT OR REPLACE INTO value VALUES (?, ?)", (name, value))

    def _count(self, name: str, by: int) -> None:
        sql = "INSERT INTO value VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = value + excluded.value"
        self._db.execute(sql, (name, by))

    def count(self, name: str) -> None:
        with self._lock:
            self._count(name, 1)

    def add(self, kind: str, name: str, body: bytes, at_ms: int) -> int:
        """Returns how many older entries had to go: datapoints first, messages last."""
        dropped = 0
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            entries, total = self.entries, self.bytes
            while entries >= self._entries_max or (entries > 0 and total + len(body) > self._bytes_max):
                oldest = self._db.execute(
                    "SELECT number, length(body) FROM entry WHERE number IS NOT ? ORDER BY kind <> 'datapoint', number LIMIT 1",
                    (self._sending,),
                ).fetchone()
                if oldest is None:
                    break
                self._db.execute("DELETE FROM entry WHERE number = ?", oldest[:1])
                entries, total, dropped = entries - 1, total - oldest[1], dropped + 1
            sql = "INSERT INTO entry (kind, name, body, at_ms) VALUES (?, ?, ?, ?)"
            self._db.execute(sql, (kind, name, body, at_ms))
            if dropped > 0:
                self._count("dropped", dropped)
            self._db.execute("COMMIT")
            self.entries, self.bytes = entries + 1, total + len(body)
        return dropped

    def head(self) -> Optional[_Entry]:
        """The oldest entry, which stays until `remove`."""
        with self._lock:
            row = self._db.execute("SELECT number, kind, name, body, at_ms, key, key_ms FROM entry ORDER BY number LIMIT 1").fetchone()
            self._sending = None if row is None else row[0]
        return None if row is None else _Entry(*row)

    def update(self, entry: _Entry) -> None:
        with self._lock:
            sql = "UPDATE entry SET at_ms = ?, key = ?, key_ms = ? WHERE number = ?"
            self._db.execute(sql, (entry.at_ms, entry.key, entry.key_ms, entry.number))

    def remove(self, entry: _Entry, counter: Optional[str] = None) -> None:
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute("DELETE FROM entry WHERE number = ?", (entry.number,))
            if counter is not None:
                self._count(counter, 1)
            self._db.execute("COMMIT")
            self._sending = None
            self.entries, self.bytes = self.entries - 1, self.bytes - len(entry.body)

    def verb_of(self, mail_id: str) -> Optional[str]:
        with self._lock:
            row = self._db.execute("SELECT verb FROM settled WHERE id = ?", (mail_id,)).fetchone()
        return None if row is None else row[0]

    def settle(self, mail_id: str, verb: str) -> None:
        with self._lock:
            self._db.execute("INSERT OR REPLACE INTO settled (id, verb) VALUES (?, ?)", (mail_id, verb))
            self._db.execute("DELETE FROM settled WHERE number <= (SELECT max(number) FROM settled) - ?", (SETTLED_MAX,))

    def unsettle(self, mail_id: str) -> None:
        with self._lock:
            self._db.execute("DELETE FROM settled WHERE id = ?", (mail_id,))


class Device:
    """A device. It works in two threads of its own until `close`.

    url: https://HOST:PORT of the server. fleet, id: 8 and 10 letters or digits.
    secret: the device's secret; None with `claim`, a claim token: then the device chooses a secret and keeps it in `queue`.
    ca: file of the authority to trust, PEM; None: those of the system.
    pins: base64 of the SHA-256 of public keys of the server instead (two, so that one can be rolled over).
    queue: SQLite file for what waits; without one it waits in memory, and is lost with the process.
    queue_bytes_max, queue_entries_max: beyond these the oldest datapoints go, then the oldest messages.
    heartbeat_seconds: a heartbeat after so long without any other request; 0: none.
    start_delay_seconds: the first connection waits up to this long at random, so that a hall whose power comes back
    does not connect at one moment.
    on_status: called with a Status whenever something happened that an operator would want to know.
    """

    def __init__(
        self,
        url: str,
        fleet: str,
        id: str,
        secret: Optional[str] = None,
        *,
        claim: Optional[str] = None,
        ca: Optional[str] = None,
        pins: Sequence[str] = (),
        queue: Optional[str] = None,
        queue_bytes_max: int = 16 * 1024 * 1024,
        queue_entries_max: int = 100_000,
        heartbeat_seconds: float = 60.0,
        start_delay_seconds: float = 10.0,
        on_status: Optional[Callable[[Status], None]] = None,
    ):
        if secret is None and claim is None:
            raise ValueError("A device needs its secret or a claim token.")
        if secret is None and queue is None:
            raise ValueError("A device that claims its secret needs a queue file to keep it in.")
        context = ssl.create_default_context(cafile=ca)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if pins and ca is None:  # The pinned keys are what is trusted; a name or a date proves nothing more.
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        server = _Server(url, context, tuple(pins))
        self._connect = lambda: _Connection(server)
        self._fleet, self._id, self._secret, self._claim = fleet, id, secret, claim
        self._queue = _Queue(queue or ":memory:", queue_bytes_max, queue_entries_max)
        self._heartbeat_seconds, self._start_delay_seconds = heartbeat_seconds, start_delay_seconds
        self._on_status, self._handler = on_status, None  # type: Any, Optional[Callable[[Mail], Optional[str]]]
        self._connected, self._reason, self._mailbox = False, "Not connected yet.", None  # type: bool, str, Optional[int]
        self._clock_seconds, self._again_seconds = 0.0, 5.0
        self._heartbeat_asked = False
        self._work, self._mail = threading.Condition(), threading.Event()
        self._closing = threading.Event()
        self._ready = threading.Event()
        self._stream = None  # type: Optional[http.client.HTTPSConnection]
        self._threads = [threading.Thread(target=self._send_all, name="fleetpost-send", daemon=True)]
        self._threads[0].start()

    def datapoint(self, name: str, payload: dict, at: Optional[datetime] = None) -> None:
        """Queues a datapoint of the schema `name`. at: when it was measured, with a zone; now, if absent."""
        if not payload:
            raise ValueError("A datapoint needs at least one member.")
        self._add("datapoint", name, payload, at)

    def message(self, name: str, payload: Optional[dict] = None, at: Optional[datetime] = None) -> None:
        """Queues a message of the schema `name`."""
        self._add("msg", name, payload or {}, at)

    def heartbeat(self) -> None:
        """Sends a heartbeat now, or as soon as the server is reached."""
        with self._work:
            self._heartbeat_asked = True
            self._work.notify_all()

    def on_mail(self, handler: Callable[[Mail], Optional[str]]) -> None:
        """Begins to take mail. The handler returns None or ACK, REJECT, or REQUEUE; an exception rejects the mail."""
        is_first, self._handler = self._handler is None, handler
        if is_first:
            self._threads.append(threading.Thread(target=self._take_mail, name="fleetpost-mail", daemon=True))
            self._threads[-1].start()

    @property
    def status(self) -> Status:
        queue = self._queue
        counts = (queue.value(name, 0) for name in ("dropped", "refused", "doubtful"))
        return Status(self._connected, self._reason, queue.entries, queue.bytes, *counts, self._mailbox)

    def flush(self, timeout: Optional[float] = None) -> bool:
        """Waits until the queue is empty; whether it is."""
        with self._work:
            return self._work.wait_for(lambda: self._queue.entries == 0 or self._closing.is_set(), timeout)

    def close(self, timeout: float = 5.0) -> None:
        """Ends both threads; what waits stays in the queue file."""
        self._closing.set()
        self._mail.set()
        with self._work:
            self._work.notify_all()
        stream = self._stream
        if stream is not None and stream.sock is not None:
            with contextlib.suppress(OSError):
                stream.sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(timeout)
        if not any(thread.is_alive() for thread in self._threads):
            self._queue.close()

    def __enter__(self) -> "Device":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _add(self, kind: str, name: str, payload: dict, at: Optional[datetime]) -> None:
        body = json.dumps(payload, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
        if len(body) > BODY_BYTES_MAX:
            raise ValueError(f"A payload has at most {BODY_BYTES_MAX} bytes, not {len(body)}.")
        if at is not None and at.tzinfo is None:
            raise ValueError("A time needs its zone.")
        at_ms = self._now_ms() if at is None else int(at.timestamp() * 1_000)
        dropped = self._queue.add(kind, urllib.parse.quote(name, safe=""), body, at_ms)
        if dropped > 0:
            self._say(f"The queue is full: {dropped} of the oldest entries were dropped.", level=logging.WARNING)
        with self._work:
            self._work.notify_all()

    def _now_ms(self) -> int:
        """The time by the server's clock once it was heard, since a device may have none that is right."""
        return int((time.time() + self._clock_seconds) * 1_000)

    def _say(self, reason: str, connected: Optional[bool] = None, level: int = logging.INFO) -> None:
        self._reason = reason
        if connected is not None:
            self._connected = connected
        log.log(level, "%s", reason)
        if self._on_status is not None:
            try:
                self._on_status(self.status)
            except Exception:
                log.exception("on_status failed")

    def _headers(self, **more: str) -> dict:
        headers = {"X-Fleet-ID": self._fleet, "X-Device-ID": self._id, "X-Device-Secret": self._secret or ""}
        headers.update({name.replace("_", "-"): value for name, value in more.items()})
        return headers

    def _ask(self, connection: _Connection, method: str, path: str, headers: dict, body: Optional[bytes] = None) -> _Answer:
        answer = connection.request(method, path, headers, body)
        self._heard(answer)
        return answer

    def _heard(self, answer: _Answer) -> None:
        date = email.utils.parsedate_to_datetime(answer.headers["Date"]) if answer.headers["Date"] else None
        if date is not None:
            ahead = date.timestamp() - time.time()
            self._clock_seconds = ahead if abs(ahead) > CLOCK_SECONDS_TOLERATED else 0.0
        if answer.headers["X-Mailbox-Size"]:
            self._mailbox = int(answer.headers["X-Mailbox-Size"])
        if answer.status < 300 and not self._connected:
            self._say("Connected.", True)

    def _wait(self, seconds: float) -> None:
        self._closing.wait(seconds)

    def _wait_after(self, error: object, attempt: int) -> None:
        """Waits as long as an error asks for: an answer, or an exception where there was none."""
        if not isinstance(error, _Answer):
            self._say(f"The server cannot be reached: {error}", False)
            return self._wait(_backoff(attempt))
        code, msg = error.error()
        if error.status in (401, 403):
            self._say(f"The server refused this device: {msg or code}", False)
            return self._wait(error.retry_after() or _backoff(attempt + 5, UNAUTHORIZED_SECONDS_MAX))
        self._say(f"The server answered {error.status}: {msg or code}")
        self._wait((error.retry_after() or 0) + _backoff(attempt))

    # Sending.

    def _send_all(self) -> None:
        connection, attempt = self._connect(), 0
        self._wait(random.uniform(0, self._start_delay_seconds))
        last_at = time.monotonic() - self._heartbeat_seconds
        while not self._closing.is_set():
            try:
                if self._secret is None and not self._claimed(connection):
                    continue
                self._ready.set()
                entry = self._queue.head()
                if entry is not None:
                    answer = self._send(connection, entry)
                elif self._wait_for_work(last_at):
                    self._heartbeat_asked = False
                    answer = self._ask(connection, "POST", "/v1/heartbeat", self._headers())
                    if answer.headers["X-Messages-Available"] == "true":
                        self._mail.set()
                else:
                    continue
                if answer.status == 201:
                    last_at, attempt = time.monotonic(), 0
                    continue
                self._wait_after(answer, attempt)
            except (OSError, http.client.HTTPException) as error:
                self._wait_after(error, attempt)
            except Exception as error:  # A disk that is full, say. The thread must go on.
                log.exception("sending failed")
                self._wait_after(error, attempt)
            attempt += 1
        connection.close()

    def _wait_for_work(self, last_at: float) -> bool:
        """True if a heartbeat is due; else something may be in the queue."""
        with self._work:
            self._work.notify_all()  # for flush()
            if self._queue.entries == 0 and not self._heartbeat_asked and not self._closing.is_set():
                rest = last_at + self._heartbeat_seconds - time.monotonic() if self._heartbeat_seconds > 0 else None
                self._work.wait(rest if rest is None else max(0.0, rest))
            if self._closing.is_set() or self._queue.entries > 0:
                return False
        is_due = self._heartbeat_seconds > 0 and time.monotonic() >= last_at + self._heartbeat_seconds
        return is_due or self._heartbeat_asked

    def _send(self, connection: _Connection, entry: _Entry) -> _Answer:
        """Sends an entry; one that was stored, or refused for good, leaves the queue. Returns 201 when it is settled."""
        now_ms = self._now_ms()
        if entry.key is None or entry.key_ms is None or now_ms - entry.key_ms > KEY_SECONDS_MAX * 1_000:
            if entry.key is not None:
                self._queue.count("doubtful")
                self._say("An answer was missing for a day: an entry is sent again, and may be stored twice.", level=logging.WARNING)
            # Decided once, for the time is part of what the key stands for.
            is_late = entry.at_ms is not None and abs(now_ms - entry.at_ms) > 1_000
            at_ms = entry.at_ms if is_late or entry.key is not None else None
            entry = entry._replace(at_ms=at_ms, key=_uuid7(now_ms), key_ms=now_ms)
            self._queue.update(entry)
        headers = self._headers(Content_Type="application/json", Idempotency_Key=entry.key or "")
        if entry.at_ms is not None:
            at = datetime.fromtimestamp(entry.at_ms / 1_000, timezone.utc)
            headers["Recorded-At"] = at.isoformat(timespec="milliseconds")
        answer = self._ask(connection, "POST", f"/v1/{entry.kind}/{entry.name}", headers, entry.body)
        if answer.status == 201:
            self._queue.remove(entry)
            return answer
        code, msg = answer.error()
        if code == "invalid_idempotency_key":  # The clock was wrong. Nothing was stored, so another key is safe.
            self._queue.update(entry._replace(key=None, key_ms=None))
        elif code == "invalid_recorded_at":
            self._queue.update(entry._replace(at_ms=None))
        elif 400 <= answer.status < 500 and answer.status not in (401, 403, 408, 425, 429):
            self._queue.remove(entry, "refused")
            self._say(f"The server refused {entry.kind}/{entry.name}: {msg or code or answer.status}", level=logging.WARNING)
            return answer._replace(status=201)
        return answer

    def _claimed(self, connection: _Connection) -> bool:
        """True if the device has its secret; else asks for it, once."""
        secret = self._queue.value("secret")
        if secret is None:
            letters = string.ascii_letters + string.digits
            secret = "FOS-" + "".join(secrets.choice(letters) for _ in range(32))
            self._queue.put("secret", secret)  # Before it is sent: a lost answer is harmless then.
        if self._queue.value("claimed") is None:
            claim = {"fleet_id": self._fleet, "claim_token": self._claim, "device_id": self._id, "device_secret": secret}
            headers = {"Content-Type": "application/json"}
            for attempt in range(1_000_000):
                try:
                    answer = connection.request("POST", "/v1/claim", headers, json.dumps(claim).encode())
                    if answer.status == 201:
                        break
                    self._wait_after(answer, attempt if answer.status >= 429 else attempt + 5)
                except (OSError, http.client.HTTPException) as error:
                    self._wait_after(error, attempt)
                if self._closing.is_set():
                    return False
            self._queue.put("claimed", 1)
        self._secret = secret
        return True

    # Mail.

    def _take_mail(self) -> None:
        connection, failures, unreachable, stream_again_at, poll = self._connect(), 0, 0, 0.0, POLL_SECONDS_MIN
        while not self._ready.wait(1):
            if self._closing.is_set():
                return
        while not self._closing.is_set():
            try:
                if failures < STREAM_FAILURES_MAX or time.monotonic() >= stream_again_at:
                    for size in self._announcements():
                        failures = unreachable = 0
                        if size > 0:
                            self._work_through(connection)
                    self._wait(self._again_seconds)
                    continue
                # An event is a hint, and the mailbox the truth: without a stream it is looked at now and then.
                self._mail.wait(poll)
                self._mail.clear()
                if not self._closing.is_set():
                    answer = self._ask(connection, "HEAD", "/v1/mailbox/next", self._headers())
                    poll = POLL_SECONDS_MIN if answer.status == 200 else min(POLL_SECONDS_MAX, poll * 1.5)
                    if answer.status == 200:
                        self._work_through(connection)
            except _Unreachable as error:  # Nor could the mailbox be looked at.
                unreachable += 1
                log.info("event stream: %s", error)
                self._wait(_backoff(unreachable))
            except (OSError, http.client.HTTPException) as error:
                failures += 1
                if failures == STREAM_FAILURES_MAX:
                    stream_again_at = time.monotonic() + STREAM_AGAIN_SECONDS
                elif failures > STREAM_FAILURES_MAX and time.monotonic() >= stream_again_at:
                    stream_again_at = time.monotonic() + STREAM_AGAIN_SECONDS
                log.info("event stream or mailbox: %s", error)
                self._wait(_backoff(failures))
            except Exception:
                log.exception("taking mail failed")
                self._wait(_backoff(5))
        connection.close()

    def _announcements(self) -> Iterator[int]:
        """Yields the size of the mailbox whenever the event stream names it."""
        stream, response = self._connect().stream("/v1/events", self._headers(Accept="text/event-stream"))
        self._stream = stream
        try:
            if response.status != 200:
                answer = _Answer(response.status, response.headers, response.read(BODY_BYTES_MAX))
                self._wait_after(answer, 3)
                raise http.client.HTTPException(f"no event stream: {answer.status}")
            event = ""
            while not self._closing.is_set():
                line = response.readline(BODY_BYTES_MAX)
                if not line:
                    return
                field, _, value = line.decode("utf-8", "replace").strip().partition(":")
                if field == "event":
                    event = value.strip()
                elif field == "retry":  # Drawn for each stream, so that not all devices come back at once (D20).
                    self._again_seconds = min(60.0, int(value) / 1_000)
                elif field == "data" and event in ("connected", "new_mail"):
                    self._mailbox = int(json.loads(value).get("mailbox_size", 1))
                    yield self._mailbox
        finally:
            self._stream = None
            response.close()
            stream.close()

    def _work_through(self, connection: _Connection) -> None:
        """Handles mail until the mailbox is empty, one at a time."""
        attempt, requeues = 0, 0
        while not self._closing.is_set():
            answer = self._ask(connection, "GET", "/v1/mailbox/next", self._headers())
            if answer.status == 204:
                return
            if answer.status != 200:
                self._wait_after(answer, attempt)
                attempt += 1
                continue
            mail = Mail(answer.headers["X-Mail-Id"], answer.headers["X-Mail-Name"], json.loads(answer.body), answer.body)
            verb = self._queue.verb_of(mail.id)
            if verb is None:
                verb = self._handled(mail)
                self._queue.settle(mail.id, verb)  # A crash from here on handles it no second time.
            attempt = self._settle(connection, mail.id, verb)
            requeues = requeues + 1 if verb == REQUEUE else 0
            if verb == REQUEUE:
                self._queue.unsettle(mail.id)
                if requeues >= (self._mailbox or 0):  # The whole mailbox has come round.
                    self._wait(_backoff(requeues - (self._mailbox or 0)))

    def _handled(self, mail: Mail) -> str:
        try:
            verb = self._handler(mail) if self._handler is not None else REQUEUE
            if verb not in (None, ACK, REJECT, REQUEUE):
                raise ValueError(f"A handler returns None, ACK, REJECT or REQUEUE, not {verb!r}.")
            return verb or ACK
        except Exception:
            log.exception("the handler of mail failed: the mail is rejected")
            return REJECT

    def _settle(self, connection: _Connection, mail_id: str, verb: str) -> int:
        """Tells the server until it has heard. 404 and 409: the mail is gone, expired or withdrawn, say."""
        attempt = 0
        while not self._closing.is_set():
            try:
                answer = self._ask(connection, "PUT", f"/v1/mailbox/{verb}/{mail_id}", self._headers())
                if answer.status in (200, 404, 409):
                    return 0
                self._wait_after(answer, attempt)
            except (OSError, http.client.HTTPException) as error:
                self._wait_after(error, attempt)
            attempt += 1
        return attempt
