"""Random row queries on Spark, with restarts, against recomputation at every instant.

Run it with ``python tests/spark/random_rows.py SEEDS [FIRST]``; `test_random_rows` runs one seed.
"""

from __future__ import annotations

import random
import sys
import tempfile
import traceback
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

TESTS = Path(__file__).parent.parent
STREAMS = ("a", "b")
DDL = "ts bigint, k double, s string, v bigint"
LATENESS = 4
SETS = ("UNION ALL", "UNION", "EXCEPT", "EXCEPT ALL", "INTERSECT")


def source(rng: random.Random, alias: str) -> str:
    """A windowed stream."""
    return f"{rng.choice(STREAMS)} [RANGE {rng.choice([1, 3, 5, 9])}{{slide}}] {alias}"


def key(rng: random.Random) -> str:
    return rng.choice(["x.k = y.k", "x.s = y.s", "x.k = y.k AND x.s = y.s", "x.v = y.v"])


def selection(rng: random.Random) -> str:
    """One SELECT with the columns k, s and v."""
    kinds = ["leaf", "distinct", "join", "join", "left", "three", "exists", "exists", "in"]
    kind = rng.choice(kinds)
    where = rng.choice(["", "", " AND x.v > 0", " AND x.s = 'a'"])
    if kind in ("leaf", "distinct"):
        word = "DISTINCT " if kind == "distinct" else ""
        return f"SELECT {word}x.k, x.s, x.v % 2 AS v FROM {source(rng, 'x')} WHERE x.v < 4{where}"
    if kind == "three":
        key_of_all = rng.choice("ksv")
        others = " ".join(
            f"{rng.choice(['JOIN', 'JOIN', 'LEFT JOIN'])} {source(rng, alias)} "
            f"ON x.{key_of_all} = {alias}.{key_of_all}"
            for alias in "yz"
        )
        return f"SELECT x.k, y.s, z.v FROM {source(rng, 'x')} {others} WHERE x.v < 9{where}"
    if kind in ("join", "left"):
        word = "LEFT JOIN" if kind == "left" else "JOIN"
        residual = rng.choice(["", " AND x.v <= y.v"])
        return (
            f"SELECT {rng.choice(['', '', 'DISTINCT '])}x.k, y.s, x.v + y.v AS v "
            f"FROM {source(rng, 'x')} {word} {source(rng, 'y')} ON {key(rng)}{residual} "
            f"WHERE x.v < 9{where}"
        )
    negated = rng.choice(["", "NOT "])
    if kind == "in":
        inner = f"SELECT y.v FROM {source(rng, 'y')}"
        inner += rng.choice(["", " WHERE y.k = x.k"])
        condition = f"x.v {negated}IN ({inner})"
    else:
        residual = rng.choice(["", " AND y.v >= x.v"])
        condition = f"{negated}EXISTS (SELECT 1 FROM {source(rng, 'y')} WHERE {key(rng)}{residual})"
    return f"SELECT x.k, x.s, x.v FROM {source(rng, 'x')} WHERE {condition}{where}"


