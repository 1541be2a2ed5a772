#!/usr/bin/env python3
"""Runs the recorded behaviour of Kong and APISIX against a Weir binary.

    run.py                       every case of both doors; what CI runs
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
from doors import DOORS, HERE, Door, Result
from lane import NOT_AVAILABLE, Children, Closed, Lane

ROOT = HERE.parent.parent
# Cases that failed unexpectedly are run once more alone, up to so many: two lanes on a busy machine
# can spoil a time limit, but more than a few failures are not that.
AGAIN_AT_MOST = 20
FAULTS_SHOWN, FAILURES_SHOWN = 4, 50


class Group:
    """Cases that run on one start of the gateway: equal configuration and router, same topic."""

    def __init__(self, door: Door, topic: str, flavor: str, cases: list[dict]):
        self.door, self.topic, self.flavor, self.cases = door, topic, flavor, cases

    def seconds(self) -> float:
        """Roughly how long it takes, to begin with the longest."""
        steps = [step for case in self.cases for step in case.get("steps", [])]
        return sum(step.get("sleep_ms", 0) / 1000 + step.get("align", {}).get("min_left_s", 0)
                   + 0.02 * step.get("repeat", 1) for step in steps)


def groups_of(doors: list[Door], only: str) -> list[Group]:
    found: dict[tuple, list[dict]] = {}
    for door in doors:
        for topic, case in door.cases():
            if re.search(only, case["name"]):
                found.setdefault((door.name, topic, door.flavor(case), case["config"]), []).append(case)
    groups = [Group(DOORS[door], topic, flavor, cases) for (door, topic, flavor, _), cases in found.items()]
    return sorted(groups, key=Group.seconds, reverse=True)


class Worker:
    """One lane with a client of each door in it."""

    def __init__(self, lane: Lane, through_admin: bool):
        self.lane, self.through_admin = lane, through_admin
        self.clients = {name: door.client(lane) for name, door in DOORS.items()}

    def run(self, group: Group, report):
        """Judges the cases of a group, one `report(group, result)` each."""
        refused = None
        try:
            for case in group.cases:
                if "kind" in case:
                    result = self.validate(group, case)
                elif why := refused or self.lane.given_up():
                    result = refused_result(case, why)
                else:
                    if case.get("fresh") or not self.lane.running():
                        refused = self.start(group, case)
                    result = refused_result(case, refused) if refused else self.traffic(group, case)
                report(group, result)
        finally:
            self.lane.stop()

    def start(self, group: Group, case: dict) -> str | None:
        config = self.clients[group.door.name].config(case)
        if self.through_admin:
            return self.start_empty(group) or self.load(group.door, config)
        return self.lane.start(group.door.config_name, config, group.door.flags(group.flavor))

    def start_empty(self, group: Group) -> str | None:
        return self.lane.start_empty(group.door.admin_flag, group.door.flags(group.flavor))

    def load(self, door: Door, config: str) -> str | None:
        """Gives a gateway without a configuration this one, and waits until it is served."""
        try:
            admin.wait_until_served(self.lane.status_port, door.load(self.lane.admin_port, config))
        except (admin.Refused, OSError, http.client.HTTPException) as why:
            return f"not loaded: {why!r}"
        return None

    def check(self, group: Group, case: dict) -> tuple[int | None, str]:
        config = self.clients[group.door.name].config(case)
        return self.lane.check(group.door.config_name, config, group.door.check_flags(group.flavor))

    def validate(self, group: Group, case: dict) -> Result:
        if self.through_admin:
            config = self.clients[group.door.name].config(case)
            why = None if self.lane.running() else self.start_empty(group)
            return refused_result(case, why) if why else group.door.judge_admin(self.lane.admin_port, config, case)
        status, said = self.check(group, case)
        return group.door.judge_validation(said, status, case)

    def traffic(self, group: Group, case: dict) -> Result:
        logged = self.lane.log_size()
        faults = self.clients[group.door.name].faults(case)
        faults += [f"the gateway panicked: {line.strip()}" for line in self.lane.panics_since(logged)]
        if ended := self.lane.ended():
            faults.append(ended)
        unanswered = any("timed out" in fault for fault in faults)
        self.lane.stuck = self.lane.stuck + 1 if unanswered else 0
        if not faults:
            return Result(case["name"], "passed")
        return Result(case["name"], "failed", faults, set(NOT_AVAILABLE.findall(self.check(group, case)[1])))


def refused_result(case: dict, why: str) -> Result:
    return Result(case["name"], "failed", [why], set(NOT_AVAILABLE.findall(why)))


class Run:
    """A whole run: the groups, the lanes that take them, and what came of them."""

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
        lanes = [Lane(args.weir, folder / f"lane{at}", children) for at in range(args.jobs)]
        workers = [Worker(lane, args.through == "admin") for lane in lanes]
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
            self.results[group.door.name, result.name] = (group, result)
            if self.verbose:
                self.clear_line()
                print(f"{result.outcome:8}{group.door.name}: {result.name}")
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

    def names(self, door: Door, outcome: str) -> set[str]:
        return {name for (of, name), (_, result) in self.results.items() if of == door.name and result.outcome == outcome}

    def again(self, worker: Worker, lists: dict[str, ratchet.Listed]):
        """Runs what failed unexpectedly once more, with nothing beside it."""
        failed = [(group, result.name) for (door, name), (group, result) in self.results.items()
                  if result.outcome == "failed" and name not in lists[door].reasons]
        if not failed or len(failed) > AGAIN_AT_MOST:
            return
        for group, name in failed:
            alone = [case for case in group.cases if case["name"] == name]
            worker.run(Group(group.door, group.topic, group.flavor, alone), self.report)
            if self.results[group.door.name, name][1].outcome == "passed":
                print(f"passed only when run again alone: {group.door.name}: {name}")


def print_table(run: Run, doors: list[Door]):
    for door in doors:
        topics = collections.defaultdict(collections.Counter)
        for (of, _), (group, result) in run.results.items():
            if of == door.name:
                topics[group.topic][result.outcome] += 1
                topics["all"][result.outcome] += 1
        if not topics:
            continue
        print(f"\n{door.name:30}{'passed':>8}{'failed':>8}")
        for topic in sorted(topics, key=lambda topic: (topic == "all", topic)):
            row = topics[topic]
            print(f"  {topic:28}{row['passed']:8}{row['failed']:8}")


def print_supported(run: Run, doors: list[Door]):
    """The pass rate over what Weir means to support today: see TOPICS and BUILT in doors.py."""
    print()
    for door in doors:
        counts, failing = collections.Counter(), []
        for topic, case in door.cases():
            known = run.results.get((door.name, case["name"]))
            if known and door.supported(topic, case):
                counts[known[1].outcome] += 1
                failing += [case["name"]] if known[1].outcome == "failed" else []
        judged = counts["passed"] + counts["failed"]
        rate = f"{100 * counts['passed'] / judged:.1f} %" if judged else "nothing"
        print(f"{door.name}: {counts['passed']} of {judged} supported cases pass ({rate})")
        for name in sorted(failing):
            print(f"  fails: {name}")


def print_faults(run: Run, door: Door, names: set[str]):
    for name in sorted(names)[:FAILURES_SHOWN]:
        _, result = run.results[door.name, name]
        print(f"\n{door.name}: {name}")
        for fault in result.faults[:FAULTS_SHOWN]:
            print("   ", fault[:500])
    if len(names) > FAILURES_SHOWN:
        print(f"\n{door.name}: … and {len(names) - FAILURES_SHOWN} more failures; -v tells them all")


def settle(run: Run, doors: list[Door], lists: dict[str, ratchet.Listed], args) -> bool:
    """Compares the run with the lists, rewrites them where asked, and says whether they agree."""
    agreed = True
    print()
    for door in doors:
        listed, known = lists[door.name], {case["name"] for _, case in door.cases()}
        passed, failed = run.names(door, "passed"), run.names(door, "failed")
        if args.update:
            listed.shrink(passed, known)
        if args.accept_new:
            for name in failed - listed.reasons.keys():
                _, result = run.results[door.name, name]
                listed.reasons[name] = ratchet.reason(result.faults, result.missing)
        if args.update or args.accept_new:
            listed.write()
        elif not args.verbose:
            print_faults(run, door, failed - listed.reasons.keys())
        missing = {name: run.results[door.name, name][1].missing for name in failed}
        told = listed.verdict(passed, failed, known)
        agreed = agreed and not told
        told += [f"listed for want of a plugin, but that is not why it fails: {name}" for name in listed.outdated(missing)]
        if listed.unexplained():
            told.append(f"{listed.unexplained()} listed cases still need a reason in words")
        for line in told:
            print(f"{door.name}: {line}")
    print()
    return agreed


def default_weir() -> Path:
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    release = target / "release" / "weir"
    return release if release.exists() else target / "debug" / "weir"


def arguments() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--weir", type=Path, default=default_weir(), help="the binary (default: target/release/weir, else target/debug/weir)")
    p.add_argument("--door", choices=sorted(DOORS), help="only the cases of one door")
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
    doors = [door for name, door in DOORS.items() if args.door in (None, name)]
    names = ["not_passing.txt", "not_passing_admin.txt"][:2 if args.through == "admin" else 1]
    lists = {door.name: ratchet.Listed([HERE / door.name / name for name in names]) for door in doors}
    run, children = Run(groups_of(doors, args.only), args.verbose), Children()
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
    if killed := sum(worker.lane.killed for worker in workers):
        print(f"the gateway had to be killed {killed} times: SIGTERM did not end it")
    print_table(run, doors)
    if args.supported:
        print_supported(run, doors)
    agreed = settle(run, doors, lists, args)
    print(f"{run.count('passed')} passed, {run.count('failed')} failed")
    return 0 if agreed else 1


if __name__ == "__main__":
    sys.exit(main())
