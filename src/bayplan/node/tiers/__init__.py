"""Tiers: how far the node interferes with a task, softly first."""
