#!/usr/bin/env python3
"""Runs the recorded behaviour of Kong and APISIX against a Weir binary.

    run.py                       every case of both dialects; what CI runs
    run.py --only '^jwt/' -v     some cases, with what is wrong in them
    run.py --update              strike cases that pass now out of the lists of those that do not
    run.py --through admin       configurations go through POST /config and PUT /apisix/admin/… in place of files

Ends with 0 when exactly the cases in `kong/not_passing.txt` and `apisix/not_passing.txt` fail (through Admin APIs also those
in `not_passing_admin.txt`), with 1 when the lists say otherwise, with 130 when interrupted. Python 3.11, standard library
only; through Admin APIs also Python's yaml. README.md says what a case is.
"""

from __future__ import annotations

import argparse
import collections
import http.client
import os
import queue
import re
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.dont_write_bytecode = True

import admin
import ratchet
from dialects import DIALECTS, HERE, Dialect, Result
from gateway_slot import NOT_AVAILABLE, Children, Closed, GatewaySlot

ROOT = HERE.parent.parent
# Cases that failed unexpectedly are run once more alone, up to so many: two slots on a busy machine
# can spoil a time limit, but more than a few failures are not that.
AGAIN_AT_MOST = 20
FAULTS_SHOWN, FAILURES_SHOWN = 4, 50


class Group:
    """Cases that run on one start of the gateway: equal configuration and router, same topic."""

    def __init__(self, dialect: Dialect, topic: str, flavor: str, cases: list[dict]):
        self.dialect, self.topic, self.flavor, self.cases = dialect, topic, flavor, cases

    def seconds(self) -> float:
        """Roughly how long it takes, to begin with the longest."""
        steps = [step for case in self.cases for step in case.get("steps", [])]
        return sum(step.get("sleep_ms", 0) / 1000 + step.get("align", {}).get("min_left_s", 0)
                   + 0.02 * step.get("repeat", 1) for step in steps)


def groups_of(dialects: list[Dialect], only: str) -> list[Group]:
    found: dict[tuple, list[dict]] = {}
    for dialect in dialects:
        for topic, case in dialect.cases():
            if re.search(only, case["name"]):
                found.setdefault((dialect.name, topic, dialect.flavor(case), case["config"]), []).append(case)
    groups = [Group(DIALECTS[dialect], topic, flavor, cases) for (dialect, topic, flavor, _), cases in found.items()]
    return sorted(groups, key=Group.seconds, reverse=True)


class Worker:
    """One slot with a client of each dialect in it."""

    def __init__(self, slot: GatewaySlot, through_admin: bool):
        self.slot, self.through_admin = slot, through_admin
        self.clients = {name: dialect.client(slot) for name, dialect in DIALECTS.items()}

    def run(self, group: Group, report):
        """Judges the cases of a group, one `report(group, result)` each."""
        refused = None
        try:
            for case in group.cases:
                if "kind" in case:
                    result = self.validate(group, case)
                elif why := refused or self.slot.given_up():
                    result = refused_result(case, why)
                else:
                    if case.get("fresh") or not self.slot.running():
                        refused = self.start(group, case)
                    result = refused_result(case, refused) if refused else self.traffic(group, case)
                report(group, result)
        finally:
            self.slot.stop()

    def start(self, group: Group, case: dict) -> str | None:
        config = self.clients[group.dialect.name].config(case)
        if self.through_admin:
            return self.start_empty(group) or self.load(group.dialect, config)
        return self.slot.start(group.dialect.config_name, config, group.dialect.flags(group.flavor))

    def start_empty(self, group: Group) -> str | None:
        return self.slot.start_empty(group.dialect.admin_flag, group.dialect.flags(group.flavor))

    def load(self, dialect: Dialect, config: str) -> str | None:
        """Gives a gateway without a configuration this one, and waits until it is served."""
        try:
            admin.wait_until_served(self.slot.status_port, dialect.load(self.slot.admin_port, config))
        except (admin.Refused, OSError, http.client.HTTPException) as why:
            return f"not loaded: {why!r}"
        return None

    def check(self, group: Group, case: dict) -> tuple[int | None, str]:
        config = self.clients[group.dialect.name].config(case)
        return self.slot.check(group.dialect.config_name, config, group.dialect.check_flags(group.flavor))

    def validate(self, group: Group, case: dict) -> Result:
        if self.through_admin:
            config = self.clients[group.dialect.name].config(case)
            why = None if self.slot.running() else self.start_empty(group)
            return refused_result(case, why) if why else group.dialect.judge_admin(self.slot.admin_port, config, case)
        status, said = self.check(group, case)
        return group.dialect.judge_validation(said, status, case)

    def traffic(self, group: Group, case: dict) -> Result:
        logged = self.slot.log_size()
        faults = self.clients[group.dialect.name].faults(case)
        faults += [f"the gateway panicked: {line.strip()}" for line in self.slot.panics_since(logged)]
        if ended := self.slot.ended():
            faults.append(ended)
        unanswered = any("timed out" in fault for fault in faults)
        self.slot.stuck = self.slot.stuck + 1 if unanswered else 0
        if not faults:
            return Result(case["name"], "passed")
        return Result(case["name"], "failed", faults, set(NOT_AVAILABLE.findall(self.check(group, case)[1])))


