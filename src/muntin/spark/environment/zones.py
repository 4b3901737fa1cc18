"""The time zone of a Spark session, with the rules that its JVM has for it.

The JVM has a time zone database of its own, often of another age than Python's. Spark's answers
are those of the JVM, so the plan carries its rules to the workers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from muntin.expressions.zone_names import fixed_zone, unknown_zone
from muntin.expressions.zones import YearlyChange, Zone
from muntin.spark.environment.settings import TIME_ZONE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_known: dict[str, Zone] = {}


def session_zone(session: SparkSession, name: str | None = None) -> Zone:
    """The zone of a name as Spark reads it; the session's own if none is given.

    Raises:
        DataError: If there is no such zone.
    """
    name = str(session.conf.get(TIME_ZONE)) if name is None else name
    found = fixed_zone(name) or _known.get(name)
    if found is None:
        found = _known[name] = _zone(session, name)
    return found


def _zone(session: SparkSession, name: str) -> Zone:
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415  imported when it is used
    from pyspark.errors import PySparkException  # noqa: PLC0415

    jvm: Any = session._jvm  # noqa: SLF001  PySpark has no public name for it
    try:
        rules = jvm.org.apache.spark.sql.catalyst.util.DateTimeUtils.getZoneId(name).getRules()
    except (Py4JJavaError, PySparkException) as error:
        raise unknown_zone(name) from error
    listed = [(each.toEpochSecond(), each.getOffsetAfter()) for each in rules.getTransitions()]
    changes = tuple((instant, _seconds(offset)) for instant, offset in listed)
    first = rules.getOffset(jvm.java.time.Instant.ofEpochSecond(-(2**40)))
    return Zone(name, _seconds(first), changes, tuple(map(_yearly, rules.getTransitionRules())))


def _yearly(rule: Any) -> YearlyChange:
    """What java.time.zone.ZoneOffsetTransitionRule says, with its time of day in UTC."""
    clock = str(rule.getTimeDefinition().name())
    base = {
        "UTC": 0,
        "STANDARD": _seconds(rule.getStandardOffset()),
        "WALL": _seconds(rule.getOffsetBefore()),
    }[clock]
    time = 86_400 if rule.isMidnightEndOfDay() else rule.getLocalTime().toSecondOfDay()
    weekday = rule.getDayOfWeek()
    return YearlyChange(
        rule.getMonth().getValue(),
        rule.getDayOfMonthIndicator(),
        None if weekday is None else weekday.getValue() - 1,
        time - base,
        _seconds(rule.getOffsetAfter()),
    )


def _seconds(offset: Any) -> int:
    return int(offset.getTotalSeconds())
