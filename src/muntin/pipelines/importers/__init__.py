"""Window queries of Spark SQL and Flink SQL, carried over into a Muntin file."""

from muntin.pipelines.importers.file import Imported, import_sql

__all__ = ["Imported", "import_sql"]
