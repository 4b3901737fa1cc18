"""Damage to every file of a checkpoint and of its sinks: the same results, or a refusal.

Usage: damage.py [PART], where only files whose path holds the part are damaged. One after the
other, each file is cut off, altered, deleted, and exchanged for an older one. Then the run is
started again, with more rows to come. It must refuse to, or give what an undamaged run gives.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

TESTS = Path(__file__).parent.parent
KINDS = ("truncated", "altered", "deleted", "swapped")
PARTS = ("ck", "out", "aside")
# The batches of each start: two that go well, and one after the damage.
STARTS = (2, 2, 1)
BATCHES = sum(STARTS)
QUERIES = """
CREATE QUERY turnover AS SELECT sum(price * vol) AS value
  FROM trades [RANGE '15 minutes' SLIDE '5 minutes'];
CREATE QUERY sums AS SELECT names.long, sum(vol) AS vol, count(*) AS n
  FROM trades [RANGE '10 minutes' SLIDE '3 minutes']
  JOIN names ON trades.symbol = names.symbol GROUP BY names.long;
"""
# Rows that are kept in segments of files, and in operators that change.
ROWS = """
CREATE QUERY pairs AS SELECT x.symbol, x.vol, y.vol AS other
  FROM trades [RANGE '8 minutes'] x
  JOIN trades [RANGE '9 minutes'] y ON x.symbol = y.symbol WHERE x.vol > y.vol;
CREATE QUERY alone WITH (output = 'changes') AS SELECT t.symbol, t.price
  FROM trades [RANGE '30 minutes'] t WHERE NOT EXISTS (
    SELECT 1 FROM trades [RANGE '20 minutes'] u WHERE u.symbol = t.symbol AND u.price > t.price);
