"""Random Fourier features kept as phases: half the memory, and half the cosines of a pass."""

from __future__ import annotations

from typing import Self

import numpy as np
from array_api_compat import device, is_numpy_array

from sabal.core.arrays import Array, beside, namespace, to_host
from sabal.sparse.operators.blocks import Dense
from sabal.sparse.operators.operator import Block


class Fourier(Block):
    """Atoms a_j = weight_j [cos(phase_j), sin(phase_j)]."""

    def __init__(self, phase_NF: Array, weight_N: Array) -> None:
        self.phase_NF = phase_NF
        self.weight_N = weight_N

    @property
    def atom_shape(self) -> tuple[int, ...]:
        return (2 * int(self.phase_NF.shape[1]),)

    @property
    def factors(self) -> tuple[Array, ...]:
        return (self.phase_NF, self.weight_N)

    def with_factors(self, factors: tuple[Array, ...]) -> Self:
        return type(self)(*factors)

    def correlate(self, direction: np.ndarray) -> np.ndarray:
        """With x cos(phase) + y sin(phase) = r cos(phase - angle): one cosine instead of two."""
        xp = namespace(self.phase_NF)
        x_F, y_F = np.split(direction, 2)
        angle_F, radius_F = np.arctan2(y_F, x_F), np.hypot(x_F, y_F)
        wave_NF = self.phase_NF - beside(angle_F, self.phase_NF)
        wave_NF = np.cos(wave_NF, out=wave_NF) if is_numpy_array(wave_NF) else xp.cos(wave_NF)
        return to_host(self.weight_N) * to_host(wave_NF @ beside(radius_F, self.phase_NF))

    def combine(self, weights_N: np.ndarray) -> np.ndarray:
        xp = namespace(self.phase_NF)
        weights_N = beside(weights_N * to_host(self.weight_N), self.phase_NF)
        waves = (weights_N @ wave(self.phase_NF) for wave in (xp.cos, xp.sin))
        return np.concatenate([to_host(wave) for wave in waves])

    def norms_squared(self) -> np.ndarray:
        """cos^2 + sin^2 = 1: the norm is known without either."""
        return to_host(self.weight_N) ** 2 * self.phase_NF.shape[1]

    def products_with(self, row: int) -> np.ndarray:
        return self.dense().products_with(row)

    def gram(self) -> np.ndarray:
        return self.dense().gram()

    def dense(self) -> Dense:
        """The atoms written out."""
        xp = namespace(self.phase_NF)
        n, frequencies = self.phase_NF.shape
        atoms_NM = xp.empty(
            (n, 2 * frequencies), dtype=self.phase_NF.dtype, device=device(self.phase_NF)
        )
        # In place: joined by `concat`, the atoms would be there twice.
        atoms_NM[:, :frequencies] = xp.cos(self.phase_NF)
        atoms_NM[:, frequencies:] = xp.sin(self.phase_NF)
        atoms_NM *= self.weight_N[:, None]
        return Dense(atoms_NM)
