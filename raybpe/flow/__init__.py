"""The flow of a training, and everything that knows Ray.

`train` tells the story; `steps` are the pure functions it is made of; `local` and the Ray
executor (`cluster`, `reduction`, `tasks`, `merge_actor`) run them; `run_directory` is what survives
a kill; `progress` is what a user sees meanwhile.
"""

from raybpe.flow.count import count, count_from_iterator
from raybpe.flow.train import TrainResult, train, train_from_counts, train_from_iterator

__all__ = [
    "TrainResult",
    "count",
    "count_from_iterator",
    "train",
    "train_from_counts",
    "train_from_iterator",
]
