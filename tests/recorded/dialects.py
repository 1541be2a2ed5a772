"""The two dialects whose recorded cases are run: how each one's cases are sent and compared.

The comparing itself is the runner's that lies with the cases (`kong/run_cases.py`,
`apisix/run_cases.py`); here its fixed ports are replaced by those of a slot. What stands at the
top of each dialect (TOPICS, and BUILT, read from docs/compatibility.md) is what the summary `--supported` counts.
"""

from __future__ import annotations

import http.client
import importlib.util
import json
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace

import admin
from gateway_slot import NOT_AVAILABLE, GatewaySlot, listening, port_of

HERE = Path(__file__).resolve().parent
ANSWER_TIMEOUT_S = 10.0
UPSTREAMS = 3


def _served(column: int) -> frozenset[str]:
    """The names of the plugins that Weir serves, from the generated table: column 2 is Kong's, 3 APISIX's."""
    text = (HERE.parent.parent / "docs" / "compatibility.md").read_text(encoding="utf-8")
    table = text.split("| in Weir's catalogue | Kong | APISIX |\n|---|---|---|\n")[1].split("\n\n")[0]
    return frozenset(name for row in table.splitlines() for name in re.findall(r"`([^`]+)`", row.split("|")[column]))


@dataclass
class Result:
    """What became of a case: `passed` or `failed`."""

    name: str
    outcome: str
    faults: list[str] = field(default_factory=list)
    missing: set[str] = field(default_factory=set)  # plugins the gateway says it has not


