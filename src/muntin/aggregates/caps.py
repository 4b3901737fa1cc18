"""What is promised of answers over all values: how many there may be, and bounds beside them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias, get_args

from muntin.errors import MuntinError

OnCap: TypeAlias = Literal["null", "fail", "approximate"]
ON_CAP: tuple[OnCap, ...] = get_args(OnCap)


@dataclass(frozen=True)
class Cap:
    """How many different values a window may have, how many bytes, and what comes of more."""

    values: int = 1_000_000
    bytes: int = 64 << 20
    on: OnCap = "null"


DEFAULT_CAP = Cap()


@dataclass(frozen=True)
class Guarantees:
    """What somebody says of a query's answers; None where nothing is said.

    Attributes:
        bounds: Whether approximate aggregates have columns ``_low`` and ``_high`` beside them.
        on_cap: What a window with too many values gives: ``null``, which is counted, ``fail``, or
            ``approximate``, with a column ``_exact`` beside it.
        cap_values: How many different values a window may have; of a list, values.
        cap_bytes: How many bytes these may have.

    >>> Guarantees(cap_values=10).otherwise(Guarantees(bounds=True, cap_values=5))
    Guarantees(bounds=True, on_cap=None, cap_values=10, cap_bytes=None)
    """

    bounds: bool | None = None
    on_cap: OnCap | None = None
    cap_values: int | None = None
    cap_bytes: int | None = None

    def __post_init__(self) -> None:
        if self.bounds is not None and not isinstance(self.bounds, bool):
            raise MuntinError(
                f"bounds must be true or false, not {self.bounds!r}", hint="write bounds = true"
            )
        if self.on_cap is not None and self.on_cap not in ON_CAP:
            raise MuntinError(
                f"on_cap cannot be {self.on_cap!r}", hint=f"use one of {', '.join(ON_CAP)}"
            )
        for name in ("cap_values", "cap_bytes"):
            given = getattr(self, name)
            if given is not None and (type(given) is not int or not 1 <= given < 2**62):
                raise MuntinError(
                    f"{name} must be a whole number from 1 on, not {given!r}",
                    hint=f"write {name} = 1000000",
                )

    def otherwise(self, told: Guarantees) -> Guarantees:
        """What is said here, and elsewhere what others say."""
        if told in (UNSAID, self):
            return self
        return Guarantees(
            **{
                each.name: getattr(told, each.name) if own is None else own
                for each in fields(self)
                for own in [getattr(self, each.name)]
            }
        )

    @property
    def given(self) -> dict[str, Any]:
        """What is said, by name."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in found.items() if value is not None}

    @property
    def cap(self) -> Cap:
        """The cap of a window's values."""
        return Cap(
            DEFAULT_CAP.values if self.cap_values is None else self.cap_values,
            DEFAULT_CAP.bytes if self.cap_bytes is None else self.cap_bytes,
            self.on_cap or "null",
        )


# What is said where nobody says anything.
UNSAID = Guarantees()
