"""HTTP/1.x as it comes from a socket: heads, bodies, and the texts of both. It sends nothing and repairs nothing."""

from __future__ import annotations


def to_text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")


class WireError(Exception):
    """The peer closed early or sent something that is not HTTP/1.x."""


class Wire:
    """Buffered reads of HTTP/1.x messages from a socket."""

    def __init__(self, sock):
        self.sock, self.buf = sock, b""

    def fill(self) -> bool:
        data = self.sock.recv(65536)
        self.buf += data
        return bool(data)

    def head(self) -> list[str] | None:
        """The start line and the header lines, or None when the peer closed before any of them."""
        while b"\r\n\r\n" not in self.buf:
            if self.buf[:1] == b"\x16":
                raise WireError("TLS on a plain port")
            if len(self.buf) > 1 << 20:
                raise WireError("head over 1 MiB")
            if not self.fill():
                if self.buf.strip():
                    raise WireError(f"closed inside a head: {self.buf[:200]!r}")
                return None
        head, self.buf = self.buf.split(b"\r\n\r\n", 1)
        return to_text(head.lstrip(b"\r\n")).split("\r\n")

    def exactly(self, n: int) -> bytes:
        while len(self.buf) < n:
            if not self.fill():
                raise WireError(f"closed {n - len(self.buf)} bytes before the end of a body")
        out, self.buf = self.buf[:n], self.buf[n:]
        return out

    def line(self) -> bytes:
        while b"\r\n" not in self.buf:
            if not self.fill():
                raise WireError("closed inside a chunk header")
        out, self.buf = self.buf.split(b"\r\n", 1)
        return out

    def chunked(self) -> bytes:
        body = b""
        while size := int(self.line().split(b";")[0], 16):
            body += self.exactly(size)
            self.line()
        while self.line():
            pass
        return body

    def rest(self) -> bytes:
        while self.fill():
            pass
        out, self.buf = self.buf, b""
        return out


def split_headers(lines: list[str]) -> list[list[str]]:
    return [[n.strip(), v.strip()] for n, _, v in (line.partition(":") for line in lines)]


def values_of(headers: list[list[str]], name: str) -> list[str]:
    return [v for n, v in headers if n.lower() == name.lower()]
