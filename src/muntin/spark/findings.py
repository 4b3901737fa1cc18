"""What a check found, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

Status = Literal["ok", "warning", "problem"]
_SIGNS: dict[Status, str] = {"ok": "✓", "warning": "!", "problem": "✗"}


@dataclass(frozen=True)
class Finding:
    """One thing that was checked.

    Attributes:
        check: What was looked at.
        status: ``ok``; ``warning`` where it works but not well; ``problem`` where it does not.
        found: What is there.
        remedy: What to do, unless all is well.
    """

    check: str
    status: Status
    found: str
    remedy: str | None = None

    @property
    def ok(self) -> bool:
        """Whether nothing needs to be done."""
        return self.status == "ok"

    def __str__(self) -> str:
        line = f"{_SIGNS[self.status]} {self.check}: {self.found}"
        return f"{line}\n    {self.remedy}" if self.remedy and not self.ok else line


class Findings(list[Finding]):
    """All that was checked, in order; printed, it is a report.

    >>> found = Findings([Finding("Java", "ok", "17"), Finding("disk", "problem", "full", "free")])
    >>> print(found)
    ✓ Java: 17
    ✗ disk: full
        free
    1 problem
    >>> found.ok
    False
    """

    def __init__(self, findings: Iterable[Finding] = ()) -> None:
        super().__init__(findings)

    @property
    def problems(self) -> list[Finding]:
        """What keeps Spark from working."""
        return [finding for finding in self if finding.status == "problem"]

    @property
    def warnings(self) -> list[Finding]:
        """What works, but could be better."""
        return [finding for finding in self if finding.status == "warning"]

    @property
    def ok(self) -> bool:
        """Whether Spark can be used."""
        return not self.problems

    def to_json(self) -> list[dict[str, Any]]:
        """The findings as plain values."""
        return [asdict(finding) for finding in self]

    def __str__(self) -> str:
        return "\n".join([*map(str, self), self._summary()])

    def _summary(self) -> str:
        parts = [
            f"{len(found)} {noun if len(found) == 1 else noun + 's'}"
            for noun, found in (("problem", self.problems), ("warning", self.warnings))
            if found
        ]
        return ", ".join(parts) or "all is well"
