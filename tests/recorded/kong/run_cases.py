#!/usr/bin/env python3
"""Runs recorded gateway cases against any gateway and reports which of them hold.

A case is data: a declarative configuration, the exact bytes a client sends, and what came back
from the gateway the case was recorded from, both on the client's side (status, headers, body) and
on the upstream's side (what the upstream was sent, or that it was not reached). See ../README.md
for the format; `--help` for the options. Python 3.11, standard library only.

What it is not: a load generator, and not a client that repairs what it sends. Request targets,
header names, their order and their case go out as written in the case.

    run_cases.py . --start 'gateway --config {config} --listen 127.0.0.1:{port}'
    run_cases.py . --admin-config http://127.0.0.1:8001/config --port 8000
    run_cases.py . --admin-config ... --port 8000 --record DIR
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import re
import shlex
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from http_wire import Wire, WireError, split_headers, to_text, values_of  # noqa: E402

# --- what differs from one run to the next, and so is neither recorded nor compared -------------

# Response headers never recorded. A case may still name one of them itself.
VOLATILE_RESPONSE = {
    "date", "server", "via", "x-kong-upstream-latency", "x-kong-proxy-latency",
    "x-kong-response-latency", "x-kong-request-id", "connection", "keep-alive",
    "content-length", "transfer-encoding",
}
# Headers the upstream sees that are never recorded. How a body is framed is the hop's own affair.
VOLATILE_UPSTREAM = {"x-kong-request-id", "traceparent", "connection", "via", "content-length",
                     "transfer-encoding"}
# Headers whose value moves but whose form is known: recorded as that form.
FORMS = {"ratelimit-reset": r"^\d+$", "retry-after": r"^\d+$", "age": r"^\d+$",
         "x-cache-key": r"^[0-9a-f]{64}$"}
# The web server's stock error page, sent where the gateway has no body of its own: its text says
# nothing about the gateway, so neither it nor its type is recorded.
STOCK_PAGE = re.compile(r"<html>\r\n<head><title>\d{3} ")
# The gateway's own HTML error page: only the message in it is recorded, not its markup.
HTML_MESSAGE = re.compile(r"<!doctype html>.*?<p>([^<]*?)\.?</p>", re.S)
UUID = re.compile(r"^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$")

# A header of one of these families that an expectation does not list must be absent, so that a
# case fails when a gateway adds a limit, a CORS answer or a consumer's name that the recorded one
# did not send. {"open": true} in an expectation lifts this.
CLOSED_RESPONSE = re.compile(
    r"^((x-)?ratelimit.*|access-control-.*|www-authenticate|x-consumer-.*|x-credential-.*"
    r"|x-cache-(status|key)|retry-after|location|vary|upgrade|allow|set-cookie|kong-.*|age)$", re.I)
CLOSED_UPSTREAM = re.compile(
    r"^(x-consumer-.*|x-credential-.*|x-anonymous-consumer|x-authenticated-.*|x-forwarded-.*"
    r"|x-real-ip|authorization|x-ratelimit-.*)$", re.I)

REQUEST_ID_IN_BODY = [
    (re.compile(r'("request_id"\s*:\s*)"[^"]*"'), r'\1"@REQUEST_ID@"'),
    (re.compile(r"(request_id: |<requestid>|Request ID: )[0-9a-f]{32}", re.I), r"\1@REQUEST_ID@"),
]
TIMEOUT_S = 15.0


# --- the upstreams ---------------------------------------------------------------------------------

def listeners_from(base: int) -> list[socket.socket]:
    """The three upstreams' sockets, on the ports from `base` on."""
    socks = [socket.socket() for _ in range(3)]
    for at, sock in enumerate(socks):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("127.0.0.1", base + at))
        sock.listen(256)
    return socks