def unmatched(rng: random.Random) -> str:
    """An outer join as Spark and Flink mean it."""
    word = rng.choice(["LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
    residual = rng.choice(["", " AND x.v <= y.v"])
    return (
        f"SELECT x.k, y.s, x.v FROM {source(rng, 'x')} {word} {source(rng, 'y')} "
        f"ON {key(rng)}{residual} EMIT UNMATCHED"
    )


def query(rng: random.Random, name: str) -> str:
    """A random query of up to four operators."""
    if rng.random() < 0.1:
        return f"CREATE QUERY {name} AS {unmatched(rng).format(slide='')};"
    text = selection(rng)
    if rng.random() < 0.35:
        text = f"{text} {rng.choice(SETS)} {selection(rng)}"
    shown = rng.choice(["", "final", "changes", "slide"])
    if shown == "slide":
        return f"CREATE QUERY {name} AS {text.format(slide=' SLIDE 3')};"
    said = f" WITH (output = '{shown}')" if shown else ""
    return f"CREATE QUERY {name}{said} AS {text.format(slide='')};"


def check(final: Any, answers: Any, found: pa.Table, since: int | None = None) -> None:
    """What Spark shows is the answer at every instant, or at every one from the first whole on."""
    from muntin.testing import row_oracle as oracle

    if since is not None and final.slide is None:
        answers = [each for each in answers if each.end is None or each.end > since]
        answers = [replace(each, begin=max(each.begin, since)) for each in answers]
    if final.slide is None:
        lives = found
        if final.output == "changes":
            # Tasks write files of their own: each is in order.
            order = [("at", "ascending"), ("op", "descending")]
            lives = oracle.replayed(found.sort_by(order))
        oracle.check_lifetimes(answers, lives)
        return
    horizon = max((each.begin for each in answers), default=0)
    first = -20 if since is None else since + 1
    ends = [t for t in range(first, horizon + 1) if (t - final.phase) % final.slide == 0]
    got = Counter((end, values) for (_, end), values in oracle.shown(found, 2) if end <= horizon)
    assert got == oracle.windows(final, answers, ends)


def run_seed(spark: Any, folder: Path, seed: int, count: int = 6, cuts: int = 5) -> list[str]:
    """Run some random queries over two streams; those that gave something.

    The run is started again without the first query, and with more, which begin with their first
    whole instant.
    """
    from muntin import sinks
    from muntin.api import run
    from muntin.plan.operators import StreamSchema, has_whole, leaves
    from muntin.plan.timeline import Timeline
    from muntin.planner.rows import row_plan
    from muntin.queries import RowQuery, all_queries
    from muntin.testing import row_oracle as oracle
    from operators.random_plans import SCHEMA, stream, table
    from spark.folder_stream import PATIENCE, FolderStream

    rng = random.Random(seed)
    texts = [query(rng, f"q{number}") for number in range(count)]
    early = len(texts) - count // 3
    text = "".join(texts)
    streams = {name: StreamSchema(SCHEMA, Timeline("ts", pa.int64())) for name in STREAMS}
    plan = row_plan([each for each in all_queries(text) if isinstance(each, RowQuery)], streams)
    given = {name: stream(rng, rng.choice([10, 25]), 40) for name in STREAMS}
    folders = {name: FolderStream(folder / name, DDL) for name in STREAMS}
    arrived = {
        name: sorted(rows, key=lambda row: row[0] + rng.randrange(LATENESS + 1))
        for name, rows in given.items()
    }
    stop = rng.randrange(1, cuts)
    before = {name: [row[0] for row in rows[: len(rows) * stop // cuts]]
              for name, rows in arrived.items()}  # fmt: skip
    for begin, end in ((0, stop), (stop, cuts)):
        for batch in range(begin, end):
            for name, rows in arrived.items():
                bounds = [len(rows) * each // cuts for each in (batch, batch + 1)]
                folders[name].put(table(rows[bounds[0] : bounds[1]]))
        done = run(
            {name: each.frame(spark) for name, each in folders.items()},
            texts[:early] if begin == 0 else texts[1:],
            lateness=LATENESS,
            sink=sinks.parquet(folder / "out"),
            checkpoint=folder / "ck",
            trigger="available_now",
            partitions=2,
            buckets=3,
        )
        assert done.await_termination(PATIENCE)
    begun = done.progress().since
    done.stop(flush=True)
    output, filled = sinks.read(folder / "out"), []
    tables = {name: table(rows) for name, rows in given.items()}
    for number, final in enumerate(plan.finals[1:], 1):
        found, since = output[final.name], None
        if number >= early:
            seen = max(time for name in final.streams for time in before[name])
            since = begun[final.name]
            ranges = [leaf.range or 1 for leaf in leaves(final.root)]
            usual = seen + (sum(ranges) if has_whole(final.root) else max(ranges))
            assert since is not None
            assert since <= usual
        try:
            check(final, oracle.answers(plan, final.root, tables), found, since)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {final.sql}\n{error}") from error
        filled += [final.name] if found.num_rows else []
    return filled


def main(seeds: int, first: int = 0) -> int:
    """Run some seeds; 1 if the answers of any are wrong."""
    from muntin.spark import session

    spark = session("random-rows", master="local[2]")
    bad = []
    for seed in range(first, first + seeds):
        try:
            with tempfile.TemporaryDirectory(prefix="muntin-rows-") as name:
                print(f"seed {seed}: {len(run_seed(spark, Path(name), seed))} queries", flush=True)
        except Exception:
            bad.append(seed)
            print(f"seed {seed}: DIFFERS\n{traceback.format_exc()}", flush=True)
    print(f"{seeds - len(bad)} of {seeds} seeds are right" + (f", not {bad}" if bad else ""))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.path.insert(0, str(TESTS))
    sys.exit(main(*map(int, sys.argv[1:])))
