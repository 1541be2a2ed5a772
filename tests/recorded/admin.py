"""Loading a configuration through the Admin APIs in place of a file (`run.py --through admin`).

Kong's goes whole to `POST /config`; of APISIX's, each resource goes to `PUT /apisix/admin/KIND/ID`, those that others refer
to first. What an Admin API answered is what decides whether a configuration is accepted.
"""

from __future__ import annotations

import http.client
import json
import re
import sys
import time
import urllib.parse

try:
    import yaml
except ImportError:
    yaml = None

ANSWER_TIMEOUT_S = 10.0
SERVED_TIMEOUT_S = 10.0
# The key of APISIX's documentation, which its clients show as long as Weir has no users.
STOCK_KEY = "edd1c9f034335f136f87ad84b625c8f1"
# What refers to others comes after them.
ORDER = ["secrets", "protos", "plugin_metadata", "ssls", "upstreams", "services", "plugin_configs", "consumer_groups",
         "consumers", "global_rules", "routes", "stream_routes"]


class Refused(Exception):
    """An Admin API did not take a configuration."""

    def __init__(self, status: int, body: str):
        super().__init__(f"{status}: {body[:500]}")
        self.status, self.body = status, body


def usable() -> str | None:
    """Why it cannot be done here, if so."""
    return None if yaml else f"{sys.executable} has no module yaml: run this by scripts/python (Debian: python3-yaml)"


def call(port: int, method: str, path: str, body: object = None) -> tuple[int, dict[str, str], str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWER_TIMEOUT_S)
    try:
        headers = {"X-API-KEY": STOCK_KEY} | ({} if body is None else {"Content-Type": "application/json"})
        text = None if body is None else json.dumps(body).encode("utf-8", "surrogateescape")
        connection.request(method, path, body=text, headers=headers)
        answer = connection.getresponse()
        read = answer.read().decode("utf-8", "replace")
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, read
    finally:
        connection.close()


def wait_until_served(status_port: int, revision: int):
    """Waits until the gateway serves what was committed up to a revision."""
    until = time.monotonic() + SERVED_TIMEOUT_S
    while time.monotonic() < until:
        _, _, body = call(status_port, "GET", "/status")
        store = json.loads(body).get("store") or {}
        if refusal := store.get("refused_because"):
            raise Refused(0, f"stored, and not served: {refusal}")
        if store.get("revision", 0) >= revision:
            if skipped := store.get("skipped"):
                raise Refused(0, f"stored, and left out: {skipped}")
            return
        time.sleep(0.002)
    raise Refused(0, f"revision {revision} is not served after {SERVED_TIMEOUT_S:.0f} s")


def load_kong(port: int, text: str) -> int:
    """Gives the revision that is to be served."""
    status, _, body = call(port, "POST", "/config", {"config": text})
    if status != 201:
        raise Refused(status, body)
    _, headers, _ = call(port, "GET", "/config")
    return int(headers["etag"].strip('"'))


def kong_errors(port: int, text: str) -> tuple[int, object]:
    """How `POST /config` answers."""
    status, _, body = call(port, "POST", "/config", {"config": text})
    return status, json.loads(body)


def load_apisix(port: int, text: str) -> int:
    """Gives the revision that is to be served."""
    try:
        document = yaml.load(text, Loader)
    except yaml.YAMLError as error:
        raise Refused(0, f"no YAML: {error}") from error
    if not isinstance(document, dict):
        raise Refused(0, "no map")
    kinds = sorted(document, key=lambda kind: ORDER.index(kind) if kind in ORDER else len(ORDER))
    revision = 0
    for kind in kinds:
        for item in document[kind] or []:
            revision = put(port, kind, item)
    return revision


def put(port: int, kind: str, item: object) -> int:
    """Writes one resource; gives the revision of the write."""
    fields = dict(item) if isinstance(item, dict) else {}
    name = fields.get("username", fields.get("id")) if kind == "consumers" else fields.get("id")
    # In a file credentials stand among the consumers, under a path; no other id has a slash.
    own = f"/apisix/admin/{kind}/{urllib.parse.quote(str(name), safe='/')}"
    has_path = kind != "consumers" or "/" in str(name)
    if "/" in str(name):
        item = {field: value for field, value in fields.items() if field != "id"}
    status, _, body = call(port, "PUT", own if has_path and name is not None else f"/apisix/admin/{kind}", item)
    if status >= 300:
        raise Refused(status, body)
    _, _, body = call(port, "GET", own)
    return json.loads(body)["modifiedIndex"]


if yaml:
    class Loader(yaml.SafeLoader):
        """YAML as the originals read it: `on` and `yes` are texts, and so are dates."""

    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers
                if tag not in ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:bool")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^(?:true|false)$"), "tf")