class Echo:
    """Upstreams that answer 200 with a JSON account of the request, and remember every request.

    The request steers the answer:
      x-echo-status: 503          status (also: a path that ends in /echo-status/503)
      x-echo-header: Name: value  one more response header, repeatable
      x-echo-body: text           the body instead of the JSON account
      x-echo-delay-ms: 200        wait before answering (also: a path ending in /echo-delay/200)
      x-echo-close: 1             close the connection after the answer
      x-echo-abort: 1             close the connection instead of answering
    """

    def __init__(self, listeners: list[socket.socket]):
        self.lock, self.seen = threading.Lock(), []
        for at, sock in enumerate(listeners):
            threading.Thread(target=self.accept, args=(sock, at), daemon=True).start()

    def take(self) -> list[dict]:
        """The requests seen since the last call."""
        with self.lock:
            out, self.seen = self.seen, []
            return out

    def accept(self, listener, at):
        while True:
            sock, _ = listener.accept()
            threading.Thread(target=self.serve, args=(sock, at), daemon=True).start()

    def serve(self, sock, at):
        wire = Wire(sock)
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while self.answer(wire, at):
                pass
        except (OSError, WireError, ValueError):
            pass
        finally:
            sock.close()

    def answer(self, wire: Wire, at: int) -> bool:
        lines = wire.head()
        if lines is None:
            return False
        method, target, version = lines[0].split(" ", 2)
        headers = split_headers(lines[1:])
        if values_of(headers, "expect") == ["100-continue"]:
            wire.sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        if "chunked" in "".join(values_of(headers, "transfer-encoding")).lower():
            body = wire.chunked()
        else:
            body = wire.exactly(int((values_of(headers, "content-length") or ["0"])[0]))
        view = {"at": at, "method": method, "target": target, "version": version,
                "headers": headers, "body": to_text(body)}
        with self.lock:
            self.seen.append(view)

        def control(name, default=None):
            got = values_of(headers, "x-echo-" + name)
            found = re.search(rf"/echo-{name}/(\d+)$", target.split("?")[0])
            return got[0] if got else found.group(1) if found else default

        time.sleep(int(control("delay-ms", None) or control("delay", "0")) / 1000)
        if control("abort"):
            return False
        status = int(control("status", "200"))
        text = control("body")
        payload = json.dumps(view).encode() if text is None else text.encode()
        out = [["X-Echo-Upstream", str(at)]]
        if text is None:
            out.append(["X-Echo-Account", "1"])
        for extra in values_of(headers, "x-echo-header"):
            name, _, value = extra.partition(":")
            out.append([name.strip(), value.strip()])
        if not values_of(out, "content-type"):
            out.append(["Content-Type", "application/json"])
        if status not in (204, 304):
            out.append(["Content-Length", str(len(payload))])
        close = control("close") or version == "HTTP/1.0"
        out.append(["Connection", "close" if close else "keep-alive"])
        head = f"HTTP/1.1 {status} Echo\r\n" + "".join(f"{n}: {v}\r\n" for n, v in out) + "\r\n"
        silent = method == "HEAD" or status in (204, 304)
        wire.sock.sendall(head.encode() + (b"" if silent else payload))
        return not close


# --- placeholders ----------------------------------------------------------------------------------

class Names:
    """Turns placeholders such as @UP0@ into this run's ports and captured values, and back."""

    def __init__(self, ports: dict[str, int]):
        self.fixed = {k: str(v) for k, v in ports.items()}
        self.captured: dict[str, str] = {}

    def expand(self, value):
        """Placeholders to values, through strings, lists and objects."""
        if isinstance(value, str):
            return re.sub(r"@([A-Z][A-Z0-9_]*)@", lambda m: self.captured.get(
                m[1], self.fixed.get(m[1], m[0])), value)
        if isinstance(value, list):
            return [self.expand(v) for v in value]
        if isinstance(value, dict):
            return {self.expand(k): self.expand(v) for k, v in value.items()}
        return value

    def collapse(self, text: str) -> str:
        """This run's ports back to placeholders."""
        for name, port in self.fixed.items():
            text = re.sub(rf"(?<!\d){port}(?!\d)", f"@{name}@", text)
        return text


