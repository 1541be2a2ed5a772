"""One slot of a run: reserved ports, a folder, and the one gateway process that is up at a time.

Slots work side by side, so nothing in one may be visible to another. A port is chosen by the
system and stays bound by this process until the end of the run; a port that the gateway shall
listen on is bound here without listening and with SO_REUSEADDR and SO_REUSEPORT, which lets the
gateway (that sets either of the two) bind it too and nobody be given it by chance.

It knows how Weir is started, stopped and asked; it knows nothing of cases.
"""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

START_TIMEOUT_S = 10.0
STOP_TIMEOUT_S = 3.0
CHECK_TIMEOUT_S = 20.0
# A gateway that fails this way so often in a row will not recover: the rest is failed unasked.
GIVE_UP_AFTER = 6
NOT_AVAILABLE = re.compile(r'plugin "([^"]+)" is not available')


class Closed(Exception):
    """The run is ending: no process may be started any more."""


class Children:
    """Every process of the run, so that none outlives it. Each leads a process group of its own."""

    def __init__(self):
        self._lock, self._alive, self._closed = threading.Lock(), set(), False

    def start(self, command: list[str], **options) -> subprocess.Popen:
        with self._lock:
            if self._closed:
                raise Closed
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, **options)
            self._alive.add(child)
            return child

    def forget(self, child: subprocess.Popen):
        """Ends what is left of the child's group and reaps it."""
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        child.wait()
        with self._lock:
            self._alive.discard(child)

    def close(self):
        with self._lock:
            self._closed, left = True, list(self._alive)
        for child in left:
            self.forget(child)


def listening() -> socket.socket:
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    sock.listen(256)
    return sock


def reserved() -> socket.socket:
    """A port that is taken, refuses connections, and that the gateway may bind as well."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    sock.bind(("127.0.0.1", 0))
    return sock


def port_of(sock: socket.socket) -> int:
    return sock.getsockname()[1]


def _write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    return path


class GatewaySlot:
    """Starts the gateway for one configuration after another."""

    def __init__(self, weir: Path, folder: Path, children: Children):
        self.weir, self.folder, self.children = weir, folder, children
        folder.mkdir()
        # A running gateway takes over a changed file, so what is only checked lies elsewhere.
        self._checked = folder / "checked"
        self._checked.mkdir()
        self._held = [reserved() for _ in range(5)]
        self.port, self.tls_port, self.status_port, self.dead_port, self.admin_port = map(port_of, self._held)
        self.child: subprocess.Popen | None = None
        self.log = folder / "gateway.log"
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
        self.stuck = 0  # how often in a row the gateway did not get ready or left a case unanswered
        self.killed = 0  # how often it had to be killed because SIGTERM did not end it

    def start(self, config_name: str, text: str, flags: list[str]) -> str | None:
        """Starts the gateway on a file and waits until it is ready; gives what went wrong, if anything."""
        self.stop()
        return self._start(["-c", str(_write(self.folder / config_name, text)), *flags])

    def start_empty(self, admin_flag: str, flags: list[str]) -> str | None:
        """Likewise without a configuration, and with an Admin API that takes one."""
        self.stop()
        return self._start([admin_flag, f"127.0.0.1:{self.admin_port}", *flags])

    def _start(self, flags: list[str]) -> str | None:
        command = [str(self.weir), "run", "--listen", f"127.0.0.1:{self.port}",
                   "--listen-tls", f"127.0.0.1:{self.tls_port}", "--status", f"127.0.0.1:{self.status_port}",
                   "--workers", "1", *flags]
        with self.log.open("wb") as out:
            self.child = self.children.start(command, stdout=out, stderr=subprocess.STDOUT,
                                             cwd=self.folder, env=self.environment)
        until = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < until:
            if ended := self.ended():
                self.stop()
                return ended
            if self._ready():
                return None
            time.sleep(0.005)
        self.stuck += 1
        self.stop()
        return f"the gateway was not ready after {START_TIMEOUT_S:.0f} s: {self.log_tail()}"

    def given_up(self) -> str | None:
        """Why nothing more is tried in this slot, if so."""
        return f"not tried: the gateway got stuck {self.stuck} times in a row" if self.stuck >= GIVE_UP_AFTER else None

    def running(self) -> bool:
        return self.child is not None and self.child.poll() is None

    def ended(self) -> str | None:
        """How the gateway ended, if it did so by itself."""
        if self.child is None or self.child.poll() is None:
            return None
        return f"the gateway ended with {self.child.returncode}: {self.log_tail()}"

    def stop(self):
        child, self.child = self.child, None
        if child is None:
            return
        if child.poll() is None:
            child.send_signal(signal.SIGTERM)
            try:
                child.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self.killed += 1
        self.children.forget(child)

    def check(self, config_name: str, text: str, flags: list[str]) -> tuple[int | None, str]:
        """`weir check`: its exit status (None: it took too long) and what it said."""
        path = _write(self._checked / config_name, text)
        child = self.children.start([str(self.weir), "check", str(path), *flags],
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                    cwd=self.folder, env=self.environment)
        try:
            said, _ = child.communicate(timeout=CHECK_TIMEOUT_S)
            return child.returncode, said.decode(errors="replace")
        except subprocess.TimeoutExpired:
            return None, f"no answer after {CHECK_TIMEOUT_S:.0f} s"
        finally:
            self.children.forget(child)
            child.stdout.close()

    def log_tail(self) -> str:
        return self.log.read_text(errors="replace").strip()[-600:]

    def log_size(self) -> int:
        return self.log.stat().st_size

    def panics_since(self, offset: int) -> list[str]:
        """Panics that the gateway logged after `offset`: a worker that survives one is still wrong."""
        with self.log.open("rb") as log:
            log.seek(offset)
            return [line.decode(errors="replace") for line in log if b"panicked at" in line]

    def _ready(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.status_port, timeout=1)
        try:
            connection.request("GET", "/status/ready")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
