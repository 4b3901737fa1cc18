"""How a run goes, at one moment."""

from __future__ import annotations

from dataclasses import dataclass

from muntin.windows import duration_text


@dataclass(frozen=True)
class RunProgress:
    """What a run has seen and done since its first start, and how its last batch went.

    Attributes:
        is_active: Whether batches are run.
        queries: How many queries there are.
        batches: How many batches have come to their end.
        rows: Rows that came in.
        late_rows: Rows below the watermark, which were dropped.
        bad_rows: Rows without a time that can be used, which were dropped.
        results: Rows of results by query, for those that run.
        errors: Failed values by query: overflow, division by zero, a bad cast.
        seen: The largest event time, in ticks; None before the first.
        watermark: Windows up to this tick are answered; None before the first.
        lag: Seconds from the largest event time to the clock; None where times are numbers.
        state_bytes: Bytes of all state.
        batch_rows: Rows of the last batch.
        batch_seconds: How long the last batch took on the driver.
    """

    is_active: bool
    queries: int
    batches: int
    rows: int
    late_rows: int
    bad_rows: int
    results: dict[str, int]
    errors: dict[str, int]
    seen: int | None
    watermark: int | None
    lag: float | None
    state_bytes: int
    batch_rows: int
    batch_seconds: float

    @property
    def rate(self) -> float:
        """Rows a second in the last batch."""
        return self.batch_rows / self.batch_seconds if self.batch_seconds else 0.0

    def __str__(self) -> str:
        state = "runs" if self.is_active else "has ended"
        parts = [
            f"{self.queries} queries over {self.rows:,} rows in {self.batches:,} batches",
            f"{sum(self.results.values()):,} rows of results",
            f"the last batch took {self.batch_seconds:.2f} s ({self.rate:,.0f} rows/s)",
            f"{self.late_rows:,} late and {self.bad_rows:,} bad rows",
            f"{self.state_bytes:,} bytes of state",
        ]
        if self.lag is not None:
            parts.append(f"{duration_text(round(self.lag) * 1_000_000)} behind the clock")
        return f"The stream {state}: " + ", ".join(parts)
