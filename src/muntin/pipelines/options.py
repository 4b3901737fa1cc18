"""The options of one statement, read by the rules of its format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import pyarrow as pa

from muntin.errors import MuntinError, Problem, did_you_mean
from muntin.expressions.zone_names import zone
from muntin.queries import CreateSink, CreateSource, Option
from muntin.queries.source import shown
from muntin.windows import DurationLike, duration


class OptionReader:
    """Reads the options of a statement; what is wrong with them is kept in ``problems``."""

    def __init__(self, statement: CreateSource | CreateSink, variables: Mapping[str, str]) -> None:
        self.statement = statement
        self.variables = variables
        self.kind = "sink" if isinstance(statement, CreateSink) else statement.kind
        self.problems: list[Problem] = []
        self._given = {option.key.lower(): option for option in statement.options}

    def read(self) -> tuple[str, dict[str, Any]]:
        """The format, and every option it has; both are of no use if there are problems."""
        formats = OPTIONS[self.kind]
        form = str(self._value("format", Rule(choice(*formats), required=True)) or "")
        rules = formats.get(form) or _any_format(formats)
        spelled = {name.lower(): name for name in rules}
        for key, option in self._given.items():
            passed = form in ("kafka", "") and key.startswith(KAFKA_PREFIX)
            if key not in spelled and key != "format" and not passed:
                self._unknown(option, form, rules)
        found = {name: self._value(name, rule) for name, rule in rules.items()}
        if form == "kafka":
            found |= self._kafka(spelled)
        return form, found

    def problem(self, message: str, hint: str | None, key: str | None = None) -> None:
        """Record what is wrong with the value of an option, or with the statement."""
        option = self._given.get(key.lower()) if key is not None else None
        self._add(self.statement.start if option is None else option.at, message, hint)

    def _add(self, offset: int, message: str, hint: str | None) -> None:
        name = f"{self.kind} {shown(self.statement.name)}: "
        self.problems.append(self.statement.text.problem(offset, f"{name}{message}", hint))

    def _value(self, name: str, rule: Rule) -> Any:
        option = self._given.get(name.lower())
        if option is None:
            if rule.required:
                formats = ", ".join(OPTIONS[self.kind])
                example = f"one of {formats}" if name == "format" else "..."
                self.problem(f"there is no {name}", f"add {name} = '{example}'")
            return rule.default
        try:
            return rule.read(substitute(option.value, self.variables))
        except MuntinError as error:
            self._add(option.at, f"{name}: {error.message}", error.hint)
            return rule.default

    def _unknown(self, option: Option, form: str, rules: Mapping[str, Rule]) -> None:
        key = option.key.lower()
        near = did_you_mean(option.key, ["format", *rules])
        hint = ADVICE[key] if key in ADVICE else near or f"known options: {', '.join(rules)}"
        what = f"{form} {self.kind}".strip()
        message = f"a {what} has no option {shown(option.key)}"
        self._add(option.start, message, hint)

    def _kafka(self, spelled: Mapping[str, str]) -> dict[str, Any]:
        if not any(name.lower() in self._given for name in KAFKA_TOPICS):
            self.problem("there is no topic", "add subscribe = 'topic'")
        return {
            option.key: self._value(option.key, Rule(any_text))
            for key, option in self._given.items()
            if key.startswith(KAFKA_PREFIX) and key not in spelled
        }


def _any_format(formats: Mapping[str, Mapping[str, Rule]]) -> dict[str, Rule]:
    """The rules of all formats, where it is not known which one is meant."""
    merged = {name: rule for rules in formats.values() for name, rule in rules.items()}
    return {name: replace(rule, required=False) for name, rule in merged.items()}


Reader: TypeAlias = Callable[[str], Any]

MAX_DIGITS = 18
ON_CHANGE = "1 second"


def text(value: str) -> str:
    """Any text but the empty one."""
    if not value:
        raise MuntinError("the value is empty", hint="write what it should be, or leave it out")
    if not value.isprintable():
        raise MuntinError(
            "the value has characters that do not print", hint="write it without them"
        )
    return value


def any_text(value: str) -> str:
    """Any text, for options that are handed on."""
    return value


def variable(value: str) -> str:
    """The name of an environment variable; people write the secret it should hold."""
    if not value.isidentifier():
        hint = "write a name such as 'MUNTIN_POSTGRES_URL', and give it its value outside the file"
        raise MuntinError("the value is not the name of an environment variable", hint=hint)
    return value


def choice(*names: str) -> Reader:
    """One of some words, in any letter case.

    >>> choice("skip", "fail")("Skip")
    'skip'
    """

    def read(value: str) -> str:
        if value.lower() not in names:
            hint = did_you_mean(value, names) or f"use one of {', '.join(names)}"
            raise MuntinError(f"there is no {shown(value)!r} here", hint=hint)
        return value.lower()

    return read


def boolean(value: str) -> bool:
    """TRUE or FALSE."""
    if value.lower() not in ("true", "false"):
        raise MuntinError(f"{shown(value)!r} is neither TRUE nor FALSE", hint="write one of them")
    return value.lower() == "true"


def number(least: int, most: int) -> Reader:
    """A whole number within bounds.

    >>> number(1, 10)("7")
    7
    """

    def read(value: str) -> int:
        digits = value.removeprefix("-")
        plain = digits.isascii() and digits.isdigit() and len(digits) <= MAX_DIGITS
        if not plain or not least <= int(value) <= most:
            hint = f"write a whole number from {least:,} to {most:,}"
            raise MuntinError(f"the value is {shown(value)!r}", hint=hint)
        return int(value)

    return read


def letter(value: str) -> str:
    r"""One character, as \t or as itself."""
    value = "\t" if value == "\\t" else value
    if len(value) != 1 or value in "\r\n\"'":
        hint = "write one character such as ',' or ';' or '\\t'"
        raise MuntinError(f"{shown(value)!r} cannot separate columns", hint=hint)
    return value


def timezone(value: str) -> str:
    """The name of a time zone, or an offset from UTC.

    >>> timezone("Europe/Paris")
    'Europe/Paris'
    """
    zone(value)
    return value


def length(value: str) -> DurationLike:
    """A duration, or a plain number for streams whose time is a number.

    >>> length("10 seconds"), length("5")
    ('10 seconds', 5)
    """
    if value.isascii() and value.isdigit() and len(value) <= MAX_DIGITS:
        return int(value)
    if duration(value) < 0:
        raise MuntinError(f"{shown(value)!r} is negative", hint="use 0 or more")
    return value


def length_or_none(value: str) -> DurationLike | None:
    """A duration, or 'none'."""
    return None if value.lower() == "none" else length(value)


def refresh(value: str) -> DurationLike | None:
    """How often files are looked at for a change; None for never."""
    words: dict[str, DurationLike | None] = {"on change": ON_CHANGE, "never": None}
    if value.lower() in words:
        return words[value.lower()]
    often = length(value)
    if isinstance(often, int) or duration(often) <= 0:
        hint = "write 'on change', 'never', or a duration such as '30 seconds'"
        raise MuntinError(f"the value is {shown(value)!r}", hint=hint)
    return often


# The columns of generated trades.
RATE_COLUMNS = pa.schema(
    {
        "ts": pa.timestamp("us", "UTC"),
        "symbol": pa.string(),
        "price": pa.float64(),
        "vol": pa.int64(),
        "exchange": pa.string(),
    }
)
FILE_FORMATS = ("parquet", "csv", "json")
# Options of Spark's own Kafka source; those of Kafka itself begin with kafka. and are not listed.
KAFKA_TOPICS = ("subscribe", "subscribePattern", "assign")
KAFKA_OPTIONS = (
    *KAFKA_TOPICS,
    "startingOffsets",
    "startingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "startingTimestamp",
    "failOnDataLoss",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "minPartitions",
    "groupIdPrefix",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
)
KAFKA_PREFIX = "kafka."
KAFKA_SERVERS = "kafka.bootstrap.servers"


@dataclass(frozen=True)
class Rule:
    """How an option is read, what it is if not given, and whether it must be."""

    read: Reader
    default: Any = None
    required: bool = False


_PATH = {"path": Rule(text, required=True)}
_LIVE = {"live": Rule(boolean, default=False)}
_CSV = {"header": Rule(boolean, default=True), "delimiter": Rule(letter, default=",")}
_BATCHES = {"files_per_batch": Rule(number(1, 1_000_000))}
_STREAM = {
    "time": Rule(text, default="ts"),
    "lateness": Rule(length, default=0),
    "idle": Rule(length_or_none),
    "advance_when_idle": Rule(length_or_none),
    "on_bad_row": Rule(choice("skip", "fail"), default="skip"),
    "on_error": Rule(choice("null", "fail"), default="null"),
    "max_ahead": Rule(length_or_none, default="1 day"),
    "side_output": Rule(text),
    "timezone": Rule(timezone),
}
_RATE = {
    "rows_per_second": Rule(number(1, 100_000_000), default=1000),
    "symbols": Rule(number(1, 1_000_000), default=10),
    "seed": Rule(number(0, 2**31 - 1), default=7),
}
_KAFKA = {
    KAFKA_SERVERS: Rule(text, required=True),
    "value_format": Rule(choice("json", "csv"), default="json"),
    **{name: Rule(any_text) for name in KAFKA_OPTIONS},
}
_REFRESH = {"refresh": Rule(refresh, default=ON_CHANGE)}

OPTIONS: Mapping[str, Mapping[str, Mapping[str, Rule]]] = {
    "stream": {
        "parquet": {**_STREAM, **_PATH, **_BATCHES},
        "csv": {**_STREAM, **_PATH, **_BATCHES, **_CSV},
        "json": {**_STREAM, **_PATH, **_BATCHES},
        "rate": {**_STREAM, **_RATE},
        "kafka": {**_STREAM, **_KAFKA},
    },
    "table": {
        "parquet": {**_PATH, **_REFRESH},
        "csv": {**_PATH, **_REFRESH, **_CSV},
        "json": {**_PATH, **_REFRESH},
    },
    "sink": {
        "parquet": dict(_PATH),
        "console": {"rows": Rule(number(1, 10_000), default=20)},
        "memory": {"max_rows": Rule(number(1, 10**12))},
        "duckdb": {**_PATH, **_LIVE},
        "postgres": {
            "url_env": Rule(variable, default="MUNTIN_POSTGRES_URL"),
            "schema": Rule(text, default="public"),
            "prefix": Rule(any_text, default=""),
            **_LIVE,
        },
    },
}
# What people try, and what to write instead.
ADVICE = {
    "url": "name an environment variable that holds it: url_env = 'MUNTIN_POSTGRES_URL'",
    "password": "put it into the URL that the environment variable of url_env holds",
    "connector": "write format = 'kafka', 'csv', 'json' or 'parquet'",
    "topic": "write subscribe = 'topic'",
    "bootstrap.servers": f"write {KAFKA_SERVERS}",
    "properties.bootstrap.servers": f"write {KAFKA_SERVERS}",
    "watermark": "write lateness = '10 seconds'",
    "sep": "write delimiter",
}


def substitute(text: str, variables: Mapping[str, str]) -> str:
    """The text with each ``${name}`` replaced by its value; ``$${`` stands for ``${`` itself.

    A value is taken as it is: what looks like a variable inside it is none.

    >>> substitute("${home}/in, not $${home}", {"home": "/data"})
    '/data/in, not ${home}'
    >>> substitute("${hme}", {"home": "/data"})
    Traceback (most recent call last):
    muntin.errors.MuntinError: nothing says what ${hme} is
    Hint: did you mean home?
    """
    parts = text.split("${")
    done = parts[0]
    for part in parts[1:]:
        if done.endswith("$"):
            done += f"{{{part}"
            continue
        name, closed, rest = part.partition("}")
        if not closed:
            raise MuntinError("${ is not closed", hint="write ${name}, or $${ for ${ itself")
        if name not in variables:
            hint = did_you_mean(name, variables) or f"give it a value: --set {shown(name)}=..."
            raise MuntinError(f"nothing says what ${{{shown(name)}}} is", hint=hint)
        done += variables[name] + rest
    return done


def parse_settings(settings: Iterable[str]) -> dict[str, str]:
    """Variables from texts such as ``name=value``; the last of a name counts.

    >>> parse_settings(["day=monday", "where=a=b"])
    {'day': 'monday', 'where': 'a=b'}
    """
    variables: dict[str, str] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or not (name.isascii() and name.replace("_", "a").isalnum()):
            raise MuntinError(
                f"--set {shown(setting)} is not of the form name=value",
                hint="write --set folder=/data/trades",
            )
        variables[name] = value
    return variables