def refused_result(case: dict, why: str) -> Result:
    return Result(case["name"], "failed", [why], set(NOT_AVAILABLE.findall(why)))


class Run:
    """A whole run: the groups, the slots that take them, and what came of them."""

    def __init__(self, groups: list[Group], verbose: bool):
        self.groups, self.verbose = groups, verbose
        self.total = sum(len(group.cases) for group in groups)
        self.results: dict[tuple[str, str], tuple[Group, Result]] = {}
        self.errors: list[BaseException] = []
        self.lock, self.told, self.began = threading.Lock(), time.monotonic(), time.monotonic()

    def go(self, args, folder: Path, children: Children) -> list[Worker]:
        waiting: queue.SimpleQueue[Group] = queue.SimpleQueue()
        for group in self.groups:
            waiting.put(group)
        slots = [GatewaySlot(args.weir, folder / f"slot{at}", children) for at in range(args.jobs)]
        workers = [Worker(slot, args.through == "admin") for slot in slots]
        threads = [threading.Thread(target=self.take, args=(worker, waiting), daemon=True) for worker in workers]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            threads[0].join(0.2) if threads[0].is_alive() else time.sleep(0.1)
        self.progress(last=True)
        if self.errors:
            raise self.errors[0]
        return workers

    def take(self, worker: Worker, waiting: queue.SimpleQueue):
        try:
            while True:
                worker.run(waiting.get_nowait(), self.report)
        except (queue.Empty, Closed):
            pass
        except BaseException as error:  # a fault of this program: told by the main thread
            self.errors.append(error)

    def report(self, group: Group, result: Result):
        with self.lock:
            self.results[group.dialect.name, result.name] = (group, result)
            if self.verbose:
                self.clear_line()
                print(f"{result.outcome:8}{group.dialect.name}: {result.name}")
                for fault in result.faults:
                    print("         ", fault)
            self.progress()

    def progress(self, last: bool = False):
        """One line rewritten in place on a terminal, else one line now and then."""
        terminal, now = sys.stdout.isatty(), time.monotonic()
        if not last and now - self.told < (0.1 if terminal else 10):
            return
        self.told = now
        failed = self.count("failed")
        line = f"{len(self.results)} of {self.total} cases, {failed} failed, {now - self.began:.0f} s"
        print(f"\r{line}\x1b[K" if terminal else line, end="\n" if last or not terminal else "", flush=True)

    def clear_line(self):
        if sys.stdout.isatty():
            print("\r\x1b[K", end="")

    def count(self, outcome: str) -> int:
        return sum(result.outcome == outcome for _, result in list(self.results.values()))

    def names(self, dialect: Dialect, outcome: str) -> set[str]:
        return {name for (of, name), (_, result) in self.results.items() if of == dialect.name and result.outcome == outcome}

    def again(self, worker: Worker, lists: dict[str, ratchet.Listed]):
        """Runs what failed unexpectedly once more, with nothing beside it."""
        failed = [(group, result.name) for (dialect, name), (group, result) in self.results.items()
                  if result.outcome == "failed" and name not in lists[dialect].reasons]
        if not failed or len(failed) > AGAIN_AT_MOST:
            return
        for group, name in failed:
            alone = [case for case in group.cases if case["name"] == name]
            worker.run(Group(group.dialect, group.topic, group.flavor, alone), self.report)
            if self.results[group.dialect.name, name][1].outcome == "passed":
                print(f"passed only when run again alone: {group.dialect.name}: {name}")


def print_table(run: Run, dialects: list[Dialect]):
    for dialect in dialects:
        topics = collections.defaultdict(collections.Counter)
        for (of, _), (group, result) in run.results.items():
            if of == dialect.name:
                topics[group.topic][result.outcome] += 1
                topics["all"][result.outcome] += 1
        if not topics:
            continue
        print(f"\n{dialect.name:30}{'passed':>8}{'failed':>8}")
        for topic in sorted(topics, key=lambda topic: (topic == "all", topic)):
            row = topics[topic]
            print(f"  {topic:28}{row['passed']:8}{row['failed']:8}")


def print_supported(run: Run, dialects: list[Dialect]):
    """The pass rate over what Weir means to support today: see TOPICS and BUILT in dialects.py."""
    print()
    for dialect in dialects:
        counts, failing = collections.Counter(), []
        for topic, case in dialect.cases():
            known = run.results.get((dialect.name, case["name"]))
            if known and dialect.supported(topic, case):
                counts[known[1].outcome] += 1
                failing += [case["name"]] if known[1].outcome == "failed" else []
        judged = counts["passed"] + counts["failed"]
        rate = f"{100 * counts['passed'] / judged:.1f} %" if judged else "nothing"
        print(f"{dialect.name}: {counts['passed']} of {judged} supported cases pass ({rate})")
        for name in sorted(failing):
            print(f"  fails: {name}")


