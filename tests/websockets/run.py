#!/usr/bin/env python3
"""Runs the Autobahn TestSuite's cases for WebSocket servers through Weir.

The runner is kosoku (PyPI), which drives Autobahn's own case files; behind Weir stands an echo server of the library
`websockets` (PyPI). Each case is run without a gateway and through it, in the clear and over TLS, and must come to the
same end. Both packages are installed below target/websockets. Usage: tests/websockets/run.py [--weir PROGRAM]
[--only GLOB]...
"""

import argparse
import asyncio
import json
import os
import pathlib
import socket
import ssl
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
WORK = ROOT / "target" / "websockets"
PACKAGES = ["kosoku==0.1.0", "websockets==17.4"]
# How long all cases may take one way, and how long Weir may take to start.
PATIENCE_S = 3600
START_S = 30


def in_environment() -> None:
    """Goes on with the Python that has the packages."""
    python = WORK / "bin" / "python"
    marker = WORK / "packages.json"
    if not marker.exists() or json.loads(marker.read_text()) != PACKAGES:
        subprocess.run([sys.executable, "-m", "venv", WORK], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
        marker.write_text(json.dumps(PACKAGES))
    if pathlib.Path(sys.prefix) != WORK:
        os.execv(python, [python, *sys.argv])


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Weir:
    """A gateway in front of the echo server."""

    def __init__(self, program: str, upstream: int):
        self.plain, self.tls, self.status = free_port(), free_port(), free_port()
        self.folder = tempfile.TemporaryDirectory(prefix="weir-websockets-")
        folder = pathlib.Path(self.folder.name)
        config = {
            "weir": 1,
            "services": [{
                "name": "echo",
                "url": f"http://127.0.0.1:{upstream}",
                "timeouts": {"read_ms": 120000, "write_ms": 120000},
                "routes": [{"name": "echo", "paths": ["/"]}],
            }],
        }
        (folder / "weir.json").write_text(json.dumps(config))
        self.log = open(folder / "log", "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [
                program, "run", "-c", folder / "weir.json", "--workers", "1",
                "--listen", f"127.0.0.1:{self.plain}", "--listen-tls", f"127.0.0.1:{self.tls}", "--status", f"127.0.0.1:{self.status}",
            ],
            stdout=self.log, stderr=self.log,
        )

    async def ready(self) -> None:
        for _ in range(START_S * 20):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.status}/status/ready", timeout=5)
                return
            except (urllib.error.URLError, OSError):
                if self.process.poll() is not None:
                    break
                await asyncio.sleep(0.05)
        self.log.seek(0)
        sys.exit(f"websockets: Weir does not start:\n{self.log.read()}")

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=30)


async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Carries bytes as they come, to the end."""
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


async def over_tls(port: int) -> asyncio.Server:
    """Takes connections in the clear for a listener of TLS, which the runner does not speak."""
    context = ssl.create_default_context()
    # What Weir shows where no certificate is configured, it has signed itself.
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        their_reader, their_writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        await asyncio.gather(pass_on(reader, their_writer), pass_on(their_reader, writer))

    return await asyncio.start_server(carry, "127.0.0.1", 0)


async def results(port: int, only: list[str]) -> dict[str, str]:
    """How each case ends, by its number."""
    import kosoku

    try:
        came = await asyncio.wait_for(
            kosoku.run_fuzzingclient(f"ws://127.0.0.1:{port}", only or None, concurrency=2), PATIENCE_S
        )
    except kosoku.FailureError as failure:
        came = failure.results
    return {case.case_id: f"{case.behavior.value} {case.behavior_close.value}" for case in came}


async def run(arguments: argparse.Namespace) -> int:
    from websockets.asyncio.server import serve
    from websockets.exceptions import ConnectionClosed

    async def echo(connection) -> None:
        try:
            async for message in connection:
                await connection.send(message)
        except ConnectionClosed:
            # Most cases break the protocol, which is what they are about.
            pass

    async with serve(echo, "127.0.0.1", 0, max_size=None, ping_interval=None) as server:
        port = server.sockets[0].getsockname()[1]
        weir = Weir(arguments.weir, port)
        try:
            await weir.ready()
            wanted = await results(port, arguments.only)
            tls = await over_tls(weir.tls)
            ports = {"in the clear": weir.plain, "over TLS": tls.sockets[0].getsockname()[1]}
            found = {way: await results(port, arguments.only) for way, port in ports.items()}
        finally:
            weir.end()
    return sum(tell(way, wanted, ends) for way, ends in found.items()) + (not wanted)


def tell(way: str, wanted: dict[str, str], found: dict[str, str]) -> int:
    """How the cases have ended one way; whether that is bad."""
    different = [case for case in wanted if wanted[case] != found.get(case)]
    for case in different:
        print(f"{case} {way}: {found.get(case)} through Weir, {wanted[case]} without")
    passed = sum(not end.startswith("FAILED") for end in found.values())
    print(f"{way}: {len(found)} cases, {passed} pass, {len(different)} differ from those without a gateway")
    return 1 if different else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", default=str(ROOT / "target" / "debug" / "weir"))
    parser.add_argument("--only", action="append", default=[], metavar="GLOB")
    arguments = parser.parse_args()
    in_environment()
    return asyncio.run(run(arguments))


if __name__ == "__main__":
    sys.exit(main())
