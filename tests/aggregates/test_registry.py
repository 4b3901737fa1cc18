"""Aggregates by name: aliases, types, sharing, errors, and users' own."""

import pickle
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregates.cases import relaxed
from muntin.aggregates import Aggregate, names, register, resolve, unregister
from muntin.aggregates.columns import by_part
from muntin.errors import AggregateError
from muntin.testing import laws


def test_importing_and_resolving_brings_no_compiler():
    code = (
        "import sys, pyarrow as pa; from muntin.aggregates import resolve;"
        "resolve('stddev', [pa.float64()]); sys.exit('numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("mean", "avg"),
        ("variance", "var_samp"),
        ("stddev", "stddev_samp"),
        ("std", "stddev_samp"),
        ("first_value", "first"),
        ("last_value", "last"),
        ("geomean", "geo_mean"),
        ("kurtosis_pop", "kurtosis"),
        ("list", "collect_list"),
    ],
)
def test_aliases(alias, name):
    assert alias in names()
    assert resolve(alias.upper(), [pa.float64()]) == resolve(name, [pa.float64()])


@pytest.mark.parametrize("constants", [(), (2,)])
@pytest.mark.parametrize("way", ["min", "max"])
def test_aliases_of_rows_that_are_best(way, constants):
    types = [pa.string(), pa.float64()]
    for alias in (f"arg_{way}", f"arg{way}"):
        assert resolve(alias, types, constants) == resolve(f"{way}_by", types, constants)
    assert resolve("list", [pa.int64()], distinct=True).name == "collect_set"


def test_group_concat_puts_commas_between_texts():
    texts = [pa.string()]
    assert resolve("group_concat", texts) == resolve("string_agg", texts, [","])
    assert resolve("group_concat", texts, ["-"]) == resolve("listagg", texts, ["-"])


@pytest.mark.parametrize(("alias", "name"), [("every", "bool_and"), ("some", "bool_or")])
def test_condition_aliases(alias, name):
    assert resolve(alias, [pa.bool_()]).name == name


@pytest.mark.parametrize(
    ("name", "types", "result"),
    [
        ("count", (), pa.int64()),
        ("count", (pa.string(),), pa.int64()),
        ("sum", (pa.int8(),), pa.int64()),
        ("sum", (pa.float32(),), pa.float64()),
        ("sum", (pa.decimal128(10, 2),), pa.decimal128(20, 2)),
        ("sum", (pa.decimal128(35, 2),), pa.decimal128(38, 2)),
        ("avg", (pa.int32(),), pa.float64()),
        ("avg", (pa.decimal128(10, 2),), pa.decimal128(14, 6)),
        ("min", (pa.int8(),), pa.int8()),
        ("max", (pa.timestamp("us", "UTC"),), pa.timestamp("us", "UTC")),
        ("value_range", (pa.int16(),), pa.int64()),
        ("stddev_pop", (pa.decimal128(10, 2),), pa.float64()),
        ("product", (pa.int64(),), pa.float64()),
        ("max_by", (pa.string(), pa.int64()), pa.string()),
        ("count_if", (pa.bool_(),), pa.int64()),
        ("any", (pa.bool_(),), pa.bool_()),
    ],
)
def test_result_types(name, types, result):
    assert resolve(name, types).type == result


def test_resolved_aggregates_travel_to_workers():
    resolved = resolve("max_by", [pa.string(), pa.timestamp("us", "UTC")])
    copied = pickle.loads(pickle.dumps(resolved))
    assert copied == resolved
    assert hash(copied) == hash(resolved)
    assert copied.algebra.of([("a", 1), ("b", 2)]) == "b"


def test_compound_aggregates_share_their_parts():
    kind = (pa.float64(),)
    parts = {
        part
        for name in ("sum", "count", "avg", "stddev", "var_pop")
        for part in resolve(name, kind).parts
    }
    assert sorted(part.kind for part in parts) == ["count", "sum", "sum_squares"]
    both = {part for name in ("min", "max", "value_range") for part in resolve(name, kind).parts}
    assert len(both) == 2


