"""Upstream's recorded answers, run against our cores. `bayplan conformance FAMILY FILE` ends with `agree N/M`."""
