"""Lets a test drive the Python client: commands come as JSON lines, what happens goes out as JSON lines."""

import json
import sys
import threading
import time
from datetime import datetime

sys.path.insert(0, sys.argv[1])
import fleetpost  # noqa: E402

lock = threading.Lock()


def say(**event):
    with lock:
        print(json.dumps(event), flush=True)


options = json.loads(sys.stdin.readline())
fleetpost.RETRY_SECONDS_MAX = options.pop("retry_seconds_max", 60)
options["is_polling"] = options.pop("polls", False)
fleetpost.STREAM_AGAIN_SECONDS = fleetpost.POLL_SECONDS_MIN = fleetpost.UNAUTHORIZED_SECONDS_MAX = 1.0
device = fleetpost.Device(**options, on_status=lambda status: say(event="status", **status._asdict()))


def handle(mail):
    global busy_until
    say(event="mail", id=mail.id, name=mail.name, payload=mail.payload)
    time.sleep(mail.payload.get("seconds", 0))
    if mail.payload.get("verb") == "raise":
        raise RuntimeError("told to")
    if busy_until is None:
        busy_until = time.monotonic() + mail.payload.get("busy", 0)
    if time.monotonic() < busy_until:
        return "requeue"
    if mail.payload.get("verb") == "requeue" and mail.id not in requeued:
        requeued.add(mail.id)
        return "requeue"
    return mail.payload["verb"] if mail.payload.get("verb") in ("ack", "reject") else None


requeued, busy_until = set(), None
for line in sys.stdin:
    command = json.loads(line)
    do = command.pop("do")
    if do == "mail":
        device.on_mail(handle)
    elif do == "heartbeat":
        device.heartbeat()
    elif do == "flush":
        say(event="flushed", empty=device.flush(command["seconds"]), **device.status._asdict())
    elif do == "sleep":
        say(event="slept", empty=device.sleep(command["seconds"]), **device.status._asdict())
    elif do == "close":
        device.close()
        break
    else:
        at = command.pop("at", None)
        getattr(device, do)(**command, at=datetime.fromisoformat(at) if at else None)
        say(event="queued", payload=command["payload"])
