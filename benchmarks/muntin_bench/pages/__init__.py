"""All reports of a folder on one page: Markdown, and HTML."""

from muntin_bench.pages.writing import write_pages

__all__ = ["write_pages"]
