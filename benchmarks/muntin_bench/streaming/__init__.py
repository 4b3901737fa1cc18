"""What a stream costs: its news, not what it keeps."""

from muntin_bench.streaming.benchmark import run

__all__ = ["run"]
