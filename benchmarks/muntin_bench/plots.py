"""Plots of a report as PNG files."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from muntin.errors import MuntinError
from muntin_bench.report import Plot

_STYLES = ("-", "--", ":", "-.")
# The names of more lines would hide some of them.
_MOST_INSIDE = 8
INSTALL = "pip install 'muntin[bench]', or make setup"


def can_draw() -> bool:
    """Whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def draw(plot: Plot, path: Path) -> Path:
    """Draw the lines of a plot into a file."""
    figure_class = _figure_class()
    figure = figure_class(figsize=(9, 6), dpi=120, layout="constrained")
    axes = figure.subplots()
    for i, (name, points) in enumerate(plot.lines.items()):
        across, up = zip(*points, strict=True)
        # Ten colours repeat: the style of the line tells those of one colour apart.
        style = _STYLES[(i // 10) % len(_STYLES)]
        axes.plot(across, up, style, marker="o", markersize=3, label=name)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_title(plot.title)
    axes.set_xlabel(plot.across)
    axes.set_ylabel(plot.up)
    axes.grid(alpha=0.3)
    if len(plot.lines) > _MOST_INSIDE:
        axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))
    else:
        axes.legend(fontsize="small")
    figure.savefig(path)
    return path


def _figure_class() -> Any:
    if not can_draw():
        raise MuntinError("plots need matplotlib", hint=INSTALL)
    from matplotlib.figure import Figure  # noqa: PLC0415 - an extra, and slow to import

    return Figure