def hide_request_id(text: str) -> str:
    for pattern, by in REQUEST_ID_IN_BODY:
        text = pattern.sub(by, text)
    return text


# --- the client ------------------------------------------------------------------------------------

@dataclass
class Reply:
    status: int
    headers: list[list[str]]
    body: str
    interim: list[int] = field(default_factory=list)


def request_bytes(send: dict) -> bytes:
    """The bytes of a step's request. Content-Length is added when a body has no framing header."""
    if "raw" in send:
        return send["raw"].encode()
    body = send.get("body", "").encode("utf-8", "surrogateescape")
    headers = [list(h) for h in send.get("headers", [])]
    names = {n.lower() for n, _ in headers}
    if "body" in send and not names & {"content-length", "transfer-encoding"}:
        headers.append(["Content-Length", str(len(body))])
    start = f"{send.get('method', 'GET')} {send.get('target', '/')} HTTP/{send.get('version', '1.1')}"
    head = "\r\n".join([start] + [f"{n}: {v}" for n, v in headers]) + "\r\n\r\n"
    return head.encode("utf-8") + body


def exchange(port: int, send: dict, tls: bool) -> Reply:
    """Sends one request on a fresh connection and reads the answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S) as plain:
        sock = plain
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls:
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            sock = context.wrap_socket(plain, server_hostname=send.get("sni"))
        sock.sendall(request_bytes(send))
        wire, interim = Wire(sock), []
        while True:
            lines = wire.head()
            if lines is None:
                raise WireError("closed without an answer")
            status = int(lines[0].split(" ")[1])
            if status >= 200:
                break
            interim.append(status)
        headers = split_headers(lines[1:])
        length = values_of(headers, "content-length")
        if send.get("method") == "HEAD" or status in (204, 304):
            body = b""
        elif "chunked" in "".join(values_of(headers, "transfer-encoding")).lower():
            body = wire.chunked()
        elif length:
            body = wire.exactly(int(length[0]))
        else:
            body = wire.rest()
        return Reply(status, headers, to_text(body), interim)


# --- comparing -------------------------------------------------------------------------------------

def header_faults(where: str, want: dict, got: list[list[str]]) -> list[str]:
    faults = []
    for name, rule in want.items():
        have = values_of(got, name)
        if rule is None:
            if have:
                faults.append(f"{where} header {name}: expected none, got {have}")
        elif isinstance(rule, dict):
            if not have:
                faults.append(f"{where} header {name}: missing")
            elif "regex" in rule and not all(re.search(rule["regex"], v) for v in have):
                faults.append(f"{where} header {name}: {have} does not match {rule['regex']!r}")
        else:
            expected = rule if isinstance(rule, list) else [rule]
            if have != expected:
                faults.append(f"{where} header {name}: expected {expected}, got {have}")
    return faults


def closed_faults(where: str, family: re.Pattern, listed: dict, got: list[list[str]]) -> list[str]:
    names = {n.lower() for n in listed}
    return [f"{where} header {n}: {v!r} was not expected" for n, v in got
            if family.match(n) and n.lower() not in names]


def sorted_form(text: str) -> list[list[str]]:
    """The pairs of a form body, by name; the order of values of one name is kept."""
    return sorted((list(pair) for pair in urllib.parse.parse_qsl(text, keep_blank_values=True)),
                  key=lambda pair: pair[0])


def body_faults(where: str, rule, got: str) -> list[str]:
    if rule is None or rule == "ignore":
        return []
    got = hide_request_id(got)
    if "exact" in rule and got != rule["exact"]:
        return [f"{where} body: expected {rule['exact']!r}, got {got[:600]!r}"]
    if "regex" in rule and not re.search(rule["regex"], got, re.S):
        return [f"{where} body: {got[:600]!r} does not match {rule['regex']!r}"]
    if "form" in rule and sorted_form(got) != rule["form"]:
        return [f"{where} body: expected {rule['form']}, got {sorted_form(got)}"]
    if "json" in rule:
        try:
            value = json.loads(got)
        except ValueError:
            return [f"{where} body: expected JSON {json.dumps(rule['json'])}, got {got[:600]!r}"]
        if value != rule["json"]:
            return [f"{where} body: expected {json.dumps(rule['json'])}, got {json.dumps(value)}"]
    return []


def step_faults(send: dict, want: dict, reply: Reply, seen: list[dict]) -> list[str]:
    """Everything in which an answer and what the upstream saw differ from the expectation."""
    faults = []
    if "status" in want and reply.status != want["status"]:
        faults.append(f"status: expected {want['status']}, got {reply.status}"
                      f" ({hide_request_id(reply.body)[:160]!r})")
    headers = want.get("headers", {})
    faults += header_faults("response", headers, reply.headers)
    if not want.get("open") and "headers" in want:
        faults += closed_faults("response", CLOSED_RESPONSE, headers, reply.headers)
    faults += body_faults("response", want.get("body"), reply.body)
    up = want.get("upstream", "ignore")
    if up == "ignore":
        return faults
    if up is None:
        if seen:
            faults.append(f"upstream: expected not to be reached, saw {seen[-1]['method']} {seen[-1]['target']}")
        return faults
    if not seen:
        return faults + ["upstream: was not reached"]
    view = seen[-1]
    for key in ("method", "target", "version"):
        if key in up and view[key] != up[key]:
            faults.append(f"upstream {key}: expected {up[key]!r}, got {view[key]!r}")
    if "at" in up and str(view["at"]) not in [str(a) for a in (
            up["at"] if isinstance(up["at"], list) else [up["at"]])]:
        faults.append(f"upstream at: expected {up['at']}, got {view['at']}")
    low, high = (up["tries"] * 2)[:2] if isinstance(up.get("tries"), list) else (up.get("tries", 1),) * 2
    if "tries" in up and not low <= len(seen) <= high:
        faults.append(f"upstream tries: expected {low}..{high}, got {len(seen)}")
    if "headers" in up:
        faults += header_faults("upstream", up["headers"], view["headers"])
        if not up.get("open"):
            faults += closed_faults("upstream", CLOSED_UPSTREAM, up["headers"], view["headers"])
            # A header the client sent and the recorded upstream did not see must not arrive.
            sent = {n.lower() for n, _ in send.get("headers", [])}
            listed = {n.lower() for n in up["headers"]} | VOLATILE_UPSTREAM
            faults += [f"upstream header {n}: {v!r} should not have arrived"
                       for n, v in view["headers"] if n.lower() in sent - listed]
    if "body" in up:
        faults += body_faults("upstream", up["body"], view["body"])
    return faults


# --- recording -------------------------------------------------------------------------------------

def recorded_headers(headers, volatile, names: Names, config: str, keep=()):
    """The headers as an expectation. A random id (one the configuration does not give) becomes its form."""
    out = {}
    for name, value in headers:
        low = name.lower()
        if low in volatile or low in keep:
            continue
        if low in FORMS and re.search(FORMS[low], value):
            out[name] = {"regex": FORMS[low]}
            continue
        if UUID.match(value) and value not in config:
            out[name] = {"regex": UUID.pattern}
            continue
        value = names.collapse(value)
        known = next((n for n in out if n.lower() == low), None)
        if known is None:
            out[name] = value
        elif isinstance(out[known], list):
            out[known].append(value)
        elif isinstance(out[known], str):
            out[known] = [out[known], value]
    return out


def recorded_body(text: str, kind: str, untouched: str | None):
    """Bytes where they are known to be kept; JSON and forms by value where they were rewritten."""
    if text != untouched:
        if "json" in kind.lower():
            try:
                return {"json": json.loads(text)}
            except ValueError:
                pass
        elif "form-urlencoded" in kind.lower() and text:
            return {"form": sorted_form(text)}
    return {"exact": text}


def recorded(step: dict, reply: Reply, seen: list[dict], names: Names, config: str) -> dict:
    """The expectation an answer yields; what the author wrote in the step's `expect` is kept."""
    fixed = copy.deepcopy(step.get("expect", {}))
    want = {"status": reply.status}
    own = fixed.pop("headers", {})
    want["headers"] = recorded_headers(reply.headers, VOLATILE_RESPONSE | {"x-echo-account"}, names, config,
                                       {n.lower() for n in own}) | own
    text = names.collapse(hide_request_id(reply.body))
    if values_of(reply.headers, "x-echo-account") and seen and reply.body == json.dumps(seen[-1]):
        want["body"] = "ignore"  # the account of the request: recorded below as the upstream's view
    elif (page := HTML_MESSAGE.match(text)) and not values_of(reply.headers, "x-echo-upstream"):
        want["body"] = {"regex": re.escape(page[1]).replace("\\ ", " ")}
    elif STOCK_PAGE.match(text):
        want["body"] = "ignore"
        want["headers"].pop("Content-Type", None)
    else:
        told = next((v for n, v in step["send"].get("headers", []) if n.lower() == "x-echo-body"), None)
        want["body"] = recorded_body(text, "".join(values_of(reply.headers, "content-type")), told)
    own_up = fixed.pop("upstream", {})
    if own_up == "ignore" or not seen:
        want["upstream"] = "ignore" if own_up == "ignore" else None
    else:
        view = seen[-1]
        own_headers = own_up.pop("headers", {}) if own_up else {}
        up = {"at": view["at"], "method": view["method"], "target": names.collapse(view["target"]),
              "headers": recorded_headers(view["headers"], VOLATILE_UPSTREAM, names, config,
                                          {n.lower() for n in own_headers}) | own_headers}
        if view["body"]:
            up["body"] = recorded_body(names.collapse(view["body"]), "".join(values_of(
                view["headers"], "content-type")), step["send"].get("body"))
        if len(seen) > 1:
            up["tries"] = len(seen)
        want["upstream"] = up | (own_up or {})
    return want | fixed


