"""Where GPU pods go by what they leave behind: six ways to score nodes, each a plugin of its own.

They are those that the FGD paper compares (Weng et al., "Beware of Fragmentation", USENIX ATC 2023), with the formulas
of its authors' simulator. Each is meant to score alone, and to go with `GpuShare`.
"""
