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
import os
import random
import re
import secrets
import socket
import sqlite3
import ssl
import string
import threading
import time
import urllib.parse
from datetime import datetime, timezone
from typing import Any, Callable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

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
SYNC_RECORDS_MAX, SYNC_FRAME_BYTES, SYNC_AGAIN_SECONDS = 500, 512, 3_600.0
"""A server that has no POST /v1/sync is asked for it again after so long: it may be a newer one then."""
KEY_SECONDS_MAX = 82_800
"""The server remembers a key for 24 h (D18); an older one could be stored twice, so it is renewed before and counted."""
SETTLED_MAX = 64
SPARE_BYTES = 65_536
CLOCK_SECONDS_TOLERATED = 30.0
LATE_MS, AGO_MS_MAX, AHEAD_MS_MAX = 1_000, 30 * 86_400_000, 300_000
"""What is not late needs no time; beyond the others the server would refuse it (D25)."""
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
    unheard: int
    """Its time is by a clock that had not been compared with the server's."""
    key: Optional[str]
    key_ms: Optional[int]

    def record(self, at_ms: Optional[int]) -> bytes:
        """As a sync has it (D29)."""
        kind = "message" if self.kind == "msg" else self.kind
        schema = json.dumps(urllib.parse.unquote(self.name)).encode()
        time_ = b"" if at_ms is None else b',"recorded_at":"%s"' % _rfc3339(at_ms).encode()
        return b'{"kind":"%s","schema":%s,"payload":%s%s}' % (kind.encode(), schema, self.body, time_)


class _Order(NamedTuple):
    """The device's own order (D30): an entry has its number in it, counted from behind `base`."""

    name: str
    base: int


def _rfc3339(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1_000, timezone.utc).isoformat(timespec="milliseconds")


def _is_heard(status: int) -> bool:
    """Whether the server's word on an item is its last. 404 and 409 of a mail: it is gone, expired or withdrawn, say."""
    return status < 500 and status not in (401, 403, 408, 425, 429)


