"""Expressions that ask for local times: their table, the zones they run in, and random ones."""

from __future__ import annotations

import json
import random
import re
from datetime import UTC, date, datetime, timedelta

import pyarrow as pa

from expressions import conformance
from expressions.conformance import Answer

GOLDEN = conformance.HERE.parent / "golden" / "spark_zones.json"
# One whose clock moves by an hour and one by half an hour, in opposite seasons.
ZONES = ("America/New_York", "Australia/Lord_Howe")
# With midnights that are skipped, and until 1914 with an offset of odd seconds.
RANDOM_ZONES = (*ZONES, "America/Sao_Paulo")

SECOND = 1_000_000
DAY = 86_400
# When clocks change: forward and back in New York, back and forward on Lord Howe, forward in
# São Paulo.
CHANGES = [1_362_898_800, 1_383_458_400, 1_365_260_400, 1_380_987_000, 1_541_300_400]
AROUND = [-5400, -1800, -1, 0, 1799, 3600, 9000]
SHIFTS = [-5, -4, -3, -2, 10.5, 11]
TIMES_ASKED = re.compile(r"\b(?:ts|nt|dt)2?\b|TIMESTAMP|DATE", re.ASCII)


def cases() -> list[str]:
    """Every expression of the tables that asks for times."""
    lines = (conformance.HERE / "zones.txt").read_text(encoding="utf-8").splitlines()
    general = [text for text in conformance.cases() if TIMES_ASKED.search(text)]
    return [*general, *(line for line in lines if line and not line.startswith("#"))]