def print_faults(run: Run, dialect: Dialect, names: set[str]):
    for name in sorted(names)[:FAILURES_SHOWN]:
        _, result = run.results[dialect.name, name]
        print(f"\n{dialect.name}: {name}")
        for fault in result.faults[:FAULTS_SHOWN]:
            print("   ", fault[:500])
    if len(names) > FAILURES_SHOWN:
        print(f"\n{dialect.name}: … and {len(names) - FAILURES_SHOWN} more failures; -v tells them all")


def settle(run: Run, dialects: list[Dialect], lists: dict[str, ratchet.Listed], args) -> bool:
    """Compares the run with the lists, rewrites them where asked, and says whether they agree."""
    agreed = True
    print()
    for dialect in dialects:
        listed, known = lists[dialect.name], {case["name"] for _, case in dialect.cases()}
        passed, failed = run.names(dialect, "passed"), run.names(dialect, "failed")
        if args.update:
            listed.shrink(passed, known)
        if args.accept_new:
            for name in failed - listed.reasons.keys():
                _, result = run.results[dialect.name, name]
                listed.reasons[name] = ratchet.reason(result.faults, result.missing)
        if args.update or args.accept_new:
            listed.write()
        elif not args.verbose:
            print_faults(run, dialect, failed - listed.reasons.keys())
        missing = {name: run.results[dialect.name, name][1].missing for name in failed}
        told = listed.verdict(passed, failed, known)
        agreed = agreed and not told
        told += [f"listed for want of a plugin, but that is not why it fails: {name}" for name in listed.outdated(missing)]
        if listed.unexplained():
            told.append(f"{listed.unexplained()} listed cases still need a reason in words")
        for line in told:
            print(f"{dialect.name}: {line}")
    print()
    return agreed


def default_weir() -> Path:
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    release = target / "release" / "weir"
    return release if release.exists() else target / "debug" / "weir"


def arguments() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--weir", type=Path, default=default_weir(), help="the binary (default: target/release/weir, else target/debug/weir)")
    p.add_argument("--dialect", choices=sorted(DIALECTS), help="only the cases of one dialect")
    p.add_argument("--only", default="", metavar="REGEX", help="only cases whose name matches")
    p.add_argument("--through", choices=["files", "admin"], default="files", help="how configurations are loaded (default: files)")
    p.add_argument("--jobs", type=int, default=2, help="gateways at work at the same time (default: 2)")
    p.add_argument("--supported", action="store_true",
                   help="also tell the pass rate over the topics and plugins that Weir means to support today")
    p.add_argument("--update", action="store_true", help="strike cases that pass now out of the lists")
    p.add_argument("--accept-new", action="store_true",
                   help="put failing cases on the lists: for the first run, or for cases that are new themselves")
    p.add_argument("-v", "--verbose", action="store_true", help="tell each case and all that is wrong in it")
    args = p.parse_args()
    args.weir = args.weir.resolve()
    if not os.access(args.weir, os.X_OK):
        p.error(f"no gateway at {args.weir}: build it (cargo build --release) or name one with --weir")
    if args.through == "admin" and (why := admin.usable()):
        p.error(f"--through admin: {why}")
    if args.jobs < 1:
        p.error("--jobs must be at least 1")
    return args


INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def interrupt(*_):
    raise KeyboardInterrupt


def quiet_broken_connections(failure):
    """Concurrent calls of one step run on threads of their own; a lost one shows in the step's counts."""
    if not issubclass(failure.exc_type, (OSError, http.client.HTTPException)):
        threading.__excepthook__(failure)


def main() -> int:
    args = arguments()
    for number in INTERRUPTS:
        signal.signal(number, interrupt)
    threading.excepthook = quiet_broken_connections
    dialects = [dialect for name, dialect in DIALECTS.items() if args.dialect in (None, name)]
    names = ["not_passing.txt", "not_passing_admin.txt"][:2 if args.through == "admin" else 1]
    lists = {dialect.name: ratchet.Listed([HERE / dialect.name / name for name in names]) for dialect in dialects}
    run, children = Run(groups_of(dialects, args.only), args.verbose), Children()
    print(f"{run.total} cases on {len(run.groups)} configurations against {args.weir}", flush=True)
    with tempfile.TemporaryDirectory(prefix="weir-recorded-", ignore_cleanup_errors=True) as folder:
        try:
            workers = run.go(args, Path(folder), children)
            run.again(workers[0], lists)
        except KeyboardInterrupt:
            for number in INTERRUPTS:
                signal.signal(number, signal.SIG_IGN)  # a second one must not cut the cleaning short
            print("\ninterrupted", flush=True)
            return 130
        finally:
            children.close()
    if killed := sum(worker.slot.killed for worker in workers):
        print(f"the gateway had to be killed {killed} times: SIGTERM did not end it")
    print_table(run, dialects)
    if args.supported:
        print_supported(run, dialects)
    agreed = settle(run, dialects, lists, args)
    print(f"{run.count('passed')} passed, {run.count('failed')} failed")
    return 0 if agreed else 1


if __name__ == "__main__":
    sys.exit(main())
