"""The formats that a plan is shown in, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

from muntin.errors import MuntinError, did_you_mean
from muntin.plan.explain.as_json import item_json
from muntin.plan.explain.mermaid import item_mermaid
from muntin.plan.explain.render import SHOWN, Item, render
from muntin.plan.explain.svg import item_svg
from muntin.plan.explain.text import item_text
from muntin.plan.nodes import SharedPlan

Format: TypeAlias = Literal["text", "json", "mermaid", "svg"]

FORMATS: Mapping[str, Callable[[Item], str]] = {
    "text": item_text,
    "json": item_json,
    "mermaid": item_mermaid,
    "svg": item_svg,
}


def explain(
    plan: SharedPlan,
    format: Format = "text",  # noqa: A002
    *,
    rate: float | None = None,
    notes: Mapping[int, Sequence[str]] | None = None,
) -> str:
    """What a plan shares and why, in one of `FORMATS`; JSON tells of all queries one by one."""
    check_format(format, FORMATS)
    most = None if format == "json" else SHOWN
    return FORMATS[format](render(plan, rate=rate, notes=notes, most=most))


def check_format(name: str, known: Iterable[str]) -> None:
    """Refuses a format that there is no printer for."""
    listed = tuple(known)
    if name not in listed:
        raise MuntinError(
            f"there is no format {name!r}",
            hint=did_you_mean(str(name), listed) or f"use one of {', '.join(listed)}",
        )
