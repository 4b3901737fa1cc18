"""The plans of a run: what is asked, how it is shared, and what the next batch takes."""

from muntin.spark.streaming.driver.plans.planner import Planner, columns_of, result_schemas
from muntin.spark.streaming.driver.plans.streams import Planning

__all__ = ["Planner", "Planning", "columns_of", "result_schemas"]
