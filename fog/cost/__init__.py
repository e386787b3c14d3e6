"""What runs will cost before they start: FLOPs, time, memory and disk.

fog.cost.estimate([fog.resolve("humanoid-walk", "fog")], jobs=2)
"""

from fog.cost.estimate import Estimate, RunCost, estimate

__all__ = ["Estimate", "RunCost", "estimate"]
