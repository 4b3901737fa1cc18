"""Workloads by the parameters of the thesis."""

import numpy as np
import pytest

from muntin.errors import WindowError
from muntin.testing.workload import generate


def slides(**options):
    made = generate(4000, options.pop("max_slide", 60), 1.0, **options)
    return np.array([query.slide for query in made.queries])


def test_the_seed_decides():
    assert generate(50, 100, 2.0, seed=1) == generate(50, 100, 2.0, seed=1)
    assert generate(50, 100, 2.0, seed=1) != generate(50, 100, 2.0, seed=2)


def test_slides_are_those_asked_for():
    assert set(slides()) == set(range(1, 61))
    assert set(slides(slides="factors")) == {1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30, 60}
    assert set(slides(slides="prime", max_slide=31)) == {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31}


def test_skew_favours_long_slides_and_below_zero_short_ones():
    means = [slides(skew=skew).mean() for skew in (-2.0, 0.0, 0.5, 3.0)]
    assert means == sorted(means)
    assert means[1] == pytest.approx(30.5, abs=1)
    assert set(slides(skew=100.0)) == {60}


def test_overlaps_are_even_from_one_to_the_largest():
    made = generate(5000, 50, 1.0, overlap=8).queries
    counts = np.bincount([query.range // query.slide for query in made])
    assert all(query.range % query.slide == 0 for query in made)
    assert counts[0] == 0
    assert len(counts) == 9
    assert counts[1:].min() > 500


def test_fragments_cut_slides_in_two():
    made = generate(500, 50, 1.0, overlap=4, fragments=True).queries
    assert sum(len(query.classes) == 2 for query in made) > 400
    assert all(query.slide <= query.range <= 4 * query.slide for query in made)


@pytest.mark.parametrize("bad", [{"queries": 0}, {"max_slide": 1}, {"overlap": 0}, {"rate": -1.0}])
def test_what_cannot_be_made_is_refused(bad):
    with pytest.raises(WindowError, match=str(next(iter(bad.values())))):
        generate(**{"queries": 3, "max_slide": 9, "rate": 1.0, "overlap": 2} | bad)
    with pytest.raises(WindowError, match="did you mean prime"):
        generate(3, 9, 1.0, slides="primes")
