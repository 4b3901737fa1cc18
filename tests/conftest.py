"""Settings of all tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# The first call of a kernel compiles it, and machines are shared: no test asserts a time.
settings.register_profile("muntin", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("muntin")