# --- running ---------------------------------------------------------------------------------------

class Runner:
    def __init__(self, args, echo: Echo, names: Names):
        self.args, self.echo, self.names = args, echo, names

    def send(self, step: dict) -> tuple[Reply, list[dict]]:
        self.echo.take()
        port = self.args.tls_port if step.get("tls") else self.args.port
        reply = exchange(port, self.names.expand(step["send"]), bool(step.get("tls")))
        # The upstream has recorded the request before it answers; an answer the gateway gives
        # alone may overtake a request still on its way, hence the short grace.
        time.sleep(self.args.step_gap_ms / 1000)
        return reply, self.echo.take()

    def capture(self, step: dict, reply: Reply, seen: list[dict]):
        for name, source in step.get("capture", {}).items():
            if "upstream" in source:
                value = str(seen[-1][source["upstream"]]) if seen else ""
            else:
                value = "\n".join(values_of(reply.headers, source["header"]))
            if "regex" in source:
                found = re.search(source["regex"], value)
                value = found.group(1) if found else ""
            self.names.captured[name] = value

    def run_step(self, step: dict, record: bool, config: str) -> tuple[list[str], int]:
        """Runs a step (as often as it says) and gives its faults and the number of exchanges."""
        if "align" in step:  # wait for a fresh clock window when too little of this one is left
            window, need = step["align"]["window_s"], step["align"]["min_left_s"]
            left = window - time.time() % window
            if left < need:
                time.sleep(left + 0.05)
        time.sleep(step.get("sleep_ms", 0) / 1000)
        if step.get("tls") and not self.args.tls_port:
            return [], 0
        times = step.get("repeat", 1)
        spread: dict[str, int] = {}
        faults: list[str] = []
        for _ in range(times):
            reply, seen = self.send(step)
            if seen:
                spread[str(seen[-1]["at"])] = spread.get(str(seen[-1]["at"]), 0) + 1
            if record:
                step["expect"] = recorded(step, reply, seen, self.names, config)
                if "spread" in step["expect"]:
                    step["expect"]["upstream"].pop("at", None)
                record = False
            self.capture(step, reply, seen)
            faults += step_faults(self.names.expand(step["send"]),
                                  self.names.expand(step.get("expect", {})), reply, seen)
            if faults:
                break
        for at, (low, high) in step.get("expect", {}).get("spread", {}).items():
            if not low <= spread.get(at, 0) <= high and not faults:
                faults.append(f"spread: upstream {at} was hit {spread.get(at, 0)} of {times} times,"
                              f" expected {low}..{high}")
        return faults, times

    def run_case(self, case: dict, record: bool) -> dict:
        self.names.captured.clear()
        faults, exchanges = [], 0
        for number, step in enumerate(case["steps"], 1):
            try:
                found, done = self.run_step(step, record, case["config"])
            except (OSError, WireError, ValueError) as e:
                found, done = [f"no usable answer: {e or type(e).__name__}"], 1
            exchanges += done
            faults += [f"step {number}: {f}" for f in found]
            if any("timed out" in f for f in found):
                break  # the steps after it would be waited for as long, each
        return {"name": case["name"], "ok": not faults, "faults": faults, "exchanges": exchanges}


