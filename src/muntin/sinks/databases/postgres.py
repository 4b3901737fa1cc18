"""Results in tables of a PostgreSQL server, each row exactly once."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar
from urllib.parse import quote

import pyarrow as pa

from muntin.sinks.databases.database import DatabaseSink, named_layout, waits
from muntin.sinks.databases.layout import Layout, fitted, quoted
from muntin.sinks.databases.ledger import Ledger, Load
from muntin.sinks.databases.live import SIGN, apply_changes
from muntin.sinks.databases.postgres_rows import copy_text, is_system_column, sql_type
from muntin.sinks.sink import SinkError

T = TypeVar("T")
VARIABLE = "MUNTIN_POSTGRES_URL"
PATIENCE = 60.0
_OLDEST = 15
_TOGETHER = 10_000  # rows
# Conflicts with others, shutdowns, crashes, too many connections: the next attempt may succeed.
_PASSING = ("08", "40001", "40P01", "53300", "57P01", "57P02", "57P03", "57P05")
_HINTS = {
    "28": "check the user and the password",
    "3D": "create the database, or name another one",
    "42501": "give the user the right to create tables in the schema, or choose another schema",
    "53100": "free some space on the server and start again: what was committed is safe",
    "54000": "a group's value may be a key up to about 2,600 bytes: shorten it in the query",
    "21000": "two rows of a batch have one window and group: please report it",
}

# The run goes on as soon as a commit returns: a server that is set to forget must not.
_DURABLE = (
    "SELECT set_config('synchronous_commit', 'on', true) "
    "WHERE current_setting('synchronous_commit') = 'off'"
)

_logger = logging.getLogger("muntin.sinks")


class PostgresLedger(Ledger):
    """A transaction on a PostgreSQL server."""

    def __init__(self, connection: Any, schema: str, prefix: str) -> None:
        super().__init__(schema, prefix)
        self._connection = connection

    def execute(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Run a statement."""
        cursor = self._connection.execute(sql, list(values) or None)
        return list(cursor.fetchall()) if cursor.description else []

    def lock(self) -> None:
        """Two sessions that make the same table at the same moment would fail."""
        name = f"muntin {self.named(self.prefix)}"
        self.execute("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", [name])

    def prepare(self) -> None:
        """Make the schema too."""
        self.lock()
        if self.execute("SELECT to_regnamespace($1)", [quoted(self.schema)])[0][0] is None:
            self.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(self.schema)}")
        super().prepare()

    def layout(self, query: str, schema: pa.Schema) -> Layout:
        """The table that results of these columns need."""
        return named_layout(schema, [sql_type(query, field) for field in schema], self.column)

    def column(self, name: str) -> str:
        """A name that no system column has and that is not too long."""
        return fitted(f"q-{name}" if is_system_column(name) else name, self.room)

    def index(self, table: str, key: Sequence[str]) -> None:
        """NULL is a group like any other."""
        columns = ", ".join(map(quoted, key))
        self.execute(f"CREATE UNIQUE INDEX ON {self.named(table)} ({columns}) NULLS NOT DISTINCT")

    def index_lifetimes(self, table: str) -> None:
        """One for each end."""
        for name in ("valid_from", "valid_to"):
            self.execute(f"CREATE INDEX ON {self.named(table)} ({quoted(name)})")

    def load(self, loads: Sequence[Load]) -> None:
        """Copy rows to a temporary table and insert them from there.

        Many small results are copied together, so that many queries cost few round trips.
        """
        for place, group in enumerate(_groups(loads)):
            width = max(load.rows.num_columns for load in group)
            staged = self._stage(width, is_first=place == 0)
            numbered = ", ".join(f"c{i}" for i in range(width))
            target = f"COPY {staged} (query, {numbered}) FROM STDIN"
            with self._connection.cursor() as cursor, cursor.copy(target) as copy:
                for number, load in enumerate(group):
                    for piece in copy_text(number, load, width):
                        copy.write(piece)
            with self._connection.pipeline():
                for number, load in enumerate(group):
                    for statement in self._statements(staged, number, load):
                        self._connection.execute(statement)

    def _stage(self, width: int, *, is_first: bool) -> str:
        # A few widths only, so that a session keeps few tables; they are empty at its begin.
        room = 1 << max(width - 1, 7).bit_length()
        staged = f"pg_temp.muntin_staged_{room}"
        columns = ", ".join(f"c{i} text" for i in range(min(room, 1599)))
        self.execute(
            f"CREATE TEMP TABLE IF NOT EXISTS muntin_staged_{room} (query integer, {columns}) "
            "ON COMMIT DELETE ROWS"
        )
        if not is_first:
            self.execute(f"TRUNCATE {staged}")
        return staged

    def _statements(self, staged: str, number: int, load: Load) -> list[str]:
        if not load.layout.live:
            return [self._insert(staged, number, load)]
        places = {name: i for i, name in enumerate(load.rows.column_names)}
        types = {**load.layout.columns, SIGN: "bigint"}
        values = ", ".join(f"c{places[name]}::{types[name]} AS {quoted(name)}" for name in types)
        rows = f"SELECT {values} FROM {staged} WHERE query = {number}"
        many = "generate_series(1, n)"
        target, columns = self.named(load.table), list(load.layout.columns)
        return list(apply_changes(target, rows, columns, "ctid", many))

    def _insert(self, staged: str, number: int, load: Load) -> str:
        places = {name: i for i, name in enumerate(load.rows.column_names)}
        columns = load.layout.columns
        values = ", ".join(
            f"c{places[name]}::{kind}" if name in places else "NULL"
            for name, kind in columns.items()
        )
        target = f"{self.named(load.table)} ({', '.join(map(quoted, columns))})"
        rows = f"INSERT INTO {target} SELECT {values} FROM {staged} WHERE query = {number}"
        if not load.layout.key:
            return rows
        others = [quoted(name) for name in columns if name not in load.layout.key]
        sets = ", ".join(f"{name} = EXCLUDED.{name}" for name in others)
        action = f"UPDATE SET {sets}" if others else "NOTHING"
        return f"{rows} ON CONFLICT ({', '.join(map(quoted, load.layout.key))}) DO {action}"


