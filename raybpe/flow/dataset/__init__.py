"""A data set encoded into token shards, and back.

`encode` tells the story; `steps` turns parts of inputs into ids; `shards` are the files; `local`
and `cluster` run the steps. All of them give the same bytes.
"""

from raybpe.flow.dataset.encode import Encoded, encode_dataset

__all__ = ["Encoded", "encode_dataset"]