def post_config(url: str, text: str, flatten: bool = False) -> tuple[int, dict]:
    """Hands a configuration to a running gateway's /config; gives the status and the JSON reply."""
    data = json.dumps({"config": text}).encode()
    request = urllib.request.Request(url + ("?flatten_errors=1" if flatten else ""), data,
                                     {"Content-Type": "application/json"})
    for _ in range(20):
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                return reply.status, json.loads(reply.read() or b"{}")
        except urllib.error.HTTPError as e:
            if e.code != 429:  # 429: still loading the one before
                return e.code, json.loads(e.read() or b"{}")
            time.sleep(0.25)
    raise RuntimeError("the gateway stays busy (429)")


def stable_entities(value):
    """A /config reply without what differs each time: ids, times, generated keys."""
    if isinstance(value, dict):
        return {k: stable_entities(v) for k, v in value.items() if k not in ("id", "created_at", "updated_at", "ws_id")}
    return [stable_entities(v) for v in value] if isinstance(value, list) else value


def listed_entities(reply: dict) -> dict:
    """{"routes": {id: {...}}} to {"routes": [{...}]}, in an order that does not depend on ids."""
    return {kind: sorted((stable_entities(e) for e in by_id.values()), key=lambda e: json.dumps(e, sort_keys=True))
            for kind, by_id in sorted(reply.items()) if isinstance(by_id, dict)}