def _mail_in(body: bytes, answer: dict) -> Optional[Mail]:
    """The only mail of a sync's answer, its payload byte for byte."""
    if not answer.get("mail"):
        return None
    found = answer["mail"][0]
    exact = re.search(rb'"mail":\[\{"id":"[^"]*","name":"[^"]*","payload":(.*),"requeue_count":', body, re.DOTALL)
    return Mail(found["id"], found["name"], found["payload"], exact[1] if exact else json.dumps(found["payload"]).encode())


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
        self._done_to = 0
        """Entries up to there are stored by the server, or refused for good. Whether a disk that is full takes that or not,
        they are sent no more while this process lives; those of a later one are known to the server."""
        self._spare = None if path == ":memory:" else path + "-spare"
        """Room that is given back on a disk that is full: to take something out of the file takes some."""
        self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._db.executescript(
            """PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 16;
            CREATE TABLE IF NOT EXISTS entry (number INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT, name TEXT, body BLOB,
              at_ms INTEGER, unheard INTEGER, key TEXT, key_ms INTEGER);
            CREATE TABLE IF NOT EXISTS settled (number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE, verb TEXT);
            CREATE TABLE IF NOT EXISTS value (name TEXT PRIMARY KEY, value);"""
        )
        self.entries, self.bytes = self._size_of("number > 0")
        order = self.value("order")
        # With nothing under way a new order is safe, also for a file that is older than what was sent from it.
        self.order = None if order is None or self.entries == 0 else _Order(*json.loads(order))
        self._reserve()

    def _reserve(self) -> None:
        if self._spare is not None and not os.path.exists(self._spare):
            with contextlib.suppress(OSError), open(self._spare, "wb") as spare:
                spare.write(bytes(SPARE_BYTES))

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def _size_of(self, which: str) -> Tuple[int, int]:
        return self._db.execute(f"SELECT count(*), coalesce(sum(length(body)), 0) FROM entry WHERE {which}").fetchone()

    def value(self, name: str, default: Any = None) -> Any:
        with self._lock:
            row = self._db.execute("SELECT value FROM value WHERE name = ?", (name,)).fetchone()
        return default if row is None else row[0]

    def put(self, name: str, value: Any) -> None:
        with self._lock:
            self._put(name, value)

    def _put(self, name: str, value: Any) -> None:
        self._db.execute("INSERT OR REPLACE INTO value VALUES (?, ?)", (name, value))

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    def _count(self, name: str, by: int) -> None:
        sql = "INSERT INTO value VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = value + excluded.value"
        self._db.execute(sql, (name, by))

    def count(self, name: str) -> None:
        with self._lock, contextlib.suppress(sqlite3.Error):
            self._count(name, 1)

    def last_number(self) -> int:
        row = self._db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'entry'").fetchone()
        return 0 if row is None else row[0]

    def _begin(self, base: int) -> _Order:
        order = _Order(secrets.token_urlsafe(12), base)
        self._put("order", json.dumps(order))
        return order

    def renew_order(self) -> None:
        """Begins another order with what waits: the server knows more of this one than was sent."""
        with self._transaction():
            head = self._db.execute("SELECT min(number) FROM entry WHERE number > ?", (self._done_to,)).fetchone()[0]
            self.order = self._begin(self.last_number() if head is None else head - 1)

    def add(self, kind: str, name: str, body: bytes, at_ms: Optional[int], unheard: bool = False) -> int:
        """Returns how many older entries had to go: datapoints first, messages last."""
        dropped = 0
        with self._transaction():
            entries, total = self.entries, self.bytes
            while entries >= self._entries_max or (entries > 0 and total + len(body) > self._bytes_max):
                oldest = self._db.execute(
                    "SELECT number, length(body) FROM entry WHERE number > ? AND number IS NOT ? ORDER BY kind <> 'datapoint', number LIMIT 1",
                    (self._done_to, self._sending),
                ).fetchone()
                if oldest is None:
                    break
                self._db.execute("DELETE FROM entry WHERE number = ?", oldest[:1])
                entries, total, dropped = entries - 1, total - oldest[1], dropped + 1
            order = self.order or self._begin(self.last_number())
            sql = "INSERT INTO entry (kind, name, body, at_ms, unheard) VALUES (?, ?, ?, ?, ?)"
            self._db.execute(sql, (kind, name, body, at_ms, int(unheard)))
            if dropped > 0:
                self._count("dropped", dropped)
        self.order, self.entries, self.bytes = order, entries + 1, total + len(body)
        return dropped

    def _oldest(self, limit: int) -> Iterator[_Entry]:
        sql = "SELECT number, kind, name, body, at_ms, unheard, key, key_ms FROM entry WHERE number > ? ORDER BY number LIMIT ?"
        return map(_Entry._make, self._db.execute(sql, (self._done_to, limit)))

    def head(self) -> Optional[_Entry]:
        """The oldest entry, which stays until `done`."""
        with self._lock:
            head = next(self._oldest(1), None)
            self._sending = None if head is None else head.number
        return head

    def run(self, after: int) -> List[_Entry]:
        """The oldest entries without a key, behind that number and with numbers that follow each other, as a sync has room."""
        found: List[_Entry] = []
        rest = BODY_BYTES_MAX - SYNC_FRAME_BYTES
        with self._lock:
            for entry in self._oldest(SYNC_RECORDS_MAX):
                rest -= len(entry.record(0)) + 1
                is_next = not found or entry.number == found[-1].number + 1
                if rest < 0 or not is_next or entry.key is not None or entry.number <= after:
                    break
                found.append(entry)
        return found

    def update(self, entry: _Entry) -> None:
        with self._lock:
            sql = "UPDATE entry SET at_ms = ?, unheard = 0, key = ?, key_ms = ? WHERE number = ?"
            self._db.execute(sql, (entry.at_ms, entry.key, entry.key_ms, entry.number))

    def done(self, to: int) -> None:
        """All up to that number are done."""
        with self._lock:
            entries, total = self._size_of(f"number > {self._done_to} AND number <= {to}")
            self._done_to = max(self._done_to, to)
            self.entries, self.bytes, self._sending = self.entries - entries, self.bytes - total, None
            for _ in range(2):
                with contextlib.suppress(sqlite3.Error):
                    self._db.execute("DELETE FROM entry WHERE number <= ?", (self._done_to,))
                    break
                with contextlib.suppress(OSError, sqlite3.Error):
                    os.unlink(self._spare or "")
                    self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            self._reserve()

    def verb_of(self, mail_id: str) -> Optional[str]:
        with self._lock:
            row = self._db.execute("SELECT verb FROM settled WHERE id = ?", (mail_id,)).fetchone()
        return None if row is None else row[0]

    def settle(self, mail_id: str, verb: str) -> None:
        with self._lock:
            self._db.execute("INSERT OR REPLACE INTO settled (id, verb) VALUES (?, ?)", (mail_id, verb))
            self._db.execute("DELETE FROM settled WHERE number <= (SELECT max(number) FROM settled) - ?", (SETTLED_MAX,))

    def unsettle(self, mail_id: str) -> None:
        with self._lock, contextlib.suppress(sqlite3.Error):
            self._db.execute("DELETE FROM settled WHERE id = ?", (mail_id,))


