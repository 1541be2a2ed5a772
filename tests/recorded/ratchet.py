"""The list of cases that do not pass yet, one file a dialect: `case name  # why`.

The list may only shrink: a case that fails without being on it is an error, and so is a case on it
that passes. A reason that begins with TO_EXPLAIN was written by the machine and waits for a person.
"""

from __future__ import annotations

from pathlib import Path

TO_EXPLAIN = "to explain: "
NOT_BUILT = "not built yet: "


class Listed:
    """One list as it lies on disk: in one file, or in several of which the last is the one that changes."""

    def __init__(self, paths: list[Path]):
        self.path, self.header, self.reasons, self.malformed = paths[-1], [], {}, []
        self.elsewhere: set[str] = set()
        for path in paths[:-1]:
            self._read(path)
            self.elsewhere |= self.reasons.keys()
        self.header, self.malformed = [], []
        self._read(self.path)

    def _read(self, path: Path):
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
            name, _, why = (part.strip() for part in line.partition("  #"))
            if line.startswith("#"):
                self.header.append(line)
            elif line.strip() and (not why or name in self.reasons):
                self.malformed.append(line)
            elif line.strip():
                self.reasons[name] = why

    def write(self):
        header = self.header or ["# Recorded cases that Weir does not pass yet: `case name  # why`. This list may only shrink."]
        lines = header + [f"{name}  # {why}" for name, why in sorted(self.reasons.items())
                          if name not in self.elsewhere] + self.malformed
        self.path.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def shrink(self, passed: set[str], known: set[str]):
        """Strikes out what passes, and names that no case has."""
        self.reasons = {name: why for name, why in self.reasons.items()
                        if name in self.elsewhere or name in known and name not in passed}

    def verdict(self, passed: set[str], failed: set[str], known: set[str]) -> list[str]:
        """What contradicts the list, in words; empty when the run is as the list says."""
        told = [f"{self.path.name}: not `case name  # why`, or twice: {line}" for line in self.malformed]
        told += [f"fails and is not listed: {name}" for name in sorted(failed - self.reasons.keys())]
        told += [f"listed but passes: {name} (strike it out with --update)" for name in sorted(passed & self.reasons.keys())]
        told += [f"listed but there is no such case: {name} (strike it out with --update)"
                 for name in sorted(self.reasons.keys() - known)]
        return told

    def unexplained(self) -> int:
        return sum(why.startswith(TO_EXPLAIN) for why in self.reasons.values())

    def outdated(self, missing: dict[str, set[str]]) -> list[str]:
        """Failed cases listed for want of a plugin that the gateway no longer lacks; `missing`
        holds, for each failed case, the plugins that it says it lacks."""
        return sorted(name for name, lacking in missing.items()
                      if self.reasons.get(name, "").startswith(NOT_BUILT) and not lacking)


def reason(faults: list[str], missing: set[str]) -> str:
    """A reason for a case that is put on the list: computed where it can be, else to be explained."""
    if missing:
        return NOT_BUILT + ", ".join(f"plugin {name}" for name in sorted(missing))
    first = " ".join((faults or ["no fault was told"])[0].split())
    return TO_EXPLAIN + first[:160]