def sorted_errors(flattened):
    """Flattened errors in an order that does not depend on the gateway's hash tables."""
    if not isinstance(flattened, list):
        return flattened
    order = lambda value: json.dumps(value, sort_keys=True)
    return sorted((e | {"errors": sorted(e.get("errors", []), key=order)} for e in flattened), key=order)


class AdminGateway:
    """A running gateway that takes each configuration over its /config endpoint."""

    def __init__(self, args, names):
        self.args, self.names = args, names

    def reloads(self) -> int:
        return Path(self.args.admin_settle_log).read_bytes().count(b"reconfigure took")

    def start(self, text: str) -> str | None:
        before = self.reloads() if self.args.admin_settle_log else 0
        status, reply = post_config(self.args.admin_config, text)
        if status != 201:
            return f"the gateway refused the configuration: {status} {json.dumps(reply)[:800]}"
        if self.args.admin_settle_log:
            until = time.time() + 20
            while self.reloads() == before and time.time() < until:
                time.sleep(0.02)
        time.sleep(self.args.settle_ms / 1000)
        return None

    def stop(self):
        pass

    def judge(self, case: dict, record: bool) -> list[str]:
        text = self.names.expand(case["config"])
        if case["kind"] == "loads":
            status, reply = post_config(self.args.admin_config, text)
            got = {"status": status, "entities": listed_entities(reply) if status == 201 else reply}
            if record:
                case["expect_entities"] = got
            return [] if case["expect_entities"] == got else [
                f"entities: expected {json.dumps(case['expect_entities'])}, got {json.dumps(got)}"]
        status, plain = post_config(self.args.admin_config, text)
        _, flat = post_config(self.args.admin_config, text, flatten=True)
        got = {"status": status, "body": plain, "flattened": sorted_errors(flat.get("flattened_errors"))}
        if status < 300:
            got = {"status": status}
        if record:
            case["expect_errors"] = got
        return [f"{k}: expected {json.dumps(v)}, got {json.dumps(got.get(k))}"
                for k, v in case["expect_errors"].items() if got.get(k) != v]