def table(seed: int = 7) -> pa.Table:
    """Times around changes of clocks, as instants and as local times, and dates."""
    rng = random.Random(seed)
    instants = [change + around for change in CHANGES for around in AROUND]
    fractions = [0, 999_999, 500_000]
    micros = [each * SECOND + fractions[i % 3] for i, each in enumerate(instants)]
    # Off the ends: where a conversion overflows, Spark may compare without it.
    ends = [-(2**63) + 400 * DAY * SECOND, 2**63 - 400 * DAY * SECOND]
    far = [-(10**18), -4_000_000_000 * SECOND, 10**18, *ends, None]
    times = [*micros, *conformance.TIMES[:-2], *far]
    shifts = [int(each * 3600) * SECOND for each in SHIFTS]
    local = [
        each + shifts[i % len(shifts)] if i < len(micros) and each is not None else each
        for i, each in enumerate(times)
    ]
    days = [None if each is None else each // SECOND // DAY for each in local]
    columns = {
        "ts": pa.array(times, pa.timestamp("us", "UTC")),
        "nt": pa.array(local, pa.timestamp("us")),
        "dt": pa.array(days, pa.int32()).cast(pa.date32()),
        "b": pa.array([i % 3 == 0 for i in range(len(times))]),
    }
    order = list(range(len(times)))
    rng.shuffle(order)
    return pa.table(columns | {f"{name}2": each.take(order) for name, each in columns.items()})


def load_golden() -> dict[str, dict[str, Answer]]:
    """Spark's answers by zone, as they were stored."""
    stored = json.loads(GOLDEN.read_text(encoding="utf-8"))
    return {
        zone: {text: Answer(**answer) for text, answer in answers.items()}
        for zone, answers in stored.items()
    }


def save_golden(answers: dict[str, dict[str, Answer]]) -> None:
    """Store Spark's answers, one expression a line."""
    blocks = []
    for zone, found in answers.items():
        lines = [f"{json.dumps(text)}: {json.dumps(vars(each))}" for text, each in found.items()]
        blocks.append(f"{json.dumps(zone)}: {{\n" + ",\n".join(lines) + "\n}")
    GOLDEN.write_text("{\n" + ",\n".join(blocks) + "\n}\n", encoding="utf-8")


class Expressions:
    """Random expressions over the columns of the table, and with constants in their places."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        # Python has no names for the times of the last rows.
        near = table().select(["ts", "nt", "dt"]).slice(0, len(CHANGES) * len(AROUND))
        self._rows = near.to_pylist()

    def draw(self, count: int) -> list[str]:
        """Half of them with columns, and the same with the values of some row."""
        found: list[str] = []
        while len(found) < count:
            kind = self._rng.choice([self._time, self._local, self._day, self._other])
            text = kind(self._rng.randint(1, 3))
            found += [text, self.with_constants(text)]
        return list(dict.fromkeys(found))

    def with_constants(self, text: str) -> str:
        """The expression with constants in the places of its columns."""
        row = self._rng.choice(self._rows)
        constants = {
            "ts": f"TIMESTAMP '{row['ts']:%Y-%m-%d %H:%M:%S.%f}Z'",
            "nt": f"TIMESTAMP_NTZ '{row['nt']:%Y-%m-%d %H:%M:%S.%f}'",
            "dt": f"DATE '{row['dt']:%Y-%m-%d}'",
        }
        return re.sub(r"\b(ts|nt|dt)\b", lambda name: constants[name[0]], text)

    def _written(self) -> str:
        """A local time, as a string without a zone."""
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(
            seconds=self._rng.choice(CHANGES)
            + self._rng.choice(AROUND)
            + int(self._rng.choice(SHIFTS) * 3600)
        )
        forms = ["%Y-%m-%d %H:%M:%S", "%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M:%S.5"]
        return f"'{moment.strftime(self._rng.choice(forms))}'"

    def _day_written(self) -> str:
        day = date(1970, 1, 1) + timedelta(seconds=self._rng.choice(CHANGES))
        return f"'{day + timedelta(days=self._rng.randint(-1, 1))}'"

    def _time(self, depth: int) -> str:
        units = ["minute", "hour", "day", "week", "month", "quarter", "year", "second"]
        if depth <= 0:
            return self._rng.choice(["ts", "ts", f"TIMESTAMP {self._written()}"])
        deeper = depth - 1
        made = [
            lambda: f"date_trunc('{self._rng.choice(units)}', {self._time(deeper)})",
            lambda: f"cast({self._local(deeper)} as timestamp)",
            lambda: f"cast({self._day(deeper)} as timestamp)",
            lambda: f"cast({self._written()} as timestamp)",
            lambda: f"coalesce({self._time(deeper)}, {self._day(deeper)})",
            lambda: f"greatest({self._time(deeper)}, {self._local(deeper)})",
            lambda: f"case when {self._condition(deeper)} then {self._time(deeper)} else ts end",
            lambda: f"timestamp_seconds(unix_seconds({self._time(deeper)}) + 1800)",
        ]
        return self._rng.choice(made)()

    def _local(self, depth: int) -> str:
        if depth <= 0:
            return self._rng.choice(["nt", "nt", f"TIMESTAMP_NTZ {self._written()}"])
        made = [f"cast({self._time(depth - 1)} as timestamp_ntz)", self._local(0)]
        return self._rng.choice([*made, f"cast({self._day(depth - 1)} as timestamp_ntz)"])

    def _day(self, depth: int) -> str:
        if depth <= 0:
            return self._rng.choice(["dt", "dt", f"DATE {self._day_written()}"])
        made = [f"cast({self._time(depth - 1)} as date)", f"to_date({self._local(depth - 1)})"]
        return self._rng.choice([*made, f"trunc({self._day(depth - 1)}, 'month')"])

    def _other(self, depth: int) -> str:
        """A number, a string or a condition."""
        parts = ["hour", "minute", "second", "year", "month", "day", "dayofweek", "weekofyear"]
        parts += ["quarter", "dayofyear", "unix_seconds", "unix_micros"]
        part, time = self._rng.choice(parts), self._time(depth - 1)
        made = [f"{part}({time})", f"cast({time} as string)", self._condition(depth)]
        made.append(f"{self._rng.choice(parts[:6])}({self._local(depth - 1)})")
        return self._rng.choice(made)

    def _condition(self, depth: int) -> str:
        operator = self._rng.choice(["=", "<", "<=", ">", ">=", "<>", "<=>"])
        time = self._time(depth - 1)
        made = [
            f"{time} {operator} {self._written()}",
            f"{time} {operator} {self._day(depth - 1)}",
            f"{time} {operator} {self._local(depth - 1)}",
            f"{self._local(depth - 1)} {operator} {self._day(depth - 1)}",
            f"{time} between {self._written()} and {self._written()}",
            f"{time} in ({self._written()}, {self._written()})",
            f"{self._day(depth - 1)} {operator} {self._day_written()}",
        ]
        return self._rng.choice(made)
