"""Integrations with other packages: their models and posteriors, and query functions for them.

None of these packages is imported here. The query strategy for scikit-activeml, which has to be a
subclass of a class of that package, is in `sabal.integrations.activeml`.
"""

from sabal.integrations.axes import log_probs_from
from sabal.integrations.modal import modal_query
from sabal.integrations.skorch import skorch_outputs
from sabal.integrations.trainer import trainer_outputs

__all__ = ["log_probs_from", "modal_query", "skorch_outputs", "trainer_outputs"]