def _groups(loads: Sequence[Load]) -> Iterator[list[Load]]:
    """Loads in order, as many at a time as are small together."""
    group: list[Load] = []
    rows = 0
    for load in loads:
        if group and rows + load.rows.num_rows > _TOGETHER:
            yield group
            group, rows = [], 0
        group.append(load)
        rows += load.rows.num_rows
    if group:
        yield group


class PostgresSink(DatabaseSink):
    """A schema of a PostgreSQL server with one table for each query; every row is there once.

    A connection that is lost is made again, and the batch with it, until patience ends.

    Args:
        url: The server and database; from the environment unless given.
        url_env: The environment variable that holds the URL, so that no file has a password.
        schema: The schema of all tables; it is made where there is none.
        prefix: What the names of all tables begin with.
        patience: How many seconds to try when a connection is lost.
        live: Whether tables of rows with lifetimes hold them only while they live: '+' and '-' of
            ``changes`` are applied, and rows that W has passed are dropped.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        url_env: str = VARIABLE,
        schema: str = "public",
        prefix: str = "",
        patience: float = PATIENCE,
        live: bool = False,
    ) -> None:
        super().__init__(patience, live)
        if not schema or len(schema.encode()) > PostgresLedger.room:
            raise SinkError(
                f"schema must be a name of 1 to 63 bytes, not {schema!r}",
                hint="leave it out for public",
            )
        self.schema, self.prefix = schema, prefix
        self._address = Address(url, url_env)
        self._connection: Any = None
        self._is_prepared = False

    @property
    def place(self) -> str:
        """The database, schema and prefix."""
        return f"{self._address!r} schema {self.schema}" + f" prefix {self.prefix}" * bool(
            self.prefix
        )

    def transact(self, work: Callable[[PostgresLedger], T], *, is_look: bool = False) -> T:
        """Do work in a transaction; a lost connection is made again."""
        psycopg = driver()
        failure: Any = None
        begun = time.monotonic()
        # Who has never been connected learns at once what is wrong with the address.
        for wait in waits(self.patience if self._is_prepared else 0):
            time.sleep(wait)
            try:
                done = self._attempt(work, is_look=is_look)
            except psycopg.Error as error:
                if not self._may_pass(error):
                    failure = error
                    break
                if failure is None and self._is_prepared:
                    self._tell_lost(error)
                failure = error
            else:
                if failure is not None:
                    _logger.info("%r is back after %.1f s", self, time.monotonic() - begun)
                return done
        state = failure.sqlstate or ""
        hint = _HINTS.get(state) or _HINTS.get(state[:2])
        # Not chained: nobody has looked through the driver's message for secrets.
        raise SinkError(
            f"cannot write results to {self!r}: {self._words(failure)}",
            hint=hint or f"check the server, and {self._address.origin}",
        ) from None

    def _tell_lost(self, error: Any) -> None:
        """Say once that the server is down, however often it is tried meanwhile."""
        _logger.warning(
            "%r is lost and tried again for up to %.0f s: %s",
            self,
            self.patience,
            self._words(error),
        )

    def _attempt(self, work: Callable[[PostgresLedger], T], *, is_look: bool) -> T:
        if self._connection is None or self._connection.closed:
            self._connection = self._address.connect()
            self._check_version()
        with self._connection.transaction():
            ledger = PostgresLedger(self._connection, self.schema, self.prefix)
            ledger.execute(_DURABLE)
            if not (self._is_prepared or is_look):
                ledger.prepare()
            done = work(ledger)
        self._is_prepared |= not is_look
        return done

    def _may_pass(self, error: Any) -> bool:
        is_lost = self._connection is None or self._connection.closed
        return is_lost or str(error.sqlstate or "").startswith(_PASSING)

    def _check_version(self) -> None:
        version = self._connection.info.server_version // 10_000
        if version < _OLDEST:
            self.close()
            raise SinkError(
                f"{self!r} is PostgreSQL {version}",
                hint=f"use {_OLDEST} or later: earlier versions treat NULL groups as different",
            )

    def _words(self, error: Any) -> str:
        primary = error.diag.message_primary or str(error)
        return self._address.hide(str(primary)).strip()

    def close(self) -> None:
        """End the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __repr__(self) -> str:
        return f"<PostgresSink {self._address!r} schema {self.schema}>"