def _load_runner(dialect: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"recorded_{dialect}", HERE / dialect / "run_cases.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module


class Dialect:
    """What the dialects share. A dialect is made once; `client(slot)` gives what sends its cases there."""

    name: str
    config_name: str
    flavor_key: str
    default_flavor: str
    TOPICS: str
    BUILT: frozenset[str]
    CATALOGUE: frozenset[str]
    plugin_use: str

    def __init__(self):
        self.runner = _load_runner(self.name)
        self.runner.TIMEOUT_S = ANSWER_TIMEOUT_S
        self._use = re.compile(self.plugin_use.format("|".join(sorted(self.CATALOGUE, key=len, reverse=True))), re.M)

    def cases(self) -> list[tuple[str, dict]]:
        """Every case with its topic (the name of its file)."""
        return [(path.stem, case) for path in sorted((HERE / self.name).glob("*.json"))
                for case in json.loads(path.read_text(encoding="utf-8"))]

    def flavor(self, case: dict) -> str:
        """The router that a case was recorded with."""
        return case.get(self.flavor_key) or self.default_flavor

    def plugins(self, case: dict) -> set[str]:
        """The original's plugins that a configuration names, read off its text."""
        return {next(filter(None, found.groups())) for found in self._use.finditer(case["config"])}

    def supported(self, topic: str, case: dict) -> bool:
        return bool(re.fullmatch(self.TOPICS, topic)) and self.plugins(case) <= self.BUILT

    def judge_validation(self, said: str, status: int | None, case: dict) -> Result:
        """Compares accepting or refusing a configuration. A refusal for want of a plugin that the
        original has says nothing about the fault the case is about, and so does not pass."""
        wanted = self.should_load(case)
        missing = set(NOT_AVAILABLE.findall(said)) & self.CATALOGUE
        if wanted:
            faults = [] if status == 0 else [f"check ended with {status}: {said[-500:]}"]
        elif status == 0:
            faults = [f"check accepted it; the original says: {self.original_words(case)[:300]}"]
        elif status != 1:
            faults = [f"check ended with {status}, expected 1: {said[-500:]}"]
        else:
            errors = [line for line in said.splitlines() if re.search(r": error\b[^:]*: ", line)]
            only = missing and all(set(NOT_AVAILABLE.findall(line)) & missing for line in errors)
            faults = [f"check refused it only for want of a plugin: {said[-300:]}"] if only else []
        return Result(case["name"], "failed" if faults else "passed", faults, missing if faults else set())


class Kong(Dialect):
    name, config_name, flavor_key = "kong", "kong.yml", "router_flavor"
    default_flavor = "traditional_compatible"
    TOPICS = ("routing-.*|router-traditional|path-handling|key-auth|jwt|rate-limiting|cors|request-termination"
              "|correlation-id|plugin-scope|proxy-headers|errors|entities|defaults|invalid|accepted|upstreams|protocols"
              "|proxy-cache|redirect|request-transformer|response-transformer")
    BUILT = _served(2)
    # The plugins of the original that recorded cases use.
    CATALOGUE = BUILT | frozenset(
        """acl acme ai-prompt-decorator ai-prompt-guard ai-prompt-template azure-functions basic-auth bot-detection
        datadog grpc-gateway grpc-web hmac-auth http-log ip-restriction ldap-auth loggly oauth2 post-function
        pre-function proxy-cache redirect request-size-limiting request-transformer response-ratelimiting
        response-transformer standard-webhooks syslog tcp-log""".split())
    plugin_use = r"""\bname["']?\s*:\s*["']?({0})(?=["'\s,}}]|$)"""

    def flags(self, flavor: str) -> list[str]:
        return ["--kong-router", flavor]

    def check_flags(self, flavor: str) -> list[str]:
        return []

    def should_load(self, case: dict) -> bool:
        return case["kind"] == "loads" or case["expect_errors"]["status"] < 300

    def original_words(self, case: dict) -> str:
        return json.dumps(case["expect_errors"]["body"].get("fields"))

    admin_flag = "--kong-admin"
    load = staticmethod(admin.load_kong)

    def judge_admin(self, port: int, config: str, case: dict) -> Result:
        """Compares how `POST /config` answers: what it refuses, word for word, and what becomes of what it takes."""
        status, body = admin.kong_errors(port, config)
        if case["kind"] == "loads":
            faults = [] if status == case["expect_entities"]["status"] else [f"{status}: {json.dumps(body)[:500]}"]
        else:
            expected = case["expect_errors"]
            is_same = (status, body) == (expected["status"], expected["body"])
            faults = [] if is_same else [f"answered {status} {json.dumps(body)[:800]}", f"expected {json.dumps(expected)[:800]}"]
        return Result(case["name"], "failed" if faults else "passed", faults)

    def client(self, slot: GatewaySlot) -> "KongClient":
        return KongClient(self.runner, slot)


class KongClient:
    """Sends Kong's cases in one slot."""

    def __init__(self, runner: ModuleType, slot: GatewaySlot):
        listeners = [listening() for _ in range(UPSTREAMS)]
        ports = {f"UP{at}": port_of(sock) for at, sock in enumerate(listeners)}
        self.names = runner.Names(ports | {"DEAD": slot.dead_port, "PORT": slot.port, "TLSPORT": slot.tls_port})
        arguments = SimpleNamespace(port=slot.port, tls_port=slot.tls_port, step_gap_ms=10)
        self.runner = runner.Runner(arguments, runner.Echo(listeners), self.names)

    def config(self, case: dict) -> str:
        return self.names.expand(case["config"])

    def faults(self, case: dict) -> list[str]:
        return self.runner.run_case(case, record=False)["faults"]


class Apisix(Dialect):
    name, config_name, flavor_key = "apisix", "apisix.yaml", "router"
    default_flavor = "radixtree_host_uri"
    TOPICS = ("routing-.*|merge-services|plugin-configs|global-rules|precedence-consumer|plugin-meta|variables"
              "|standalone-format|errors|lenient|invalid|upstream-.*|key-auth|jwt-auth|limit-count|cors|request-id"
              "|body-transformer|combinations|echo|error-page|fault-injection|graphql-plugins|gzip|mocking|proxy-cache"
              "|proxy-control|proxy-mirror|proxy-rewrite|redirect|response-rewrite|traffic-label|traffic-split")
    BUILT = _served(3)
    # The plugins of the original that recorded cases use.
    CATALOGUE = BUILT | frozenset(
        """acl api-breaker attach-consumer-label basic-auth body-transformer client-control consumer-restriction csrf
        degraphql echo error-page fault-injection forward-auth graphql-limit-count graphql-proxy-cache gzip hmac-auth
        ip-restriction jwe-decrypt limit-conn limit-req mocking multi-auth proxy-cache proxy-control proxy-mirror
        public-api real-ip redirect referer-restriction request-validation traffic-label traffic-split
        ua-restriction uri-blocker workflow""".split())
    plugin_use = r"""(?:^|[\s{{,'"-])({0})["']?\s*:(?=\s|$)|^-?\s*["']?id["']?\s*:\s*["']?({0})["']?\s*$"""

    def flags(self, flavor: str) -> list[str]:
        return ["--apisix-router", flavor]

    check_flags = flags

    def should_load(self, case: dict) -> bool:
        return False

    def original_words(self, case: dict) -> str:
        return case.get("error_text", "")

    admin_flag = "--apisix-admin"
    load = staticmethod(admin.load_apisix)

    def judge_admin(self, port: int, config: str, case: dict) -> Result:
        """One of the resources must be refused as the original's schema refuses it."""
        try:
            admin.load_apisix(port, config)
            faults = [f"all of it is taken; the original says: {self.original_words(case)[:300]}"]
        except admin.Refused as refused:
            faults = [] if refused.status == 400 else [f"refused with {refused}"]
        return Result(case["name"], "failed" if faults else "passed", faults)

    def client(self, slot: GatewaySlot) -> "ApisixClient":
        return ApisixClient(self.runner, slot)


class ApisixClient:
    """Sends APISIX's cases in one slot. Their texts name the upstreams' ports 1980 to 1982: those
    numbers become the slot's ports in what is sent, and again themselves in what is observed."""

    FIRST = 1980

    def __init__(self, runner: ModuleType, slot: GatewaySlot):
        self.runner, self.case_number = runner, 0
        listeners = [listening() for _ in range(UPSTREAMS)]
        self.echo = runner.Echo(listeners)
        self.to_slot = {str(self.FIRST + at): str(port_of(sock)) for at, sock in enumerate(listeners)}
        self.from_slot = {there: here for here, there in self.to_slot.items()}
        # What the runner asks of its gateway.
        self.proxy = ("127.0.0.1", slot.port)

    @property
    def nonce(self) -> str:
        return f"n99999x{self.case_number}z"  # holds no port's number, and nothing else looks like it

    def apply(self, case: dict) -> bool:
        return True

    def ports_in(self, text: str) -> str:
        return _swap_numbers(text, self.to_slot)

    def ports_out(self, text: str) -> str:
        return _swap_numbers(text, self.from_slot)

    def config(self, case: dict) -> str:
        return self.ports_in(case["config"])

    def faults(self, case: dict) -> list[str]:
        self.case_number += 1
        try:
            return self.runner.check_case(self, self.echo, case)
        except (OSError, http.client.HTTPException) as error:
            return [f"no usable answer: {error!r}"]


def _swap_numbers(text: str, by: dict[str, str]) -> str:
    return re.sub(rf"(?<!\d)(?:{'|'.join(by)})(?!\d)", lambda found: by[found[0]], text)


DIALECTS: dict[str, Dialect] = {dialect.name: dialect for dialect in (Kong(), Apisix())}
