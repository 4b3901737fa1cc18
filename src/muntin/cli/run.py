"""``muntin run``: a SQL file on Spark, until it ends, fails or is stopped."""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from muntin.cli.files import SIGNALLED, FailedRunError, File, Output, Settings, read_file
from muntin.cli.screen.signals import Signals

if TYPE_CHECKING:
    from muntin.cli.screen.charts import Charts
    from muntin.cli.screen.screen import Screen
    from muntin.pipelines import Pipeline, PipelineRun

_NAP = 0.1  # seconds


class OnGap(StrEnum):
    """What results do that a sink has lost."""

    FAIL = "fail"
    ACCEPT = "accept"


@dataclass(frozen=True)
class _Start:
    """How a file is run, as `pipelines.run` has it."""

    once: bool
    flush: bool
    on_gap: OnGap
    charts: Charts | None = None


Checkpoint = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="The folder that it resumes from; .muntin/FILE by default."),
]


def run(
    file: File,
    checkpoint: Checkpoint = None,
    once: Annotated[bool, typer.Option("--once", help="Process what is there, and end.")] = False,
    flush: Annotated[
        bool,
        typer.Option(help="With --once, answer open windows too; it cannot resume after that."),
    ] = True,
    on_gap: Annotated[
        OnGap,
        typer.Option(
            help="Results that a sink has lost: fail, or accept and continue without them."
        ),
    ] = OnGap.FAIL,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Draw each query's results there when it ends, as PNG."),
    ] = None,
    settings: Settings = None,
    conf: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A setting of Spark's; may be repeated."),
    ] = None,
    log_format: Annotated[
        Output, typer.Option(help="text, or json for one object per line.")
    ] = Output.TEXT,
) -> None:
    """Run a SQL file on Spark: every stream in it, with all its queries in one shared pass.

    Ctrl-C stops it between two batches. Started again, it resumes exactly where it left off, even
    after a crash. Ends with 0 when its input ends, 1 for bad input, 3 if it fails, 130 after
    Ctrl-C and 143 after SIGTERM. Example: muntin run trades.sql --checkpoint ck
    """
    pipeline = read_file(file, settings)
    folder = default_checkpoint(file) if checkpoint is None else checkpoint
    start = _Start(once, flush, on_gap, None if plot is None else _charts(plot))
    raise typer.Exit(run_pipeline(pipeline, folder, start, conf or (), log_format))


def _charts(folder: Path) -> Charts:
    from muntin.cli.screen.charts import Charts  # noqa: PLC0415 - the command line starts without it

    return Charts(folder)


def default_checkpoint(file: Path) -> Path:
    """Where a file's checkpoint is by default: beside it, by its name."""
    return file.absolute().parent / ".muntin" / file.stem


def run_pipeline(
    pipeline: Pipeline,
    folder: Path,
    start: _Start,
    conf: Sequence[str],
    log_format: Output,
) -> int:
    """Run until the end, and give the exit code."""
    from muntin.cli.screen.screen import make_screen  # noqa: PLC0415
    from muntin.pipelines.runner import check_checkpoint  # noqa: PLC0415

    check_checkpoint(folder)
    screen = make_screen(log_format)
    with Signals() as signals, logging_to(screen):
        screen.say(starting())
        spark = _started(parse_conf(conf), signals)
        if spark is None:
            screen.say("stopped")
            return SIGNALLED + signals.received
        signals.install()
        try:
            _run_on(spark, pipeline, folder, start, screen, signals)
        except Exception:
            # The second signal may have come in the middle of any call to the JVM.
            if not signals.is_insisted:
                raise
    return SIGNALLED + signals.received if signals.received else 0


def _run_on(
    spark: Any,
    pipeline: Pipeline,
    folder: Path,
    start: _Start,
    screen: Screen,
    signals: Signals,
) -> None:
    from muntin import pipelines, sinks  # noqa: PLC0415 - the command line starts without them
    from muntin.pipelines.control import Commands, ControlServer  # noqa: PLC0415
    from muntin.spark import stop  # noqa: PLC0415
    from muntin.spark.streaming.checkpoint.files import writing_to  # noqa: PLC0415
    from muntin.spark.streaming.problems import RunError  # noqa: PLC0415

    try:
        running = pipelines.run(
            pipeline,
            folder,
            once=start.once,
            flush=start.flush,
            on_gap=start.on_gap.value,
            session=spark,
            screen=sinks.callback(screen.results),
            watcher=screen.last_row,
            beside=None if start.charts is None else start.charts.sink,
        )
        with writing_to(running.checkpoint):
            control = ControlServer(running.checkpoint, Commands(running))
        try:
            _watch(running, screen, signals)
        finally:
            control.close()
        for line in [] if start.charts is None else start.charts.save():
            screen.say(line)
    except RunError as error:
        # One that was to answer the windows that a run before had left open.
        raise FailedRunError(error.message, hint=error.hint) from error
    finally:
        stop(spark)


def _started(conf: dict[str, str], signals: Signals) -> Any:
    """A Spark session; None where a signal came while it started."""
    try:
        with signals.starting():
            return quiet_session(conf)
    except BaseException:
        # A signal to all processes of a group ends Spark's as well, which is no fault then.
        if not signals.received:
            raise
        return None


def _watch(running: PipelineRun, screen: Screen, signals: Signals) -> None:
    try:
        with running, screen.shown(running):
            while not signals.received and not screen.is_closed and not running.poll():
                screen.tick(running)
                time.sleep(_NAP)
            if signals.received:
                screen.say("stopping after this batch ...")
            running.stop()
            screen.finish(running, going_on=bool(signals.received))
    except Exception as error:
        raise FailedRunError(
            getattr(error, "message", None) or f"{type(error).__name__}: {error}",
            hint=getattr(error, "hint", None),
        ) from error


def starting() -> str:
    """What to say while Spark starts: the first run of an installation waits longer."""
    from muntin._compiled import kernel_files  # noqa: PLC0415 - as above

    compiling = next(kernel_files(), None) is None
    return f"starting Spark{', and compiling kernels for half a minute' * compiling} ..."


def parse_conf(conf: Sequence[str]) -> dict[str, str]:
    """Settings of Spark's from texts such as ``name=value``."""
    from muntin.errors import MuntinError  # noqa: PLC0415 - as above

    found = {}
    for setting in conf:
        name, equals, value = setting.partition("=")
        if not equals or not name:
            hint = "write --conf spark.driver.memory=4g"
            raise MuntinError(f"--conf {setting} is not of the form name=value", hint=hint)
        found[name] = value
    return found


def quiet_session(conf: dict[str, str]) -> Any:
    """A Spark session that leaves it to the command to say what went wrong."""
    import sys  # noqa: PLC0415 - as above

    from muntin.spark import session  # noqa: PLC0415

    started = session("muntin", config=conf)
    if "--debug" not in sys.argv:
        started.sparkContext.setLogLevel("OFF")
    return started


class _ScreenHandler(logging.Handler):
    def __init__(self, screen: Screen) -> None:
        super().__init__(logging.INFO)
        self._screen = screen

    def emit(self, record: logging.LogRecord) -> None:
        self._screen.say(record.getMessage(), record.levelname.lower())


@contextmanager
def logging_to(screen: Screen) -> Iterator[None]:
    """Show what is logged, and warnings, without their places in the code."""
    handler = _ScreenHandler(screen)
    logger = logging.getLogger("muntin")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: screen.say(str(message), "warning")
            yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
