"""Runs batches in child processes and kills them at random moments.

Run as ``python victim.py FOLDER SEED BATCHES``; it prints how often it killed.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import stream_of_results as stream

from muntin.sinks import parquet
from muntin.sinks.files.log import CommitLog


def work(folder: Path, batches: int, seed: int) -> None:
    """Go on where the checkpoint is, as a run does that is started again."""
    rng = random.Random(seed)
    checkpoint = folder.with_suffix(".checkpoint")
    done = int(checkpoint.read_text() or -1) if checkpoint.exists() else -1
    sink = parquet(folder, compact_every=4)
    sink.recover(done, run="the run")
    for batch in range(done + 1, batches):
        stream.run_batch(sink, batch)
        temporary = checkpoint.with_suffix(".tmp")
        temporary.write_text(str(batch))
        temporary.replace(checkpoint)
        if rng.random() < 0.2:
            sink.compact()
    sink.close()


def main() -> None:
    folder, seed, batches = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    rng = random.Random(seed)
    kills, seen = 0, -1
    while True:
        child = os.fork()
        if child == 0:
            work(folder, batches, rng.randrange(1 << 30) + kills)
            os._exit(0)
        # Short lives at first, longer ones later, so that every seed comes to an end.
        time.sleep(rng.random() * (0.03 + 0.01 * kills))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if (folder / "_muntin.json").exists():
            if CommitLog(folder).snapshot().last < seen:
                raise AssertionError("a committed batch is gone")
            seen = stream.assert_whole(folder)
        if os.WIFEXITED(status):
            if os.WEXITSTATUS(status):
                raise AssertionError("the run failed")
            break
        kills += 1
    print(kills)


if __name__ == "__main__":
    main()
