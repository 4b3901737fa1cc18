"""Window queries of Spark SQL and Flink SQL, carried over into a Muntin file."""

from muntin.pipelines.importing.carrying import import_sql
from muntin.pipelines.importing.imported import Imported

__all__ = ["Imported", "import_sql"]
