"""Monte Carlo dropout (Gal & Ghahramani 2016) with masks that the whole pool shares."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from sabal.core.checks import check_whole
from sabal.errors import InputError
from sabal.models.inputs import HeadedNetwork, check_network, evaluation_mode
from sabal.models.random_streams import Stream, make_generator

# A whole channel is dropped at once by these: the mask is constant over the positions.
_BY_CHANNEL = (nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)


class Dropout:
    """The posterior of a network trained with dropout layers: one set of masks per sample.

    Parameters
    ----------
    network : HeadedNetwork
        A network with torch.nn.Dropout, Dropout1d, Dropout2d or Dropout3d layers. Calls of
        torch.nn.functional.dropout cannot be intercepted.

    References
    ----------
    Y. Gal and Z. Ghahramani. Dropout as a Bayesian Approximation. ICML 2016.
    """

    is_the_model: ClassVar[bool] = True

    def __init__(self, network: HeadedNetwork) -> None:
        self.network = check_network(network)
        self.layers = [
            module
            for module in network.modules()
            if isinstance(module, nn.Dropout | nn.Dropout1d | nn.Dropout2d | nn.Dropout3d)
            and module.p > 0
        ]
        if not self.layers:
            raise InputError(
                "a network with dropout layers",
                f"{type(network).__name__} without any",
                "build it with for instance dropout=0.5, or use Laplace",
            )

    def draw(self, samples: int, seed: int) -> DropoutDraw:
        """Return `samples` sets of masks, each drawn when the first batch shows its shape."""
        return DropoutDraw(self, check_whole(samples, "samples"), seed)


class DropoutDraw:
    """K thinned copies of one network: the same masks for every item and every batch."""

    of_features: ClassVar[bool] = False

    def __init__(self, posterior: Dropout, samples: int, seed: int) -> None:
        self.posterior = posterior
        generator = make_generator(seed, Stream.POSTERIOR)
        # A generator for each sample: its masks do not depend on how many samples there are.
        seeds = torch.randint(2**62, (samples,), generator=generator).tolist()
        self._masks = [_Masks(torch.Generator().manual_seed(value)) for value in seeds]

    def log_probs(self, batch: Tensor) -> Tensor:
        """Return the log softmax of the logits of every thinned network, (n, K, C)."""
        network = self.posterior.network
        logits = []
        with evaluation_mode(network):
            for masks in self._masks:
                masks.restart()
                handles = [
                    layer.register_forward_hook(masks.apply) for layer in self.posterior.layers
                ]
                try:
                    logits.append(network(batch))
                finally:
                    for handle in handles:
                        handle.remove()
        return functional.log_softmax(torch.stack(logits, dim=1), dim=-1)


class _Masks:
    """The masks of one sample, in the order in which a forward pass calls for them."""

    def __init__(self, generator: torch.Generator) -> None:
        self.generator = generator
        self.masks: list[Tensor] = []
        self.position = 0

    def restart(self) -> None:
        self.position = 0

    def apply(self, layer: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> Tensor:
        """Return the masked output of a dropout layer, which does nothing in evaluation mode."""
        if self.position == len(self.masks):
            self.masks.append(self._draw(layer, output))
        mask = self.masks[self.position]
        self.position += 1
        return output * mask

    def _draw(self, layer: nn.Module, output: Tensor) -> Tensor:
        share = float(layer.p)  # type: ignore[arg-type]
        shape = list(output.shape[1:])
        if isinstance(layer, _BY_CHANNEL):
            shape[1:] = [1] * (len(shape) - 1)
        kept = torch.rand(shape, generator=self.generator) >= share
        # Scaled up as in training, so that the mean over masks is the output.
        return (kept / max(1.0 - share, 1e-12)).to(output)
