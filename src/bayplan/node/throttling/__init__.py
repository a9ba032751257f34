"""Throttling: the kernel's counters, rates over windows, causes and cures."""