class Device:
    """A device. It works in threads of its own until `close`.

    url: https://HOST:PORT of the server. fleet, id: 8 and 10 letters or digits.
    secret: the device's secret; None with `claim`, a claim token: then the device chooses a secret and keeps it in `queue`.
    ca: file of the authority to trust, PEM; None: those of the system.
    pins: base64 of the SHA-256 of public keys of the server instead (two, so that one can be rolled over).
    queue: SQLite file for what waits; without one it waits in memory, and is lost with the process.
    queue_bytes_max, queue_entries_max: beyond these the oldest datapoints go, then the oldest messages.
    heartbeat_seconds: a heartbeat after so long without any other request; 0: none.
    start_delay_seconds: the first connection waits up to this long at random, so that a hall whose power comes back
    does not connect at one moment; 0 for a program that wakes up from a sleep.
    is_polling: asks for mail with what it sends, and every 30 s to 5 min, instead of holding an event stream open: one
    connection in all. For devices that `sleep`.
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
        is_polling: bool = False,
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
        self._clock_seconds, self._first_ahead_seconds, self._again_seconds = 0.0, None, 5.0  # type: float, Optional[float], float
        self._is_polling, self._poll_at, self._poll_seconds = is_polling, 0.0, 0.0
        self._heartbeat_asked, self._is_busy, self._is_asleep = False, False, False
        self._last_at, self._sync_again_at, self._alone_to, self._tried = 0.0, 0.0, 0, None  # type: float, float, int, Optional[_Entry]
        # Mail: reasons to look for some, and for which it was; what is in hand, how that was settled, and when what was put off is taken again.
        self._looks, self._looked, self._in_hand, self._settlement, self._mail_at = 0, 0, None, None, 0.0  # type: int, int, Optional[Mail], Any, float
        self._requeues, self._is_mail_turn = 0, False
        self._work, self._connection = threading.Condition(threading.RLock()), self._connect()
        self._closing = threading.Event()
        self._ready = threading.Event()
        self._stream = None  # type: Optional[http.client.HTTPSConnection]
        self._threads = [threading.Thread(target=self._run, name="fleetpost", daemon=True)]
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
            self._heartbeat_asked, self._is_asleep = True, False
            self._work.notify_all()

    def on_mail(self, handler: Callable[[Mail], Optional[str]]) -> None:
        """Begins to take mail. The handler returns None or ACK, REJECT, or REQUEUE; an exception rejects the mail."""
        is_first, self._handler = self._handler is None, handler
        if is_first:
            work = [(self._handle_all, "fleetpost-mail")] + ([] if self._is_polling else [(self._listen, "fleetpost-events")])
            for target, name in work:
                self._threads.append(threading.Thread(target=target, name=name, daemon=True))
                self._threads[-1].start()
            if self._is_polling:
                self._look()

    @property
    def status(self) -> Status:
        queue = self._queue
        counts = (queue.value(name, 0) for name in ("dropped", "refused", "doubtful"))
        return Status(self._connected, self._reason, queue.entries, queue.bytes, *counts, self._mailbox)

    def flush(self, timeout: Optional[float] = None) -> bool:
        """Waits until the queue is empty; whether it is."""
        return self._wait_until(lambda: self._queue.entries == 0, timeout)

    def sleep(self, timeout: Optional[float] = None) -> bool:
        """Sends what waits, and takes mail until the mailbox is empty, or all in it was put off; whether that is done.

        Then the connection is closed, and nothing happens until something is queued, a heartbeat is asked for, or it sleeps
        again. Needs `is_polling`.
        """
        if not self._is_polling:
            raise ValueError("A device that sleeps needs is_polling.")
        with self._work:
            if self._handler is not None:
                self._look()
            self._is_asleep = self._wait_until(self._is_idle, timeout)
            if self._is_asleep:
                self._connection.close()
            return self._is_asleep

    def _is_idle(self) -> bool:
        has_mail = self._in_hand is not None or self._settlement is not None or self._takes_mail()
        return self._queue.entries == 0 and not (has_mail or self._is_busy or self._heartbeat_asked or self._secret is None)

    def _wait_until(self, is_so: Callable[[], bool], timeout: Optional[float]) -> bool:
        with self._work:
            self._work.wait_for(lambda: is_so() or self._closing.is_set(), timeout)
            return is_so()

    def close(self, timeout: float = 5.0) -> None:
        """Ends; what waits stays in the queue file."""
        self._closing.set()
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
        dropped = self._queue.add(kind, urllib.parse.quote(name, safe=""), body, at_ms, self._first_ahead_seconds is None)
        if dropped > 0:
            self._say(f"The queue is full: {dropped} of the oldest entries were dropped.", level=logging.WARNING)
        with self._work:
            self._is_asleep = False
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
            if self._first_ahead_seconds is None:
                self._first_ahead_seconds = self._clock_seconds
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

    # Requests: all on one connection, by one thread.

    def _run(self) -> None:
        connection, attempt = self._connection, 0
        self._wait(random.uniform(0, self._start_delay_seconds))
        self._last_at = time.monotonic() - self._heartbeat_seconds
        while not self._closing.is_set():
            try:
                if self._secret is None and not self._claimed(connection):
                    continue
                self._ready.set()
                answer = self._next(connection)
                if answer is None:
                    self._rest()
                    continue
                if answer.status < 300:
                    self._last_at, attempt, self._heartbeat_asked = time.monotonic(), 0, False
                    continue
                self._wait_after(answer, attempt)
            except (OSError, http.client.HTTPException) as error:
                self._wait_after(error, attempt)
            except Exception as error:  # The thread must go on.
                log.exception("a request failed")
                self._wait_after(error, attempt)
            finally:
                with self._work:
                    self._is_busy = False
                    self._work.notify_all()  # for flush() and sleep()
            attempt += 1
        connection.close()

    def _seconds_to(self, at: float) -> float:
        return max(0.0, at - time.monotonic())

    def _is_heartbeat_due(self) -> bool:
        is_due = self._heartbeat_seconds > 0 and self._seconds_to(self._last_at + self._heartbeat_seconds) == 0
        return self._heartbeat_asked or (is_due and not self._is_asleep)

    def _rest(self) -> None:
        """Waits until there is something to do."""
        with self._work:
            self._is_busy = False
            self._work.notify_all()
            if self._queue.entries > 0 or self._heartbeat_asked or self._settlement is not None or self._closing.is_set():
                return
            seconds = [self._seconds_to(self._last_at + self._heartbeat_seconds)] if self._heartbeat_seconds > 0 else []
            if self._is_polling and self._handler is not None:
                seconds.append(self._seconds_to(self._poll_at))
            if self._looks > self._looked and self._in_hand is None:
                seconds.append(self._seconds_to(self._mail_at))
            self._work.wait(None if self._is_asleep or not seconds else min(seconds))

    def _next(self, connection: _Connection) -> Optional[_Answer]:
        """Does what comes next; None if there is nothing to do."""
        with self._work:
            self._is_busy = True
            if self._is_polling and self._handler is not None and not self._is_asleep and self._seconds_to(self._poll_at) == 0:
                self._looks += 1
                self._poll_at = time.monotonic() + max(POLL_SECONDS_MIN, self._poll_seconds)
            has_mail = self._settlement is not None or self._takes_mail()
            is_heartbeat_due = self._is_heartbeat_due()
        head = self._queue.head()
        if head is None and not has_mail:
            return self._beat(connection) if is_heartbeat_due else None
        if head is not None and self._needs_clock(head):  # The times of what waits go by the server's clock.
            return self._beat(connection)
        if time.monotonic() >= self._sync_again_at:
            entries = self._queue.run(self._alone_to)
            if head is not None and not entries and not has_mail:
                return self._send(connection, head)
            answer = self._sync(connection, entries)
            if answer is not None:
                return answer
        return self._single(connection, head)

    def _beat(self, connection: _Connection) -> _Answer:
        return self._hint(self._ask(connection, "POST", "/v1/heartbeat", self._headers()))

    def _hint(self, answer: _Answer) -> _Answer:
        """Takes from the answer to a request that did not ask for mail whether there is some (D28)."""
        if answer.headers["X-Messages-Available"] == "true" and self._handler is not None:
            self._look()
        return answer

    def _needs_clock(self, entry: _Entry) -> bool:
        return entry.at_ms is not None and self._first_ahead_seconds is None and abs(self._now_ms() - entry.at_ms) > LATE_MS

    def _recorded_ms(self, entry: _Entry) -> Optional[int]:
        """The time that goes with an entry: none for what is not late, nor for what cannot be right, as without a clock."""
        if entry.at_ms is None:
            return None
        now_ms = self._now_ms()
        at_ms = entry.at_ms + int(1_000 * (self._first_ahead_seconds or 0.0)) if entry.unheard else entry.at_ms
        is_right = min(at_ms, entry.at_ms) >= 1_000 * RELEASED_AT and now_ms - AGO_MS_MAX <= at_ms <= now_ms + AHEAD_MS_MAX
        return at_ms if is_right and abs(now_ms - at_ms) > LATE_MS else None

    def _sync(self, connection: _Connection, entries: List[_Entry]) -> Optional[_Answer]:
        """Says and asks all at once (D29); None if the server knows no sync."""
        if entries and self._queue.order is None:
            self._queue.renew_order()
        with self._work:
            order, settlement, takes_mail, looks = self._queue.order, self._settlement, self._takes_mail(), self._looks
        parts = [b'"mail":{"max":%d}' % takes_mail]
        if entries:
            records = b",".join(entry.record(self._recorded_ms(entry)) for entry in entries)
            parts.append(b'"queue":"%s","seq":%d,"records":[%s]' % (order.name.encode(), entries[0].number - order.base, records))
        if settlement is not None:
            parts.append(b'"settle":[{"id":"%s","verb":"%s"}]' % (settlement[0].encode(), settlement[1].encode()))
        headers = self._headers(Content_Type="application/json")
        answer = self._ask(connection, "POST", "/v1/sync", headers, b"{%s}" % b",".join(parts))
        if answer.status == 404:
            self._sync_again_at = time.monotonic() + SYNC_AGAIN_SECONDS
            return None
        if answer.status != 200:
            if 400 <= answer.status and _is_heard(answer.status) and entries:  # Nothing was stored. The route of each says which it is.
                self._alone_to = entries[-1].number
            return answer
        found = json.loads(answer.body)
        if entries:
            self._finish(entries, order.base + found["stored_to"], found["records"])
        if settlement is not None and _is_heard(found["settled"][0]["status"]):
            self._settled()
        if takes_mail:
            self._receive(_mail_in(answer.body, found), looks)
        else:
            self._hint(answer)
        for item in found["records"] + found["settled"]:
            if not _is_heard(item["status"]):
                return answer._replace(status=item["status"], body=json.dumps(item).encode())
        return answer

    def _finish(self, entries: List[_Entry], stored_to: int, items: List[dict]) -> None:
        """Takes from the queue what is stored, and what was refused for good."""
        if stored_to > self._queue.last_number():
            return self._queue.renew_order()
        for entry, item in zip(entries, items):
            if entry.number > stored_to or item["status"] < 400:
                continue
            if item.get("error") == "invalid_recorded_at":  # Out of the server's range. Its number is used, so it gets another one.
                self._queue.add(entry.kind, entry.name, entry.body, None)
            else:
                self._refused(entry, item.get("msg") or item.get("error") or item["status"])
        self._queue.done(min(stored_to, entries[-1].number))

    def _refused(self, entry: _Entry, why: object) -> None:
        self._queue.count("refused")
        self._say(f"The server refused {entry.kind}/{entry.name}: {why}", level=logging.WARNING)

    def _single(self, connection: _Connection, head: Optional[_Entry]) -> _Answer:
        """The same by single routes: a settlement first, then an entry and mail in turns."""
        settlement, takes_mail, looks = self._settlement, self._takes_mail(), self._looks
        if settlement is not None:
            answer = self._ask(connection, "PUT", f"/v1/mailbox/{settlement[1]}/{settlement[0]}", self._headers())
            if not _is_heard(answer.status):
                return answer
            self._settled()
            return answer._replace(status=200)
        self._is_mail_turn = head is not None and not (self._is_mail_turn and takes_mail)
        if self._is_mail_turn:
            answer = self._send(connection, head)
            if takes_mail and self._is_polling and answer.status == 201 and self._mailbox == 0:
                self._receive(None, looks)
            return self._hint(answer)
        answer = self._ask(connection, "GET", "/v1/mailbox/next", self._headers())
        if answer.status == 204:
            self._receive(None, looks)
        elif answer.status == 200:
            mail = Mail(answer.headers["X-Mail-Id"], answer.headers["X-Mail-Name"], json.loads(answer.body), answer.body)
            self._receive(mail, looks)
        return answer

    def _send(self, connection: _Connection, waiting: _Entry) -> _Answer:
        """Sends an entry by its own route: what is too large for a sync, was sent so before, or all where there is no sync.

        One that was stored, or refused for good, leaves the queue. Returns 201 when it is settled.
        """
        now_ms = self._now_ms()
        entry = self._tried if self._tried is not None and self._tried.number == waiting.number else waiting
        if entry.key is None or entry.key_ms is None or now_ms - entry.key_ms > KEY_SECONDS_MAX * 1_000:
            if entry.key is not None:
                self._queue.count("doubtful")
                self._say("An answer was missing for a day: an entry is sent again, and may be stored twice.", level=logging.WARNING)
            # Decided once, for the time is part of what the key stands for.
            at_ms = self._recorded_ms(entry) if entry.key is None else entry.at_ms
            entry = entry._replace(at_ms=at_ms, unheard=0, key=_uuid7(now_ms), key_ms=now_ms)
            self._note(entry)
        headers = self._headers(Content_Type="application/json", Idempotency_Key=entry.key or "")
        if entry.at_ms is not None:
            headers["Recorded-At"] = _rfc3339(entry.at_ms)
        answer = self._ask(connection, "POST", f"/v1/{entry.kind}/{entry.name}", headers, entry.body)
        if answer.status == 201:
            self._queue.done(entry.number)
            return answer
        code, msg = answer.error()
        if code == "invalid_idempotency_key":  # The clock was wrong. Nothing was stored, so another key is safe.
            self._note(entry._replace(key=None, key_ms=None))
        elif code == "invalid_recorded_at":
            self._note(entry._replace(at_ms=None))
        elif 400 <= answer.status and _is_heard(answer.status):
            self._queue.done(entry.number)
            self._refused(entry, msg or code or answer.status)
            return answer._replace(status=201)
        return answer

    def _note(self, tried: _Entry) -> None:
        """Stores an attempt before it is made. A disk that is full must not hold up what would empty it."""
        self._tried = tried
        with contextlib.suppress(sqlite3.Error):
            self._queue.update(tried)

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

    def _look(self) -> None:
        with self._work:
            self._looks += 1
            self._work.notify_all()

    def _takes_mail(self) -> bool:
        """True if a mail may come with the next answer."""
        with self._work:
            return self._looks > self._looked and self._in_hand is None and self._seconds_to(self._mail_at) == 0

    def _receive(self, mail: Optional[Mail], looks: int) -> None:
        """There is a mail to be handled, or there was none when the mailbox was looked at for the last of so many reasons."""
        with self._work:
            if mail is None:
                self._looked, self._requeues = looks, 0
                self._poll_seconds = min(POLL_SECONDS_MAX, max(POLL_SECONDS_MIN, 1.5 * self._poll_seconds))
            else:
                self._in_hand, self._poll_seconds = mail, POLL_SECONDS_MIN
            self._poll_at = time.monotonic() + self._poll_seconds
            self._work.notify_all()

    def _settled(self) -> None:
        """The server has heard of the settlement."""
        with self._work:
            settlement, self._settlement = self._settlement, None
        if settlement[1] == REQUEUE:
            self._queue.unsettle(settlement[0])

    def _handle_all(self) -> None:
        """Handles mail, one at a time."""
        while True:
            with self._work:
                self._work.wait_for(lambda: self._in_hand is not None or self._closing.is_set())
                mail = self._in_hand
            if mail is None or self._closing.is_set():
                return
            verb = self._handle_once(mail)
            with self._work:
                self._in_hand, self._settlement = None, (mail.id, verb)
                self._requeues = self._requeues + 1 if verb == REQUEUE else 0
                round_ = self._requeues - (self._mailbox or 0)
                # Once the whole mailbox has come round.
                self._mail_at = time.monotonic() + (_backoff(round_) if verb == REQUEUE and round_ >= 0 else 0.0)
                self._work.notify_all()

    def _handle_once(self, mail: Mail) -> str:
        verb = self._queue.verb_of(mail.id)
        if verb is not None:
            return verb
        verb = self._handled(mail)
        try:
            self._queue.settle(mail.id, verb)  # A crash from here on handles it no second time.
        except sqlite3.Error as error:  # The server is told all the same.
            self._say(f"It could not be noted that a mail was handled: {error}")
        return verb

    def _listen(self) -> None:
        """Hears of mail by the event stream."""
        failures, unreachable, stream_again_at, poll = 0, 0, 0.0, POLL_SECONDS_MIN
        while not self._ready.wait(1):
            if self._closing.is_set():
                return
        while not self._closing.is_set():
            try:
                if failures < STREAM_FAILURES_MAX or time.monotonic() >= stream_again_at:
                    for size in self._announcements():
                        failures, unreachable, poll = 0, 0, POLL_SECONDS_MIN
                        if size > 0:
                            self._look()
                    self._wait(self._again_seconds)
                    continue
                # An event is a hint, and the mailbox the truth: without a stream it is looked at now and then.
                self._wait(poll)
                self._look()
                poll = min(POLL_SECONDS_MAX, poll * 1.5)
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
                log.info("event stream: %s", error)
                self._wait(_backoff(failures))
            except Exception:
                log.exception("listening failed")
                self._wait(_backoff(5))

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

    def _handled(self, mail: Mail) -> str:
        try:
            verb = self._handler(mail) if self._handler is not None else REQUEUE
            if verb not in (None, ACK, REJECT, REQUEUE):
                raise ValueError(f"A handler returns None, ACK, REJECT or REQUEUE, not {verb!r}.")
            return verb or ACK
        except Exception:
            log.exception("the handler of mail failed: the mail is rejected")
            return REJECT
