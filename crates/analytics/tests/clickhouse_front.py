"""ClickHouse over HTTP for tests, by the engine in Python's module chdb: prints its port, then serves one call at a time.

With a password as argument, calls need it. After SIGUSR1 it is away until the next one: it answers 503.
"""

import re
import signal
import sys
import tempfile
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlsplit

from chdb import session

engine = session.Session(tempfile.mkdtemp())
PASSWORD = sys.argv[1] if len(sys.argv) > 1 else ""
away = False


def toggle(*_):
    global away
    away = not away


signal.signal(signal.SIGUSR1, toggle)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        query = parse_qs(urlsplit(self.path).query).get("query", [""])[0]
        if away:
            return self.answer(503, b"the server is away")
        if PASSWORD and self.headers.get("X-ClickHouse-Key") != PASSWORD:
            return self.answer(403, b"Code: 516. Authentication failed")
        try:
            return self.answer(200, run(query, body))
        except Exception as error:  # what the engine refuses is an answer
            return self.answer(500, str(error).encode())

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def run(query, body):
    if not query:
        query = body.decode()
    elif body:
        # The engine reads rows from a file.
        with tempfile.NamedTemporaryFile() as rows:
            rows.write(body)
            rows.flush()
            source = rf"\1 FROM INFILE '{rows.name}'\2"
            engine.query(re.sub(r"^(INSERT INTO \w+ \([^)]*\))(.*)$", source, query, count=1, flags=re.S))
            return b""
    form = re.search(r" FORMAT (\w+)$", query)
    if form:
        query = query[: form.start()]
    answer = engine.query(query, form.group(1) if form else "TabSeparated")
    return bytes(answer.bytes())


server = HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