class StartedGateway:
    """A gateway started anew for each configuration by a command."""

    def __init__(self, args, names):
        self.args, self.names, self.child = args, names, None
        self.dir = tempfile.TemporaryDirectory(prefix="run-cases-")
        os.chmod(self.dir.name, 0o755)  # a gateway may read its configuration as another user

    def command(self, template: str, config: str) -> list[str]:
        a = self.args
        return [part.format(config=config, port=a.port, tls_port=a.tls_port, status_port=a.status_port,
                            workdir=self.dir.name, flavor=a.flavor) for part in shlex.split(template)]

    def write(self, text: str) -> str:
        path = Path(self.dir.name, "kong.yml")
        path.write_text(text)
        return str(path)

    def ready(self) -> bool:
        a = self.args
        try:
            if a.ready:
                url = a.ready.format(port=a.port, status_port=a.status_port)
                with urllib.request.urlopen(url, timeout=2) as reply:
                    return reply.status == 200
            socket.create_connection(("127.0.0.1", a.port), timeout=2).close()
            return True
        except OSError:
            return False

    def start(self, text: str) -> str | None:
        log = Path(self.dir.name, "gateway.log")
        with log.open("wb") as out:
            self.child = subprocess.Popen(self.command(self.args.start, self.write(text)), stdout=out,
                                          stderr=subprocess.STDOUT, start_new_session=True)
        until = time.time() + self.args.start_timeout_s
        while time.time() < until:
            if self.child.poll() is not None:
                return f"the gateway ended with {self.child.returncode}: {log.read_text(errors='replace')[-800:]}"
            if self.ready():
                return None
            time.sleep(0.02)
        self.stop()
        return f"the gateway was not ready after {self.args.start_timeout_s} s"

    def stop(self):
        if self.child and self.child.poll() is None:
            self.child.send_signal(signal.SIGTERM)
            try:
                self.child.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(self.child.pid, signal.SIGKILL)
                self.child.wait()

    def judge(self, case: dict, record: bool) -> list[str]:
        """Without an admin endpoint only accepting or refusing is judged, by `--validate`."""
        if not self.args.validate:
            return ["skipped: needs --validate or --admin-config"]
        path = self.write(self.names.expand(case["config"]))
        done = subprocess.run(self.command(self.args.validate, path), capture_output=True, text=True, timeout=60)
        accepted = case["kind"] == "loads" or case["expect_errors"]["status"] < 300
        if accepted == (done.returncode == 0):
            return []
        return [f"validation ended with {done.returncode}: {(done.stdout + done.stderr)[-600:]}"]


