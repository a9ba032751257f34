"""How fast and how small, beside what else there is: `python -m benchmarks [NAME...]`, or `make bench`.

A benchmark prints our figure, a peer's from the same run, their ratio, and how the cost of one operation grows over
three sizes. Nothing here asserts a time; a goal that is missed is printed as missed.
"""
