"""Names, keys, types and refusals."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest
import sqlglot

from muntin.errors import ExpressionError
from muntin.expressions import BindingError, bind, bind_text

SCHEMA = pa.schema(
    [
        ("price", pa.float64()),
        ("Vol", pa.int64()),
        ("symbol", pa.string()),
        ("ts", pa.timestamp("ns", "America/New_York")),
        ("ok", pa.bool_()),
        ("weird `col", pa.int32()),
        ("nested", pa.struct([("x", pa.int32())])),
        ("^.*$", pa.int32()),
    ]
)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("PRICE*vol", "price * Vol"),
        ("((price)) * (`VOL`)", "price * Vol"),
        ("t.price * t.vol", "price * Vol"),
        ("(price + 1) * 2", "(price + 1) * 2"),
        ("price + (1 * 2)", "price + 1 * 2"),
        ("price - (vol - 1)", "price - (Vol - 1)"),
        ("(price - vol) - 1", "price - Vol - 1"),
        ("vol != 1", "Vol <> 1"),
        ("not vol = 1", "NOT Vol = 1"),
        ("not (ok or ok)", "NOT (ok OR ok)"),
        ("ok and (ok and ok)", "ok AND ok AND ok"),
        ("ok or ok and ok", "ok OR ok AND ok"),
        ("(ok or ok) and ok", "(ok OR ok) AND ok"),
        ("vol is not null", "Vol IS NOT NULL"),
        ("not (vol is null)", "Vol IS NOT NULL"),
        ("ok is not true", "ok IS NOT TRUE"),
        ("(vol > 1) is null", "(Vol > 1) IS NULL"),
        ("vol between 1 and 2", "Vol >= 1 AND Vol <= 2"),
        ("vol not in (1, 2)", "NOT Vol IN (1, 2)"),
        ("symbol like 'a!_' escape '!'", "symbol LIKE 'a!_' ESCAPE '!'"),
        ("symbol = 'it\\'s'", "symbol = 'it\\'s'"),
        ("if(ok, 1, 2)", "CASE WHEN ok THEN 1 ELSE 2 END"),
        ("nvl(vol, 0)", "coalesce(Vol, 0)"),
        ("greatest(vol, 1, 2, 3, 4)", "greatest(Vol, 1, 2, 3, 4)"),
        ("symbol || 'a' || 'b'", "concat(symbol, 'a', 'b')"),
        ("cast(vol as int)", "CAST(Vol AS INT)"),
        ("vol::int", "CAST(Vol AS INT)"),
        ("try_cast(symbol as int)", "TRY_CAST(symbol AS INT)"),
        ("`weird ``col` + 1", "`weird ``col` + 1"),
        ("-vol", "-Vol"),
        ("-(-5)", "-(-5)"),
        ("vol - -5", "Vol - -5"),
        ("ts > timestamp'2020-1-1'", "ts > TIMESTAMP '2020-01-01 00:00:00'"),
        ("price * 1.5", "price * 1.5"),
        ("year(ts)", "year(ts)"),
        ("date_trunc('HOUR', ts)", "date_trunc('hour', ts)"),
        ("vol DIV 2", "Vol DIV 2"),
    ],
)
def test_key_is_canonical(text: str, key: str) -> None:
    assert bind_text(text, SCHEMA).key == key


@pytest.mark.parametrize("text", ["price * vol", "vol > 1 and ok", "coalesce(vol, 1, 2)", "-(-5)"])
def test_key_binds_to_itself(text: str) -> None:
    bound = bind_text(text, SCHEMA)
    assert bind_text(bound.key, SCHEMA) == bound


def test_equal_keys_are_equal_and_hash_alike() -> None:
    left, right = bind_text("PRICE * vol", SCHEMA), bind_text("(price*Vol)", SCHEMA)
    assert left == right
    assert len({left, right, bind_text("vol * price", SCHEMA)}) == 2


def test_bound_says_what_it_reads_and_gives() -> None:
    bound = bind_text("price * VOL > 5", SCHEMA)
    assert bound.columns == {"price", "Vol"}
    assert bound.type == pa.bool_()
    assert not bound.can_fail
    assert bind_text("vol + 1", SCHEMA).can_fail
    assert bind_text("vol / price", SCHEMA).can_fail
    assert not bind_text("vol / 3 + vol % 7 + vol div 2 * 0.5D", SCHEMA).can_fail


def test_pickles() -> None:
    bound = bind_text("case when vol > 1 then price * 1.5 end", SCHEMA)
    assert not bound.can_fail
    copy = pickle.loads(pickle.dumps(bound))
    assert copy == bound
    assert (copy.type, copy.columns, copy.root) == (bound.type, bound.columns, bound.root)


def test_a_plain_timestamp_column_keeps_its_zone() -> None:
    assert bind_text("(TS)", SCHEMA).type == pa.timestamp("us", "America/New_York")
    assert bind_text("coalesce(ts, ts)", SCHEMA).type == pa.timestamp("us", "UTC")


def test_names_that_look_like_patterns_are_names() -> None:
    assert bind_text("`^.*$` + 1", SCHEMA).columns == {"^.*$"}


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("prise", "no column prise", "did you mean price?"),
        ("nested", "struct", "name a field of it, such as .x"),
        ("nested['y']", "nested has no field y", "its fields are x"),
        ("nested[0]", "nested is not an array", "such as nested.x"),
        ("ok[0]", "ok is not an array", "only arrays have elements"),
        ("ok['a']", "ok has no fields", "only structs have fields"),
        ("lenght(symbol)", "no function lenght", "did you mean length?"),
        ("rand()", "rand is not allowed", "replay"),
        ("now()", "now is not allowed", "replay"),
        ("current_timestamp", "current_timestamp is not allowed", "replay"),
        ("uuid()", "uuid is not allowed", "replay"),
        ("reflect('a', 'b')", "reflect is not allowed", "outside"),
        ("java_method('a', 'b')", "java_method is not allowed", "outside"),
        ("input_file_name()", "input_file_name is not allowed", "outside"),
        ("date_format(ts, 'y')", "date_format is not allowed", "formats"),
        ("sum(vol)", "aggregate", "SELECT and HAVING"),
        ("vol in (select 1)", "IN takes a list", "IN (1, 2, 3)"),
        ("(select 1)", "subqueries", "values"),
        ("row_number() over ()", "OVER", "window"),
        ("interval 5 minutes", "intervals", "unix_micros"),
        ("ts + interval 5 minutes", "intervals", "unix_micros"),
        ("vol & 1", "not supported", None),
        ("symbol > 5", "STRING and INT do not mix", "CAST"),
        ("symbol + 1", "+ wants numbers, not STRING", "CAST(... AS INT)"),
        ("vol + '1'", "+ wants numbers, not STRING", "CAST(... AS BIGINT)"),
        ("ok + 1", "+ wants numbers, not BOOLEAN", "CAST"),
        ("ts + 1", "+ wants numbers, not TIMESTAMP", "unix_micros"),
        ("vol = 'x'", "'x' is not a valid BIGINT", "CAST"),
        ("ts > 'yesterday'", "'yesterday' is not a valid TIMESTAMP", "CAST"),
        ("vol and ok", "AND wants BOOLEAN, not BIGINT", "CAST"),
        ("if(vol, 1, 2)", "WHEN wants BOOLEAN", "CAST"),
        ("upper(vol)", "upper wants STRING, not BIGINT", "CAST"),
        ("abs(vol, 1)", "abs", None),
        ("greatest(vol)", "greatest takes at least 2 arguments, not 1", None),
        ("ceil(price, 2)", "this form of ceil", "leave"),
        ("round(price, vol)", "constant number of digits", "round(x, 2)"),
        ("round(price, -1)", "round of a DOUBLE", "0 to 15"),
        ("symbol like symbol", "string constant", None),
        ("symbol like 'a\\\\b'", "escape character", "itself"),
        ("symbol like any ('a', 'b')", "LIKE ANY", "OR"),
        ("symbol rlike '(?i)a'", "groups", "LIKE"),
        ("symbol rlike '\\\\bword'", "not supported", "LIKE"),
        ("symbol rlike 'a++'", "possessive", "LIKE"),
        ("symbol rlike 'a$b'", "$ stands elsewhere", "LIKE"),
        ("symbol rlike '[a'", "not closed", "LIKE"),
        ("symbol rlike '(a'", "not closed", "LIKE"),
        ("symbol rlike '*a'", "nothing can be repeated", "LIKE"),
        ("cast(price as string)", "CAST of DOUBLE to STRING", "outside of the query"),
        ("cast(symbol as timestamp)", "CAST of STRING to TIMESTAMP", None),
        ("cast(vol as array<int>)", "ARRAY<INT>", "BOOLEAN"),
        ("cast(vol as decimal(39, 1))", "DECIMAL(39,1)", "38"),
        ("price div 2", "div wants integers", "floor"),
        ("date_trunc('fortnight', ts)", "constant unit", "week"),
        ("extract(second from ts)", "EXTRACT of second", "second(...)"),
        ("'a''b'", "side by side", "||"),
        ("concat(symbol, vol)", "concat wants STRING", "CAST"),
        ("cast(vol as decimal(38, 0)) * 1.5", "needs 41 decimal digits", "DOUBLE"),
        ("vol >", "cannot parse", None),
    ],
)
def test_refusals_say_why_and_what_to_write(text: str, message: str, hint: str | None) -> None:
    with pytest.raises(BindingError) as caught:
        bind_text(text, SCHEMA)
    assert message in caught.value.message
    assert isinstance(caught.value, ExpressionError)
    if hint is not None:
        assert hint in (caught.value.hint or "")


def test_unknown_column_among_many_names_the_nearest() -> None:
    schema = pa.schema([(f"sensor_{i}", pa.int32()) for i in range(40)])
    with pytest.raises(BindingError) as caught:
        bind_text("nope", schema)
    assert str(caught.value.hint).startswith("the nearest of 40 names are sensor_")
    with pytest.raises(BindingError, match="there are no columns here"):
        bind_text("nope", pa.schema([]))


def test_ambiguous_column() -> None:
    schema = pa.schema([("a", pa.int32()), ("A", pa.int32())])
    with pytest.raises(BindingError, match="column a is ambiguous: a, A"):
        bind_text("a + 1", schema)


def test_error_points_at_the_innermost_node() -> None:
    node = sqlglot.parse_one("price > 1 AND vol + symbl > 2", dialect="spark")
    with pytest.raises(BindingError) as caught:
        bind(node, SCHEMA)
    found = caught.value.node
    assert found is not None
    assert found.this.meta["col"] == len("price > 1 AND vol + symbl")


@pytest.mark.parametrize(
    ("stored", "name"),
    [
        (pa.large_string(), "string"),
        (pa.string_view(), "string"),
        (pa.dictionary(pa.int8(), pa.string()), "string"),
        (pa.uint8(), "int16"),
        (pa.uint16(), "int32"),
        (pa.uint32(), "int64"),
        (pa.uint64(), "decimal128(20, 0)"),
        (pa.float16(), "float"),
        (pa.date64(), "date32[day]"),
        (pa.timestamp("s"), "timestamp[us]"),
        (pa.timestamp("ns", "Asia/Tokyo"), "timestamp[us, tz=Asia/Tokyo]"),
        (pa.large_binary(), "binary"),
        (pa.binary(3), "binary"),
        (pa.decimal256(20, 2), "decimal128(20, 2)"),
        (pa.null(), "null"),
    ],
)
def test_stored_types(stored: pa.DataType, name: str) -> None:
    assert str(bind_text("x", pa.schema([("x", stored)])).type) == name


@pytest.mark.parametrize(
    "stored", [pa.list_(pa.int8()), pa.time64("us"), pa.duration("s"), pa.decimal256(50, 2)]
)
def test_types_that_cannot_be_used(stored: pa.DataType) -> None:
    with pytest.raises(BindingError, match="cannot be used"):
        bind_text("x", pa.schema([("x", stored)]))