def read_cases(paths: list[str]) -> list[tuple[Path, list[dict]]]:
    files = []
    for path in map(Path, paths):
        files += sorted(path.rglob("*.json")) if path.is_dir() else [path]
    return [(f, json.loads(f.read_text())) for f in files]


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("paths", nargs="+", help="case files, or folders of them")
    p.add_argument("--start", help="command that runs the gateway; {config} {port} {tls_port} {status_port} {workdir} {flavor}")
    p.add_argument("--validate", help="command that checks a configuration; exit status 0 = valid; {config}")
    p.add_argument("--ready", help="URL that answers 200 once ready; default: the port accepts")
    p.add_argument("--start-timeout-s", type=float, default=30)
    p.add_argument("--admin-config", help="/config of a running gateway, used instead of --start")
    p.add_argument("--admin-settle-log", help="log of the running gateway in which a line 'reconfigure took' follows each load")
    p.add_argument("--settle-ms", type=int, default=60, help="wait after a load over --admin-config")
    p.add_argument("--port", type=int, default=18000, help="the gateway's HTTP port")
    p.add_argument("--tls-port", type=int, default=0, help="its TLS port; steps with tls are skipped without")
    p.add_argument("--status-port", type=int, default=18007)
    p.add_argument("--upstream-base", type=int, default=1980, help="first of the three upstream ports")
    p.add_argument("--step-gap-ms", type=int, default=10, help="wait after each exchange")
    p.add_argument("--flavor", default="traditional_compatible",
                   help="Kong router flavor under test: cases recorded for another are left out; {flavor} in --start")
    p.add_argument("--only", help="regular expression on case names")
    p.add_argument("--record", metavar="DIR", help="fill the expectations from the gateway, write the files to DIR")
    p.add_argument("--json", metavar="OUT", help="write the results as JSON")
    p.add_argument("-q", "--quiet", action="store_true", help="only the summary")
    args = p.parse_args()
    if bool(args.start) == bool(args.admin_config):
        p.error("give either --start or --admin-config")

    base = args.upstream_base
    ports = {f"UP{i}": base + i for i in range(3)} | {"DEAD": base + 9, "PORT": args.port}
    if args.tls_port:
        ports["TLSPORT"] = args.tls_port
    names, echo = Names(ports), Echo(listeners_from(base))
    runner = Runner(args, echo, names)
    gateway = AdminGateway(args, names) if args.admin_config else StartedGateway(args, names)
    files = read_cases(args.paths)

    # Cases that share a configuration run on one start of the gateway, in the files' order.
    groups: dict[str, list[dict]] = {}
    for _, cases in files:
        for case in cases:
            if re.search(args.only or "", case["name"]) and case.get("router_flavor", args.flavor) == args.flavor:
                groups.setdefault(case["config"], []).append(case)

    results, began = [], time.time()
    try:
        for text, cases in groups.items():
            live = [c for c in cases if "kind" not in c]
            for case in [c for c in cases if "kind" in c]:
                faults = gateway.judge(case, bool(args.record))
                results.append({"name": case["name"], "ok": not faults, "faults": faults, "exchanges": 1})
            if live:
                refused = gateway.start(names.expand(text))
                for case in live:
                    results.append({"name": case["name"], "ok": False, "faults": [refused], "exchanges": 0}
                                   if refused else runner.run_case(case, bool(args.record)))
                    refused = refused and "the gateway refused this configuration: see the case before"
                gateway.stop()
            for result in results[-len(cases):]:
                if not args.quiet:
                    print("ok  " if result["ok"] else "FAIL", result["name"], flush=True)
                    for fault in result["faults"]:
                        print("       ", fault)
    finally:
        gateway.stop()

    if args.record:
        for path, cases in files:
            Path(args.record).mkdir(parents=True, exist_ok=True)
            Path(args.record, path.name).write_text(json.dumps(cases, indent=1, ensure_ascii=False) + "\n")
    passed = sum(r["ok"] for r in results)
    print(f"{passed} of {len(results)} cases pass, {sum(r['exchanges'] for r in results)} exchanges,"
          f" {time.time() - began:.0f} s")
    if args.json:
        Path(args.json).write_text(json.dumps({"passed": passed, "total": len(results), "results": results}, indent=1))
    return 0 if passed == len(results) else 1


if __name__ == "__main__":
    sys.exit(main())
