"""Many queries at once: what sharing costs and saves."""

from muntin_bench.report import Report


def run(quick: bool = False) -> Report:
    """Run the benchmark; imported here, since its data and queries are used without it too."""
    from muntin_bench.sharing import benchmark  # noqa: PLC0415 - slow to import

    return benchmark.run(quick)


__all__ = ["run"]
