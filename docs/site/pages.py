"""The pages of the site: the navigation is docs/index.md, and links out of docs/ keep working.

An mkdocs hook. On GitHub a page may link to any file of the repository; the site brings those
files along under ``repository/``.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
_LINK = re.compile(r"(?<=\]\()(?!https?:|#)([^)#\s]+)")
_LISTED = re.compile(r"^- \[([^]]+)\]\(([^)#]+)\)", re.MULTILINE)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Each section of the index is a section of the navigation, in the same order."""
    nav: list[Any] = [{"Home": "index.md"}]
    for section in (DOCS / "index.md").read_text().split("\n## ")[1:]:
        title, _, body = section.partition("\n")
        listed = [{name: _site_uri(DOCS / target)} for name, target in _LISTED.findall(body)]
        if listed:
            nav.append({title: listed})
    config.nav = nav
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Bring along the files outside of docs/ that pages link to, and those that these link to."""
    pages = [DOCS / file.src_uri for file in files.documentation_pages()]
    known = set(pages)
    while pages:
        page = pages.pop()
        for target in _LINK.findall(page.read_text()):
            path = (page.parent / target).resolve()
            if path in known or path.is_relative_to(DOCS) or not path.is_file():
                continue
            known.add(path)
            listed = InclusionLevel.NOT_IN_NAV
            uri = _site_uri(path)
            files.append(File.generated(config, uri, abs_src_path=str(path), inclusion=listed))
            if path.suffix == ".md":
                pages.append(path)
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Links as the site needs them: between the places where it has the files."""
    inside, uri = page.file.src_uri.removeprefix("repository/"), page.file.src_uri
    source = ROOT / inside if inside != uri else DOCS / uri

    def placed(link: re.Match[str]) -> str:
        path = (source.parent / link[1]).resolve()
        if not path.is_file():
            return link[1]  # mkdocs says that it is broken
        return os.path.relpath(_site_uri(path), os.path.dirname(uri) or ".")

    return _LINK.sub(placed, markdown)


def _site_uri(path: Path) -> str:
    path = path.resolve()
    if path.is_relative_to(DOCS):
        return path.relative_to(DOCS).as_posix()
    return f"repository/{path.relative_to(ROOT).as_posix()}"
