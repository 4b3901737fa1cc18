"""What first calls would wait for, made ahead: kernels, and Spark's classes."""

from muntin.warm.kinds import KINDS, warm
from muntin.warm.spark import record_classes

__all__ = ["KINDS", "record_classes", "warm"]
