from pathlib import Path

import muntin
from muntin import _compiled
from muntin._compiled import sources_of

SOURCES = Path(muntin.__file__).parent


def test_a_kernel_depends_on_the_kernels_that_its_module_imports():
    found = sources_of(SOURCES / "operators" / "joins" / "join.py")

    assert SOURCES / "operators" / "joins" / "join.py" in found
    assert SOURCES / "operators" / "state" / "keys.py" in found


def test_a_kernel_does_not_depend_on_what_its_module_does_not_import():
    found = sources_of(SOURCES / "operators" / "state" / "calendar.py")

    assert SOURCES / "operators" / "joins" / "join.py" not in found
    assert not [path for path in found if "engine" in path.parts]


def test_imports_through_packages_are_followed():
    package = SOURCES / "aggregates" / "exact"
    users = [
        path
        for path in SOURCES.rglob("*.py")
        if "from muntin.aggregates.exact import" in path.read_text() and path.parent != package
    ]

    assert users
    for path in users:
        assert any(source.parent == package for source in sources_of(path))


def test_a_module_that_moves_takes_no_kernels_along(tmp_path, monkeypatch):
    monkeypatch.setattr(_compiled, "_HERE", tmp_path)
    places = [tmp_path / "before.py", tmp_path / "later" / "before.py"]
    for place in places:
        place.parent.mkdir(exist_ok=True)
        place.write_text("compiled = 1")

    assert len({_compiled._digest(place) for place in places}) == 2
