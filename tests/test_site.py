"""The documentation as a whole: every page is listed, every public name is in the reference.

``make lint`` builds the site, which finds broken links and names that do not exist.
"""

from __future__ import annotations

import importlib.util
import inspect
import re
import tomllib
from collections.abc import Iterator
from functools import reduce
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import muntin
from code_blocks import ROOT
from muntin import aggregates, aggregators, errors, sinks, testing

DOCS = ROOT / "docs"
SOURCES = ROOT / "src" / "muntin"
PACKAGES = (muntin, sinks, testing, errors, aggregates, aggregators)
DIRECTIVES = [
    line.removeprefix("::: ").strip()
    for page in sorted((DOCS / "reference").glob("*.md"))
    for line in page.read_text().splitlines()
    if line.startswith("::: ")
]
# Where each of these is done; the page names the modules, and a reader must find them there.
FOUND_IN = {
    "windows/cut.py": "def slice_starts(",
    "predicates/analysis.py": "class Analysis",
    "predicates/shape.py": "class Shape",
    "engine/answers/front.py": "class Answerer",
    "spark/streaming/driver/batches.py": ".write_record(",
}


def public_names(package: ModuleType) -> Iterator[tuple[str, object]]:
    """What a package exports; a module without ``__all__``, what it defines."""
    defined = [name for name, each in vars(package).items() if _is_defined_in(each, package)]
    for name in getattr(package, "__all__", defined):
        each = getattr(package, name)
        if not name.startswith("_") and not isinstance(each, ModuleType):
            yield name, each


def _is_defined_in(each: object, module: ModuleType) -> bool:
    return getattr(each, "__module__", None) == module.__name__ and callable(each)


def located(directive: str) -> object | None:
    """What a directive names: an attribute of the longest path that is a module, or None."""
    parts = directive.split(".")
    for end in range(len(parts), 0, -1):
        try:
            module = import_module(".".join(parts[:end]))
            return reduce(getattr, parts[end:], module)
        except ModuleNotFoundError:
            continue
        except AttributeError:
            return None
    return None


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_every_public_name_is_in_the_reference(package: ModuleType) -> None:
    shown = [located(directive) for directive in DIRECTIVES]
    missing = [
        name for name, each in public_names(package) if not any(each is other for other in shown)
    ]
    assert missing == [], f"docs/reference has no `::: {package.__name__}.{missing[0]}`"


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_every_public_name_has_a_docstring(package: ModuleType) -> None:
    bare = []
    for name, each in public_names(package):
        bare += [] if inspect.getdoc(each) else [name]
        if inspect.isclass(each):
            members = {key: value for key, value in vars(each).items() if not key.startswith("_")}
            documented = (inspect.isfunction, inspect.isdatadescriptor, inspect.ismethoddescriptor)
            bare += [
                f"{name}.{key}"
                for key, value in members.items()
                if any(check(value) for check in documented) and not inspect.getdoc(value)
            ]
    assert bare == []


def test_the_reference_names_what_there_is() -> None:
    assert [each for each in DIRECTIVES if located(each) is None] == []


def test_the_index_lists_every_page_in_a_line() -> None:
    index = DOCS / "index.md"
    listed = re.findall(r"^- \[[^]]+\]\(([^)]+)\): \S.*\.$", index.read_text(), re.MULTILINE)
    pages = {path for path in DOCS.rglob("*.md") if path != index}
    missing = pages - {(DOCS / target).resolve() for target in listed}
    assert missing == set(), f"docs/index.md does not list {sorted(missing)[0].relative_to(ROOT)}"
    assert len(listed) == len(set(listed))


def test_every_decision_is_listed() -> None:
    folder = DOCS / "decisions"
    listed = set(re.findall(r"\]\(([\w-]+\.md)\)", (folder / "index.md").read_text()))
    assert listed == {path.name for path in folder.glob("*.md")} - {"index.md"}


@pytest.mark.parametrize("page", [DOCS / "architecture.md", *(DOCS / "decisions").glob("*.md")])
def test_modules_that_are_named_exist(page: Path) -> None:
    named = re.findall(r"`([\w/]+(?:\.py|/))`", page.read_text())
    assert named or page.name == "index.md"
    assert [path for path in named if not (SOURCES / path).exists()] == []


def test_paths_that_pages_name_exist() -> None:
    pages = [ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")]
    pattern = r"`((?:src|tests|docs|benchmarks)/[\w/.-]*)`"
    named = {path for page in pages for path in re.findall(pattern, page.read_text())}
    assert len(named) > 10
    assert {path for path in named if not (ROOT / path).exists()} == set()


@pytest.mark.parametrize("module", FOUND_IN)
def test_the_architecture_leads_to_the_code(module: str) -> None:
    text = (DOCS / "architecture.md").read_text()
    _, _, found = text.partition("## Find it")
    found, _, _ = found.partition("\n## ")
    assert f"`{module}`" in found
    assert FOUND_IN[module] in (SOURCES / module).read_text()


def test_layers_are_those_of_the_contract() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (layers,) = [each["layers"] for each in settings["contracts"] if each["type"] == "layers"]
    contract = [set(re.findall(r"\w+", layer)) for layer in layers]
    text = (ROOT / "CONTRIBUTING.md").read_text()
    rows = re.findall(r"^\| \d+ \|([^|]+)\|", text, re.MULTILINE)
    assert [set(re.findall(r"`(\w+)`", row)) for row in rows] == contract


def test_docstrings_become_markdown() -> None:
    path = DOCS / "site" / "docstrings.py"
    spec = importlib.util.spec_from_file_location("docstrings", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    shown = module.markdown("A sum, see :func:`muntin.read`.\n\n>>> 1 + 1\n2\n\nThe end.")
    assert "```pycon\n>>> 1 + 1\n2\n```\n\nThe end." in shown
    assert '<autoref optional identifier="muntin.read"><code>muntin.read</code></autoref>' in shown
