"""What the model sees of every item: computed once, in chunks, by a backbone that stays frozen."""

from sabal.labeling.features.announce import learns_with
from sabal.labeling.features.chunks import Features

__all__ = ["Features", "learns_with"]
