"""Sabal beside other packages: their models and posteriors in, our batches in their terms out.

None of these packages is imported here. The query strategy for scikit-activeml, which has to be a
class of that package, is in `sabal.integrations.activeml`.
"""

from sabal.integrations.axes import log_probs_from
from sabal.integrations.modal import modal_query
from sabal.integrations.skorch import skorch_outputs
from sabal.integrations.trainer import trainer_outputs

__all__ = ["log_probs_from", "modal_query", "skorch_outputs", "trainer_outputs"]
