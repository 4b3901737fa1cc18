"""A dashboard that asks a running stream what nobody registered a query for.

Run it with `.venv/bin/python examples/dashboard.py`.
"""

import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

import muntin
from muntin.streams import Stream
from muntin.synopses import Answer
from muntin.testing import trades

FILE = Path(__file__).with_suffix(".sql")
BATCH = 2_000

ON_SCREEN = {
    "high and volume of EEE": """
        SELECT max(price) AS high, sum(vol) AS vol FROM trades [RANGE '7 minutes' ALIGNED]
        WHERE symbol = 'EEE'""",
    "busiest symbols": """
        SELECT symbol, count(*) AS n, sum(vol) AS vol FROM trades [RANGE '15 minutes' ALIGNED]
        GROUP BY symbol ORDER BY n DESC LIMIT 3""",
    "large trades, final": """
        SELECT count(*) AS n FROM trades [RANGE '30 minutes' AS OF WATERMARK ALIGNED]
        WHERE vol > 5000""",
    "last ten trades of EEE": """
        SELECT avg(price) AS price, sum(vol) AS vol FROM trades [PARTITION BY symbol ROWS 10]
        WHERE symbol = 'EEE'""",
}


def watch(stream: Stream, symbols: list[str], done: threading.Event) -> list[Answer]:
    """What a chart does meanwhile: it asks for the high of one symbol after the other."""
    ask = stream.prepare("SELECT max(price) AS high FROM trades [RANGE ? ALIGNED] WHERE symbol = ?")
    answers = []
    while not done.is_set():
        answers += [ask("5 minutes", symbol) for symbol in symbols]
    return answers


def show(title: str, answer: Answer) -> None:
    """An answer as the screen has it, and what it is worth."""
    worth = "exact" if answer.exact else "bounds"
    print(f"\n{title}: {worth} for {answer.covers.start:%H:%M:%S} to {answer.covers.end:%H:%M:%S}")
    print(answer.frame.to_pandas().to_string(index=False))


def check(data: pa.Table, answers: list[Answer], symbols: list[str]) -> None:
    """Compare what the chart was told with the trades themselves, as many as had come by then."""
    for number, answer in enumerate(answers):
        start, end = answer.covers
        of_symbol = pc.field("symbol") == symbols[number % len(symbols)]
        inside = (pc.field("ts") >= start) & (pc.field("ts") < end) & of_symbol
        prices = data.slice(0, answer.batch * BATCH).filter(inside)["price"]
        assert answer.table["high"].to_pylist() == [pc.max(prices).as_py()]


if __name__ == "__main__":
    data = trades(40_000, symbols=20)
    symbols = sorted(set(data["symbol"].to_pylist()))[:4]
    stream = muntin.stream(FILE, data.schema, lateness="5 seconds", max_ahead=None)
    stream.feed(data.slice(0, BATCH))

    done, told = threading.Event(), []
    chart = threading.Thread(target=lambda: told.extend(watch(stream, symbols, done)))
    chart.start()
    for low in range(BATCH, data.num_rows, BATCH):
        stream.feed(data.slice(low, BATCH))
    done.set()
    chart.join()

    for title, question in ON_SCREEN.items():
        show(title, stream.ask(question))
    print(f"\nkept: {stream.explain_keeps().splitlines()[1].strip()}")

    try:
        stream.ask("SELECT median(price) AS mid FROM trades [RANGE '7 minutes']")
    except muntin.QuestionError as error:
        print(f"\nrefused: {str(error).splitlines()[0]}")
    assert told
    check(data, told, symbols)
    print("\nall that the chart was told while batches came: equal to the trades themselves")