@pytest.mark.parametrize(
    ("name", "types", "message"),
    [
        ("sum", [pa.string()], "sum takes a number, not string"),
        ("sum", [pa.bool_()], "sum takes a number, not bool"),
        ("sum", [], r"sum takes 1 argument\(s\), not 0"),
        ("count", [pa.int64()] * 2, r"count takes 0 or 1 argument\(s\), not 2"),
        ("min", [pa.list_(pa.int64())], "min takes a value with an order"),
        ("bool_and", [pa.int64()], "bool_and takes a condition"),
        ("max_by", [pa.int64()], "max_by takes 2"),
        ("summ", [pa.int64()], "no aggregate is named summ\nHint: did you mean sum?"),
    ],
)
def test_refusals(name, types, message):
    with pytest.raises(AggregateError, match=message.replace("?", r"\?")) as error:
        resolve(name, types)
    assert error.value.hint


def test_ignore_nulls_is_for_picks_only():
    with pytest.raises(AggregateError, match="sum takes no IGNORE NULLS"):
        resolve("sum", [pa.int64()], ignore_nulls=True)
    for name in ("collect_set", "string_agg"):
        with pytest.raises(AggregateError, match=f"{name} takes no RESPECT NULLS"):
            resolve(name, [pa.string()], ignore_nulls=False)


class Concat(Aggregate):
    """Strings end to end, in the order of their rows."""

    name = "Joined"
    commutative = False
    identity = ""

    def lift(self, value):
        return value

    def combine(self, a, b):
        return a + b

    def lower(self, partial):
        if len(partial) > 50:
            raise OverflowError(partial)
        return partial or None

    def result_type(self, types):
        if types != (pa.string(),):
            raise AggregateError("joined takes a string", hint="CAST it")
        return pa.string()


@pytest.fixture
def concat():
    register(Concat())
    yield resolve("joined", [pa.string()])
    unregister("joined")


@relaxed
@given(rows=st.lists(st.none() | st.text(max_size=3), max_size=9))
def test_a_users_aggregate_obeys_the_laws(rows):
    laws.check_laws(Concat(), rows)


def test_a_users_aggregate_runs_on_columns(concat):
    assert not concat.commutative
    assert not concat.invertible
    assert concat.parts[0].timed
    column = by_part.empty(concat.parts[0], 3)
    column.update(np.array([0, 0, 1, -1]), (pa.array(["a", "b", None, "c"]),))
    other = column.take(np.array([0, 1]))
    column.merge(np.array([2, -1]), other)
    column.merge(np.array([0, -1]), by_part.from_arrow(concat.parts[0], other.to_arrow()))
    assert concat.lower([column]).values.to_pylist() == ["abab", None, "ab"]
    slid = column.slide(np.array([0, 1, 2]), np.array([3, 2, 2]))
    assert concat.lower([slid]).values.to_pylist() == ["ababab", None, None]
    column.update(np.array([1]), (pa.array(["x" * 51]),))
    values, errors = concat.lower([column])
    assert values.to_pylist() == ["abab", None, "ab"]
    assert errors.to_pylist() == [False, True, False]


def test_names_are_taken_once(concat):
    assert "joined" in names()
    with pytest.raises(AggregateError, match="named Joined exists"):
        register(Concat())


def test_only_aggregates_with_a_name_are_registered():
    class Nameless(Concat):
        name = "two words"

    for wrong in (5, Concat, Nameless()):
        with pytest.raises(AggregateError, match="is not a") as error:
            register(wrong)
        assert error.value.hint


def test_answers_of_another_type_name_the_aggregate():
    class Length(Concat):
        name = "total_length"

        def lower(self, partial):
            return len(partial)

    register(Length())
    try:
        resolved = resolve("total_length", [pa.string()])
        column = by_part.empty(resolved.parts[0], 1)
        with pytest.raises(AggregateError, match="aggregate total_length is not a string") as error:
            resolved.lower([column])
        assert "result_type" in error.value.hint
    finally:
        unregister("total_length")


def test_a_result_type_is_a_type():
    class Typeless(Concat):
        name = "typeless"

        def result_type(self, types):
            return None

    register(Typeless())
    try:
        with pytest.raises(AggregateError, match="`result_type` of the aggregate typeless"):
            resolve("typeless", [pa.string()])
    finally:
        unregister("typeless")


def test_registering_checks_the_claim_of_an_inverse():
    class Claims(Concat):
        name = "claims"
        invertible = True

    with pytest.raises(AggregateError, match="defines no inverse"):
        register(Claims())
    with pytest.raises(AggregateError, match="no aggregate named claims was registered"):
        unregister("claims")
    with pytest.raises(AggregateError, match="claims has no inverse"):
        Claims().inverse("a", "a")
