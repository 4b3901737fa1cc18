"""Serves one adapter: commands come on standard input, a JSON object a line, replies go out.

`python -P serve.py duckdb` loads the file `duckdb.py` beside this one. It needs nothing of
Muntin, so that any environment's Python can run it. Commands:

- `{"do": "prepare", "mode": "", "job": {...}}`: hand over rows and queries, untimed;
- `{"do": "answer", "mode": ""}`: answer all once and write a Parquet file per query;
- `{"do": "time", "mode": ""}`: answer all queries, and say how many seconds it took.

An adapter may have several modes; each keeps its own job. One that has waited long for its turn
answers once untimed first.
"""

from __future__ import annotations

import gc
import importlib.util
import json
import os
import sys
import time
import traceback
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

# Spark ends Python workers that have been idle for a minute.
_WAITED = 30.0
# What takes longer pays little for having waited.
_LONG = 20.0


def main() -> None:
    """Serve until standard input ends."""
    name = sys.argv[1]
    # Engines print where they like: replies have a pipe of their own.
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    if os.environ.get("MUNTIN_PEER_CORES") == "1" and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    server = Server(name)
    for line in sys.stdin:
        try:
            reply = server.reply(json.loads(line))
        except Exception as error:
            words = str(error).strip().splitlines() or [type(error).__name__]
            reply = {"error": words[0][:300], "trace": traceback.format_exc()[-3000:]}
        replies.write(json.dumps(reply) + "\n")


class Server:
    """One adapter, and the job that each of its modes was given last."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._adapters: dict[str, Any] = {}
        self._folders: dict[str, Path] = {}
        self._ended, self._took = 0.0, 0.0

    def reply(self, command: dict[str, Any]) -> dict[str, Any]:
        """Do what a command says."""
        mode = command["mode"]
        if command["do"] == "prepare":
            if mode not in self._adapters:
                self._adapters[mode] = load(self._name)(mode)
            self._folders[mode] = Path(command["job"]["answers"])
            return {"how": self._adapters[mode].prepare(command["job"])}
        if command["do"] == "time" and self._is_cold():
            run(self._adapters[mode])
        spent, found = run(self._adapters[mode])
        if command["do"] == "answer":
            write(self._adapters[mode].tables(found), self._folders[mode])
        self._ended, self._took = time.monotonic(), spent["seconds"]
        return spent

    def _is_cold(self) -> bool:
        """Whether it has waited for its turn so long that it would pay for that."""
        return self._took < _LONG and time.monotonic() - self._ended > _WAITED


def run(adapter: Any) -> tuple[dict[str, float], Any]:
    """Answer all queries; the seconds it took by the clock and on all cores, and what it gave."""
    gc.collect()
    before, own, begin = others(), time.process_time(), time.perf_counter()
    found = adapter.run()
    seconds, used = time.perf_counter() - begin, time.process_time() - own
    return {"seconds": seconds, "cpu": used + others() - before}, found


def others() -> float:
    """Seconds that cores have spent on the other processes of this session, a JVM for one."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # The name, in parentheses, may hold anything.
            fields = path.read_text().rpartition(")")[2].split()
            if int(fields[3]) == os.getsid(0) and path.parent.name != str(os.getpid()):
                ticks += sum(int(field) for field in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def write(tables: Any, folder: Path) -> None:
    """Write tables by name as Parquet files."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - after the threads are set

    folder.mkdir(parents=True, exist_ok=True)
    for name, table in tables:
        pq.write_table(table, folder / f"{name}.parquet")


@cache
def load(name: str) -> Any:
    """The class `Adapter` of the file with this name, whatever package has the same name."""
    path = Path(__file__).with_name(f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"adapter_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Adapter


if __name__ == "__main__":
    main()
