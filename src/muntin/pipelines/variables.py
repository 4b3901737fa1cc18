"""Values that a file leaves open: ``${name}`` in options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from muntin.errors import MuntinError, did_you_mean
from muntin.queries.source import shown


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
                f"--set {shown(setting)} is no name=value", hint="write --set folder=/data/trades"
            )
        variables[name] = value
    return variables
