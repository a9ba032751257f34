"""What would let a refused pod in: changes, each tried on a copy of the node, the nearest first.

changes   a change as a value: what it is, and whether it really lets the pod in
search    which changes there are, in order of cost
"""

from bayplan.node.whatif.changes import Ask, Change, Evict, Kind, Order, Setting, Situation, situation
from bayplan.node.whatif.search import suggestions

__all__ = ["Ask", "Change", "Evict", "Kind", "Order", "Setting", "Situation", "situation", "suggestions"]
