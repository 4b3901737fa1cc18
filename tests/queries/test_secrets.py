"""What is starred out of lines that are shown, and what is left as it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin.queries.secrets import is_secret, masked

SECRET = "HUSH"


@pytest.mark.parametrize(
    "text",
    [
        "'url' = 'jdbc:postgresql://u:HUSH@h/db?user=u&password=HUSH&ssl=true'",
        "url = 'postgresql://me@corp:a/HUSH@HUSH@h/db'",
        "redis://:HUSH@h and ftp://u:HU HUSH@h",
        "jdbc:oracle:thin:scott/HUSH@h:1521",
        "jdbc:sqlserver://h:1433;user=sa;password=HUSH;x=y",
        "host=h password=HUSH user=u",
        "WITH (password = HUSH, x = 5)",
        "WITH (x = 5, passwd=HUSH)",
        "OPTIONS (password 'HUSH', user 'a')",
        'OPTIONS (`token` "HUSH")',
        "WITH ('properties.sasl.jaas.config' = 'x\n required password=\"HUSH\";', a = 'b')",
        "SET spark.hadoop.fs.s3a.secret.key=HUSH;",
        "set fs.s3a.access.key = HUSH;",
        "WITH (key = 'HUSH')",
        "WITH (a = 'b',\n  'ssl.key' = 'HUSH')",
        "PASSWORD =\n  'HUSH",
        "'secret' = 'it''s HUSH'",
        "'basic.auth.user.info' = 'u:HUSH'",
        "'fs.azure.account.key.me.net' = 'HUSH'",
    ],
)
def test_secrets_are_starred_letter_for_letter(text: str) -> None:
    shown = masked(text)
    assert SECRET not in shown
    assert "*" * len(SECRET) in shown
    assert len(shown) == len(text)
    assert [at for at, letter in enumerate(shown) if letter == "\n"] == [
        at for at, letter in enumerate(text) if letter == "\n"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT sum(vol) AS v FROM t [RANGE '1 hour'] WHERE key = 'a' AND token > 5",
        "count_if(key = 'a'), ON t.token = c.token, window(ts, '5 minutes'), token",
        "(token STRING, key STRING) WITH (format = 'csv', path = 's3://bucket/a')",
        "http://h:80/x",
        "-- the token's window is '1 hour'",
        "'key.format' = 'json', 'url_env' = 'URL'",
        "WITH (password = '${password}', 'token' = ${token})",
    ],
)
def test_other_text_is_left_as_it_is(text: str) -> None:
    assert masked(text) == text


def test_names_of_options() -> None:
    secrets = ("password", "kafka.sasl.jaas.config", "api-key", "accessKey", "ssl.key", "S3_SECRET")
    others = ("format", "path", "key.format", "monkey", "keyspace", "url_env", "subscribe")
    assert all(map(is_secret, secrets))
    assert not any(map(is_secret, others))


@given(st.text(alphabet="ab'\"=\\@:/(, \n", max_size=30), st.sampled_from(["'", '"']))
def test_any_value_of_a_password(value: str, quote: str) -> None:
    """The length of any text stays, and nothing is left of a value that is closed."""
    text = f"WITH (password = {quote}{value}{quote}, url = 'a://b:{value}@c')"
    assert len(masked(text)) == len(text)
    inner = value.replace(quote, quote * 2).replace("\\", "\\\\")
    sound = masked(f"password = {quote}{inner}{quote}")
    assert not set(sound[len("password = '") : -1]) - {"*", "\n"}