CREATE QUERY active AS SELECT DISTINCT symbol FROM trades [RANGE '10 minutes'];
"""
MORE = """CREATE QUERY more AS SELECT symbol, max(price) AS highest
  FROM trades [RANGE '10 minutes' SLIDE '5 minutes'] GROUP BY symbol"""
KEEP = """CREATE KEEP recent AS SELECT symbol, sum(vol), max(price), count(*)
  FROM trades [RANGE '3 hours' SLIDE '1 minute'] GROUP BY symbol"""
QUESTION = """SELECT symbol, sum(vol) AS vol, count(*) AS n
  FROM trades [RANGE '1 hour' ALIGNED] GROUP BY symbol"""


@dataclass(frozen=True)
class Damage:
    """One file and what happens to it; paths are relative to the folder of a `Victim`."""

    path: str
    kind: str

    def __str__(self) -> str:
        return f"{self.path} {self.kind}"


class Victim:
    """A stream that has run some batches, and copies of its files to damage and to compare.

    Args:
        folder: Where everything is.
        spark: The session.
        seed: Of its rows.
    """

    def __init__(self, folder: Path, spark: Any, seed: int = 7) -> None:
        from muntin.testing import trades
        from spark.folder_stream import FolderStream, parts

        self.folder, self.spark = folder, spark
        self.copies = [folder / "kept" / str(number) for number in range(len(STARTS) - 1)]
        self.stream = FolderStream(folder / "in")
        rows = trades(300 * BATCHES, seed=seed, seconds=900 * BATCHES)
        symbols = sorted(set(rows["symbol"].to_pylist()))
        self.names = pa.table({"symbol": symbols, "long": [f"long {each}" for each in symbols]})
        self.batches = parts(rows, BATCHES)
        # Rows of the first batch come again, and are late.
        for number in range(1, BATCHES):
            late = self.batches[0].slice(number, 3)
            self.batches[number] = pa.concat_tables([self.batches[number], late])

    def prepare(self) -> None:
        """Run the first starts, keep a copy of all files after each, and let more rows come."""
        for number, count in enumerate(STARTS):
            for batch in self.batches[self.stream.count :][:count]:
                self.stream.put(batch)
            if number < len(STARTS) - 1:
                self.go()
                for part in PARTS:
                    shutil.copytree(self.folder / part, self.copies[number] / part)

    @property
    def whole(self) -> Path:
        """The copy of everything as it was before any damage."""
        return self.copies[-1]

    def restore(self) -> None:
        """Put everything back as it was before any damage."""
        for part in PARTS:
            shutil.rmtree(self.folder / part, ignore_errors=True)
            deadline = time.monotonic() + 60
            while (self.folder / part).exists():
                # Tasks of a run that has failed still made folders there.
                assert time.monotonic() < deadline
                time.sleep(0.1)
                shutil.rmtree(self.folder / part, ignore_errors=True)
            # Files are replaced and never written again, so that links will do.
            shutil.copytree(self.whole / part, self.folder / part, copy_function=os.link)

    def go(self) -> None:
        """Run over what there is, and end; what goes wrong is raised."""
        from muntin import sinks
        from muntin.api import run

        started = run(
            self.stream.frame(self.spark),
            QUERIES + ROWS + (MORE if self.stream.count > STARTS[0] else ""),
            sink=sinks.parquet(self.folder / "out", compact_every=2),
            side_output=self.folder / "aside",
            checkpoint=self.folder / "ck",
            trigger="available_now",
            tables={"names": self.names},
            keeps=KEEP,
            partitions=2,
            buckets=4,
        )
        try:
            assert started.await_termination(240)
        finally:
            started.stop()

    def results(self) -> dict[str, pa.Table]:
        """All results and rows set aside, sorted."""
        from muntin import sinks

        found = {}
        for part in PARTS[1:]:
            output = sinks.read(self.folder / part)
            for name in output:
                table = output[name]
                order = [(column, "ascending") for column in table.column_names]
                found[f"{part}/{name}"] = table.sort_by(order)
        return found

    def everything(self) -> tuple[dict[str, pa.Table], list[dict[str, Any]]]:
        """All that a run leaves for others."""
        return self.results(), self.asked()

    def asked(self) -> list[dict[str, Any]]:
        """What is answered from what was kept."""
        from muntin.spark.streaming.checkpoint.asks import asking_of

        rows: list[dict[str, Any]] = asking_of(self.folder / "ck").ask(QUESTION).frame.to_pylist()
        return sorted(rows, key=lambda row: row["symbol"])

    def files(self) -> list[str]:
        """All files that may be damaged; a lock says nothing, and checksums of Hadoop's guard."""
        paths = (path for part in PARTS for path in (self.whole / part).rglob("*"))
        names = sorted(str(path.relative_to(self.whole)) for path in paths if path.is_file())
        return [name for name in names if not name.endswith((".crc", "/lock"))]

    def damages(self) -> Iterator[Damage]:
        """Every damage to every file."""
        for name in self.files():
            for kind in KINDS:
                if kind != "swapped" or self.older(name) is not None:
                    yield Damage(name, kind)

    def older(self, name: str) -> Path | None:
        """An older file to put in the place of one: itself of an earlier moment, or a sibling."""
        content, shape = (self.whole / name).read_bytes(), _shape(Path(name).name)
        siblings = []
        for copy in reversed(self.copies):
            earlier = copy / name
            if earlier.exists() and earlier.read_bytes() != content:
                return earlier
            siblings += [
                path
                for path in (earlier.parent.iterdir() if earlier.parent.exists() else ())
                if path.is_file() and _shape(path.name) == shape and path.read_bytes() != content
            ]
        before = [path for path in siblings if _number(path.name) <= _number(name)]
        return max(before or siblings, key=lambda path: _number(path.name), default=None)

    def strike(self, damage: Damage) -> None:
        """Do the damage; Hadoop's own checksum goes with what it is of."""
        path = self.folder / damage.path
        crc = path.with_name(f".{path.name}.crc")
        content = path.read_bytes()
        path.unlink()
        if damage.kind == "truncated":
            path.write_bytes(content[: len(content) // 2])
        elif damage.kind == "altered":
            # One byte of what Spark compresses may not matter: it says the same in another way.
            path.write_bytes(_altered(content, 8 if path.suffix == ".delta" else 1))
        elif damage.kind == "swapped":
            older = self.older(damage.path)
            assert older is not None
            shutil.copyfile(older, path)
        crc.unlink(missing_ok=True)
        if damage.kind == "swapped":
            beside = older.with_name(f".{older.name}.crc")
            if beside.exists():
                shutil.copyfile(beside, crc)


def _shape(name: str) -> str:
    """What files of one kind have in common."""
    return re.sub(r"[0-9a-f]{8,}|\d+", "#", name)


def _number(name: str) -> int:
    """The batch or version in a name."""
    found = re.search(r"\d+", Path(name).name)
    return int(found[0]) if found else 0


def _altered(content: bytes, count: int) -> bytes:
    """One byte is another one: the last digit of a text, or one in the middle, or some there."""
    digits = [place for place, byte in enumerate(content) if chr(byte).isdigit()]
    is_text = content.isascii() and digits
    place = digits[-1] if is_text else len(content) // 2
    if is_text:
        other = bytes([ord("0") + (content[place] - ord("0") + 1) % 10])
    else:
        other = bytes(byte ^ 1 for byte in content[place : place + count])
    return content[:place] + other + content[place + len(other) :]


def outcome_of(work: Callable[[], Any], same: Callable[[], bool]) -> str:
    """What comes of a start after damage: ``refused``, ``same``, or what is wrong with it."""
    from muntin.errors import MuntinError

    try:
        work()
        return "same" if same() else "DIFFERS"
    except MuntinError as error:
        return f"refused: {error.message}" if error.hint else f"NO HINT: {error.message}"
    except Exception as error:
        return f"UNCLEAR {type(error).__name__}: {str(error).splitlines()[0]}"


def main(part: str = "") -> int:
    """Try every damage with a restart; 1 if any of them went by unseen."""
    from muntin.spark import session, stop

    begun, found = time.monotonic(), Counter[str]()
    spark = session("damage", master="local[2]", config={"spark.driver.memory": "1g"})
    with tempfile.TemporaryDirectory(prefix="muntin-damage-") as name:
        victim = Victim(Path(name), spark)
        victim.prepare()
        victim.restore()
        victim.go()
        wanted = victim.everything()
        for damage in victim.damages():
            if part not in damage.path:
                continue
            victim.restore()
            victim.strike(damage)
            told = outcome_of(victim.go, lambda: victim.everything() == wanted)
            found[told.split(":")[0].split(" ")[0]] += 1
            print(f"{damage}: {told}", flush=True)
    stop(spark)
    print(f"{dict(found)} in {time.monotonic() - begun:.0f} s")
    return 0 if set(found) <= {"refused", "same"} else 1


if __name__ == "__main__":
    sys.path.insert(0, str(TESTS))
    sys.exit(main(*sys.argv[1:]))
