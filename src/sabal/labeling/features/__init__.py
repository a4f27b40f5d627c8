"""The features of all items: computed once, in chunks, by a frozen backbone."""

from sabal.labeling.features.describe import learns_with
from sabal.labeling.features.feature_files import FeatureFiles

__all__ = ["FeatureFiles", "learns_with"]
