"""Options of Spark's sources and Flink's connectors, as Muntin's options."""

from __future__ import annotations

from muntin.pipelines.importers.statements import ForeignTable, Notes
from muntin.pipelines.options import FILE_FORMATS, KAFKA_OPTIONS, KAFKA_PREFIX, KAFKA_SERVERS
from muntin.queries import Option
from muntin.queries.secrets import is_secret
from muntin.queries.source import shown

_SECRET_HINT = "add it as '${name}', and give it with --set, or through the environment"
CONSOLE_HINT = "they are shown on the screen: choose parquet, duckdb or postgres instead"
_STARTS = {"earliest-offset": "earliest", "latest-offset": "latest"}
# Options that say nothing about the rows.
_IDLE = (
    "sink.",
    "scan.parallelism",
    "source.monitor-interval",
    "lookup.",
    "properties.group.id",
    "inferschema",
    "mergeschema",
    "mode",
    "multiline",
)


class OptionTranslator:
    """Translates the options of one CREATE TABLE; what has no counterpart is noted."""

    def __init__(self, table: ForeignTable, notes: Notes, flink: bool) -> None:
        self.table = table
        self.notes = notes
        self.flink = flink
        self._left = {option.key.lower(): option for option in table.options}

    def source(self, kind: str) -> dict[str, str]:
        """The options of a stream or a table."""
        connector = self._connector()
        if connector == "kafka" and kind == "stream":
            options = self._kafka()
        elif connector in FILE_FORMATS or connector == "filesystem":
            options = self._files(connector)
        else:
            options = self._elsewhere(kind, connector)
        self._rest()
        return options

    def sink(self) -> dict[str, str]:
        """The options of a sink."""
        connector = self._connector()
        url = self._value("url") or ""
        if connector == "print" or connector in ("console", "memory"):
            options = {"format": "memory" if connector == "memory" else "console"}
        elif connector == "jdbc" and url.startswith("jdbc:postgresql"):
            options = self._postgres()
        elif connector in FILE_FORMATS or connector == "filesystem":
            options = self._files_out(connector)
        else:
            self._note(f"results are not written to {shown(connector)}", CONSOLE_HINT)
            self._left.clear()
            options = {"format": "console"}
        self._rest()
        return options

    def _connector(self) -> str:
        option = self._left.pop("connector", None)
        return (option.value if option is not None else self.table.using or "nothing").lower()

    def _value(self, key: str) -> str | None:
        option = self._left.pop(key, None)
        return None if option is None else option.value

    def _note(self, message: str, hint: str, option: Option | None = None) -> None:
        start = self.table.start if option is None else option.start
        self.notes.add(start, message, hint)

    def _kafka(self) -> dict[str, str]:
        options = {"format": "kafka"}
        spelled = {name.lower(): name for name in KAFKA_OPTIONS}
        renamed = {"topic": "subscribe", "topic-pattern": "subscribePattern"}
        for key, option in list(self._left.items()):
            name = renamed.get(key) or spelled.get(key)
            if key.startswith("properties.") and not key.startswith(_IDLE):
                name = KAFKA_PREFIX + option.key[len("properties.") :]
            elif key.startswith(KAFKA_PREFIX):
                name = option.key
            if name is not None and not is_secret(key):
                # Flink separates topics by semicolons, Spark by commas.
                is_list = name == "subscribe" and self.flink
                options[name] = option.value.replace(";", ",") if is_list else option.value
                del self._left[key]
        self._starts(options)
        form = self._left.pop("value.format", None) or self._left.pop("format", None)
        if form is not None and form.value.lower() not in ("json", "csv"):
            hint = "the stream reads JSON: send it, or read the topic in Python with muntin.run"
            self._note(f"messages in {shown(form.value)} are not read", hint, form)
        elif form is not None and form.value.lower() == "csv":
            options["value_format"] = "csv"
        for name, what in ((KAFKA_SERVERS, "its servers"), ("subscribe", "its topic")):
            topics = [key for key in ("subscribe", "subscribePattern", "assign") if key in options]
            if name not in options and not (name == "subscribe" and topics):
                default = "localhost:9092" if name == KAFKA_SERVERS else self.table.name
                options[name] = default
                self._note(f"the topic does not say {what}", f"check {name} = '{default}'")
        return options

    def _starts(self, options: dict[str, str]) -> None:
        mode = self._left.pop("scan.startup.mode", None)
        if mode is None:
            return
        value = mode.value.lower()
        millis = self._left.pop("scan.startup.timestamp-millis", None)
        if value in _STARTS:
            options["startingOffsets"] = _STARTS[value]
        elif value == "timestamp" and millis is not None:
            options["startingTimestamp"] = millis.value
        else:
            hint = "offsets are kept in the checkpoint; add startingOffsets for the first start"
            self._note(f"a start by {shown(value)} has no counterpart", hint, mode)

    def _files(self, connector: str) -> dict[str, str]:
        form = self._left.pop("format", None)
        chosen = connector if form is None else form.value.lower()
        if chosen not in FILE_FORMATS:
            hint = "write them as parquet, csv or json; json stands here for a start"
            self._note(f"files of {shown(chosen)} are not read", hint, form)
            chosen = "json"
        options = {"format": chosen, "path": self._path()}
        if chosen == "csv":
            header = (self._value("header") or "false").lower()
            options["header"] = "TRUE" if header == "true" else "FALSE"
            marks = [self._value(key) for key in ("sep", "delimiter", "csv.field-delimiter")]
            for mark in filter(None, marks):
                options["delimiter"] = mark
        return options

    def _path(self) -> str:
        path = self._value("path")
        if path is not None:
            return path
        hint = f"check path = '{shown(self.table.name)}'"
        self._note(f"{shown(self.table.name)} does not say where its files are", hint)
        return self.table.name

    def _elsewhere(self, kind: str, connector: str) -> dict[str, str]:
        name = shown(self.table.name)
        hint = f"the {kind} reads JSON files at '{name}' for a start: say where its rows are"
        self._note(f"rows of {name} do not come from {shown(connector)} here", hint)
        self._left.clear()
        return {"format": "json", "path": self.table.name}

    def _files_out(self, connector: str) -> dict[str, str]:
        form = self._left.pop("format", None)
        chosen = connector if form is None else form.value.lower()
        if chosen != "parquet":
            hint = "they are written as parquet"
            self._note(f"results are not written as {shown(chosen)}", hint, form)
        return {"format": "parquet", "path": self._path()}

    def _postgres(self) -> dict[str, str]:
        hint = "export MUNTIN_POSTGRES_URL=postgresql://...; tables are named after the queries"
        self._note("the address of a database is not part of a file", hint)
        for key in ("url", "table-name", "dbtable", "driver", "username", "user", "password"):
            self._left.pop(key, None)
        return {"format": "postgres"}

    def _rest(self) -> None:
        """What is left of the options is said, one by one."""
        for key, option in self._left.items():
            hint = _SECRET_HINT if is_secret(key) else "see the options in docs/sql-files.md"
            idle = key.startswith(_IDLE)
            message = f"the option {shown(option.key)} has no counterpart"
            self.notes.add(option.start, message, hint, lost=not idle)
