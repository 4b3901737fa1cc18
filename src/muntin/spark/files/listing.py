"""Which files there are, as Spark lists them, and the columns that their folders give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from muntin.errors import DataError
from muntin.spark.files.columns import UnlikeSparkError
from muntin.spark.files.files import Files
from muntin.spark.files.pieces import is_plain, local_path
from muntin.spark.frames import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Options that say which files there are.
LISTING = ("recursivefilelookup", "pathglobfilter", "basepath", "modifiedbefore", "modifiedafter")
_COLUMNS = ("path", "modificationTime", "length", "content")


@dataclass(frozen=True)
class Listing:
    """Spark's ``binaryFile`` source over the files: names and folders, and no file is opened."""

    frame: DataFrame
    uris: tuple[str, ...]

    @classmethod
    def of(cls, session: SparkSession, files: Files) -> Listing:
        """List the files."""
        options = {name: value for name, value in files.options if name.lower() in LISTING}
        reader = session.read.format("binaryFile").options(**options)
        frame = load(reader, files)
        return cls(frame, tuple(sorted(frame.inputFiles())))

    @property
    def folders(self) -> list[str]:
        """The columns that come from the names of folders."""
        return list(self.frame.columns[len(_COLUMNS) :])

    def paths(self) -> list[str]:
        """The files as workers open them."""
        found = []
        for uri in self.uris:
            path = local_path(uri)
            if path is None or not is_plain(path):
                raise UnlikeSparkError(f"workers do not open {uri}")
            found.append(path)
        return found

    def values(self, schema: pa.Schema) -> dict[str, Mapping[str, pa.Scalar]]:
        """What the folders of each file give, in the types of a schema."""
        types = {field.name.lower(): field for field in schema}
        names = [name for name in self.folders if name.lower() in types]
        if not names:
            return {}
        table = self.frame.select("path", *(quoted(name) for name in names)).toArrow()
        columns = {
            types[name.lower()].name: table[name].cast(types[name.lower()].type) for name in names
        }
        # The column holds the path as it is, not as a URI would spell it.
        paths = [path.removeprefix("file:") for path in table["path"].to_pylist()]
        return {
            path: {name: column[place] for name, column in columns.items()}
            for place, path in enumerate(paths)
        }


def load(reader: Any, files: Files) -> DataFrame:
    """What a reader of Spark makes of the paths."""
    from pyspark.errors import AnalysisException  # noqa: PLC0415  imported when it is used

    try:
        loaded: DataFrame = reader.load(list(files.paths))
        return loaded
    except AnalysisException as error:
        raise DataError(
            f"Spark cannot list or read {', '.join(files.paths)}: {error.getMessage()}",
            hint="check the paths, the format and the options",
        ) from error
