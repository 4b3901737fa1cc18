"""Stars in place of secrets, wherever text that a user wrote is shown."""

from __future__ import annotations

import re
from functools import lru_cache

# Parts of names that belong to secrets wherever they stand.
_WORDS = (
    "pass-?(?:word|wd|phrase)|pwd|secret|token|credential|jaas|authorization|user[._-]?info"
    "|(?:access|account|api|private)[._-]?key"
)
# Ends of names that do so if they are names of options: columns are called key as well.
_ENDS = "key|pass|auth"
# Names and passwords are bounded, so that long text which holds none is read fast.
_PART = r"[\w.-]{0,200}"
_NAME = rf"(?:{_PART}(?:{_WORDS}){_PART}|(?:{_PART}[._-])?(?:{_ENDS}))"
_OPTION = rf"(?:\b(?:WITH|OPTIONS|TBLPROPERTIES|SET)\b\s*\(?|,)\s*['\"`]?{_NAME}['\"`]?"
_STRING = r"(?:'(?:[^'\\]|''|\\.)*'?|\"(?:[^\"\\]|\"\"|\\.)*\"?)"
_BARE = r"[^\s;'\"&]*[^\s;'\"&,)]"
_INSIDE = r"(?:[^'\"\n\\]|''|\"\"|\\.){1,2000}"
_PATTERNS = tuple(
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        # scheme://user:password@host, where the password may hold an @ or a slash.
        rf"://[^\s/'\"?#:]{{0,300}}:(?P<secret>{_INSIDE})@",
        # jdbc:oracle:thin:user/password@host
        rf"jdbc:oracle:\w+:[^\s/'\"@]{{0,300}}/(?P<secret>{_INSIDE})@",
        # password = 'x', password 'x' as Spark has it, and password=x inside of a URL.
        rf"(?:{_WORDS}){_PART}['\"`]?(?:\s*=\s*|\s+)(?P<secret>{_STRING})",
        rf"(?:{_WORDS}){_PART}=(?P<secret>{_BARE})",
        # WITH (key = 'x', token = x), OPTIONS (key 'x'), SET s3.secret.key = x
        rf"{_OPTION}\s*=\s*(?P<secret>{_STRING}|{_BARE})",
        rf"{_OPTION}\s+(?P<secret>{_STRING})",
    )
)
_SECRET_NAME = re.compile(_NAME, re.IGNORECASE)
_VARIABLE = re.compile(r"\$\{\w+\}")


def is_secret(option: str) -> bool:
    """Whether the value of an option is a secret, judged by the option's name.

    >>> is_secret("kafka.sasl.jaas.config"), is_secret("ssl.key"), is_secret("key.format")
    (True, True, False)
    """
    return _SECRET_NAME.fullmatch(option) is not None


@lru_cache(maxsize=4)
def masked(text: str) -> str:
    """The text with a star for each letter of what looks like a secret.

    Those are passwords in URLs, and values of options that are secrets by their names. All other
    letters and the ends of lines stay, so that places in the text do too; and so do variables.

    >>> print(masked("WITH (url = 'postgresql://me:hush@host/db', api_key = 'hush', k = 'v')"))
    WITH (url = 'postgresql://me:****@host/db', api_key = '****', k = 'v')
    >>> print(masked("WITH (password = '${password}')"))
    WITH (password = '${password}')
    """
    for pattern in _PATTERNS:
        text = pattern.sub(_starred, text)
    return text


def _starred(found: re.Match[str]) -> str:
    whole, secret = found.group(), found.group("secret")
    start = found.start("secret") - found.start()
    end = start + len(secret)
    if secret[0] in "'\"":
        start += 1
        end -= len(secret) > 1 and secret[-1] == secret[0]
    inner = whole[start:end]
    if _VARIABLE.fullmatch(inner):
        return whole
    stars = "".join(letter if letter == "\n" else "*" for letter in inner)
    return whole[:start] + stars + whole[end:]