def postgres(
    url: str | None = None,
    *,
    url_env: str = VARIABLE,
    schema: str = "public",
    prefix: str = "",
    patience: float = PATIENCE,
    live: bool = False,
) -> PostgresSink:
    """Write results to a PostgreSQL server, one table for each query, each row exactly once.

    With ``live``, tables of rows with lifetimes hold the rows that live now.
    """
    return PostgresSink(
        url, url_env=url_env, schema=schema, prefix=prefix, patience=patience, live=live
    )


HIDDEN = "***"


class Address:
    """The parameters of a connection, from a URL or a ``key=value`` string.

    Messages about a URL that cannot be read do not repeat any part of it: what looks like a
    host or a port may be the end of a password.

    Args:
        url: What to connect to; None to take it from the environment.
        variable: The environment variable that holds it.
    """

    def __init__(self, url: str | None, variable: str) -> None:
        self.origin = "url" if url is not None else f"the environment variable {variable}"
        found = os.environ.get(variable) if url is None else url
        if not found:
            raise SinkError(
                f"{self.origin} is not set" if url is None else "url is empty",
                hint=f"set {variable}=postgresql://user:password@host/database",
            )
        self._parameters = self._parse(found)

    def connect(self) -> Any:
        """A connection in which every statement outside a transaction is one of its own."""
        psycopg = driver()
        defaults = {"connect_timeout": 10, "application_name": "muntin"}
        # Statements are not prepared by name: poolers hand a session on between transactions.
        return psycopg.connect(
            **{**defaults, **self._parameters},
            autocommit=True,
            prepare_threshold=None,
            cursor_factory=psycopg.RawCursor,
        )

    def hide(self, message: str) -> str:
        """A message without the password, should it be in there."""
        for name in ("password", "sslpassword"):
            secret = self._parameters.get(name)
            if secret:
                for spelling in (str(secret), quote(str(secret), safe="")):
                    message = message.replace(spelling, HIDDEN)
        return message

    def _parse(self, url: str) -> dict[str, Any]:
        psycopg = driver()
        scheme, separator, rest = url.partition("://")
        user, at, others = rest.partition("@")
        if separator and at and ("/" in user or "@" in others):
            raise SinkError(
                f"{self.origin} has a user or password with an @ or / in it",
                hint="write %40 for @, %2F for /, %3A for : and %25 for %",
            )
        try:
            return dict(psycopg.conninfo.conninfo_to_dict(url))
        except psycopg.Error:
            shown = scheme if separator and scheme in ("postgres", "postgresql") else "another form"
            raise SinkError(
                f"{self.origin} is not the address of a PostgreSQL server ({shown})",
                hint="write postgresql://user:password@host:port/database, with %-escapes for "
                "characters other than letters and digits",
            ) from None

    def __repr__(self) -> str:
        host = self._parameters.get("host") or self._parameters.get("hostaddr") or "local"
        return f"{self._parameters.get('dbname', '')}@{host}"


def driver() -> Any:
    """The package psycopg."""
    try:
        import psycopg  # noqa: PLC0415  an optional package
        import psycopg.conninfo  # noqa: PLC0415
    except ImportError as error:
        raise SinkError(
            "psycopg is not installed", hint="install it: pip install 'muntin[postgres]'"
        ) from error
    return psycopg
