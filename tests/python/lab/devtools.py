"""Drives headless Chromium over its DevTools pipe: file descriptors 3 and 4, messages end with a
zero byte."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pathlib
import select
import shutil
import signal
import tempfile
import time
from typing import Any

Message = dict[str, Any]

NAMES = ("chromium", "chromium-browser", "google-chrome")


def find_browser() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def _pipe() -> tuple[int, int]:
    """Two descriptors above the numbers that the browser uses itself."""
    ends = os.pipe()
    high = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends)
    for end in ends:
        os.close(end)
    return high[0], high[1]


class Browser:
    """One browser process with a temporary profile. `events` keeps the events that arrive
    meanwhile."""

    def __init__(self, program: str, seconds: float = 90) -> None:
        self.seconds = seconds
        self.events: list[Message] = []
        self._unread = b""
        self._number = 0
        self._profile = tempfile.mkdtemp(prefix="baregrad-browser-")
        commands_out, self._to = _pipe()
        self._from, answers_in = _pipe()
        self._log = pathlib.Path(self._profile) / "log"
        arguments = [
            program,
            "--headless=new",
            "--no-sandbox",  # root cannot use the sandbox, and the browser opens only our file
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--no-first-run",
            f"--user-data-dir={self._profile}",
            "--remote-debugging-pipe",
            "about:blank",
        ]
        log = os.open(self._log, os.O_WRONLY | os.O_CREAT)
        self._process = os.posix_spawn(
            program,
            arguments,
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, log, 1),
                (os.POSIX_SPAWN_DUP2, log, 2),
                (os.POSIX_SPAWN_DUP2, commands_out, 3),
                (os.POSIX_SPAWN_DUP2, answers_in, 4),
            ],
            setpgroup=0,
        )
        for descriptor in (log, commands_out, answers_in):
            os.close(descriptor)

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process, signal.SIGKILL)
        os.waitpid(self._process, 0)
        os.close(self._to)
        os.close(self._from)
        shutil.rmtree(self._profile, ignore_errors=True)

    def _receive(self, deadline: float) -> Message:
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._from], [], [], max(0.0, deadline - time.monotonic()))
            data = os.read(self._from, 1 << 20) if ready else b""
            if not data:
                why = "ended" if ready else "did not answer in time"
                raise RuntimeError(f"the browser {why}: {self._log.read_text(errors='replace')[-2000:]}")
            self._unread += data
        line, _, self._unread = self._unread.partition(b"\0")
        message: Message = json.loads(line)
        return message

    def send(self, method: str, session: str | None = None, **parameters: Any) -> Message:
        """Sends a command and returns its result."""
        self._number += 1
        command: Message = {"id": self._number, "method": method, "params": parameters}
        if session:
            command["sessionId"] = session
        data = json.dumps(command).encode() + b"\0"
        while data:
            data = data[os.write(self._to, data) :]
        deadline = time.monotonic() + self.seconds
        while True:
            message = self._receive(deadline)
            if message.get("id") != self._number:
                self.events.append(message)
            elif "error" in message:
                raise RuntimeError(f"{method}: {message['error']['message']}")
            else:
                return message.get("result", {})  # type: ignore[no-any-return]

    def wait_for(self, event: str, session: str) -> None:
        """Waits for the event in the session."""
        deadline = time.monotonic() + self.seconds
        while not any(each.get("method") == event and each.get("sessionId") == session for each in self.events):
            self.events.append(self._receive(deadline))

    def new_tab(self) -> str:
        """A session with a new empty page."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        session: str = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        return session

    def events_of(self, session: str, method: str) -> list[Message]:
        return [
            each["params"] for each in self.events if each.get("sessionId") == session and each.get("method") == method
        ]
