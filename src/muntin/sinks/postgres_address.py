"""Where a PostgreSQL server is and who asks; shown without secrets."""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import quote

from muntin.sinks.problems import SinkError

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
                f"{self.origin} is no address of a PostgreSQL server ({shown})",
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
