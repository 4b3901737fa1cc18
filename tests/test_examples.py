"""Every example runs, prints what its page in docs/examples shows, and is right."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import polars as pl
import pytest

import muntin
from code_blocks import ROOT, blocks

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
PAGES = sorted((ROOT / "docs" / "examples").glob("*.md"))


@cache
def output_of(name: str, *arguments: str) -> str:
    """What an example prints, run as the page says."""
    command = [sys.executable, str(ROOT / "examples" / name), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def example(name: str) -> ModuleType:
    """An example as a module, to call its functions."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_example(path: Path) -> None:
    assert output_of(path.name)


def stripped(text: str) -> str:
    """Lines without their indentation, between line breaks: what a page shows of a function."""
    return "\n".join(["", *(line.strip() for line in text.strip().splitlines()), ""])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_shows_the_example(page: Path) -> None:
    """Its code is the example's code, and its outputs are what the example prints."""
    path = ROOT / "examples" / page.with_suffix(".py").name.replace("-", "_")
    shown = blocks([page])
    assert f".venv/bin/python examples/{path.name}\n" in [block.code for block in shown]
    for language, source in (("python", path), ("sql", path.with_suffix(".sql"))):
        for block in shown:
            if block.language == language:
                assert stripped(block.code) in stripped(source.read_text()), block
    outputs = [block.output for block in shown if block.output is not None]
    assert outputs
    printed = output_of(path.name)
    assert [output for output in outputs if output not in printed] == []


def burn_rates(data: pl.DataFrame, slo: ModuleType) -> pl.DataFrame:
    """The rates that the example computes, from running totals of each service's minutes."""
    frames = []
    minutes = (slo.DAYS + 3) * 1440
    since = (data["ts"] - slo.MONDAY).dt.total_minutes().to_numpy()
    for service in sorted(slo.TRAFFIC):
        mine = (data["service"] == service).to_numpy()
        failed = mine & (data["status"] >= 500).to_numpy()
        requests, errors = (
            np.concatenate([[0], np.cumsum(np.bincount(since[each], minlength=minutes))])
            for each in (mine, failed)
        )
        ends = np.arange(1, minutes + 1)
        columns: dict[str, Any] = {
            "service": [service] * minutes,
            "window_end": slo.MONDAY + pl.Series(ends * 60_000_000).cast(pl.Duration("us")),
        }
        for name, length in LENGTHS.items():
            starts = np.maximum(ends - length, 0)
            seen, failures = requests[ends] - requests[starts], errors[ends] - errors[starts]
            columns[name] = failures / np.maximum(seen, 1) / slo.BUDGET
            held = seen > 0
        frames.append(pl.DataFrame(columns).filter(held))
    return pl.concat(frames)


LENGTHS = {"5m": 5, "30m": 30, "1h": 60, "6h": 360, "1d": 1440, "3d": 4320}  # the longest last


def test_burn_rates() -> None:
    """Every rate of every minute, also where there are minutes without a request."""
    slo = example("slo_burn_rates")
    assert tuple(LENGTHS) == slo.WINDOWS
    data = slo.requests(rows=20_000)
    rates = slo.side_by_side(muntin.aggregate(data, slo.queries(), time="ts"))
    expected = burn_rates(data, slo)
    assert expected["5m"].eq(0).any()
    assert rates.select(expected.columns).equals(expected)
    assert rates.height > 4 * slo.DAYS * 1440 * 0.9

    some = rates.filter(pl.col("5m") > 0).head(3)
    slo.check(data, some)
    with pytest.raises(AssertionError):
        slo.check(data, some.with_columns(pl.col("1h") * 1.000001))


def test_alerts_fire_and_clear() -> None:
    """Only while both windows exceed the threshold, each service on its own."""
    slo = example("slo_burn_rates")
    long = {"a": [0, 15, 15, 15, 15, 0], "b": [15, 15, 0, 15, 15, 15]}
    short = {"a": [20, 20, 0, 20, 20, 20], "b": [20, 20, 20, 14.4, 20, 20]}
    rates = pl.DataFrame(
        [
            {"service": service, "window_end": minute, **dict.fromkeys(slo.WINDOWS, 0.0)}
            | {"1h": float(long[service][minute]), "5m": float(short[service][minute])}
            for service in ("a", "b")
            for minute in range(6)
        ]
    )
    fired = slo.alerts(rates).sort("service", "fires")
    assert fired.select("alert", "service", "fires", "clears").rows() == [
        ("page, fast burn", "a", 1, 2),
        ("page, fast burn", "a", 3, 5),
        ("page, fast burn", "b", 0, 2),
        ("page, fast burn", "b", 4, None),
    ]
