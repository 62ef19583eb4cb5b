"""Kernels over pairs of a context and an action: how alike two pairs are, and so their rewards."""

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.errors import InvalidInput
from dpbandits.recipes import Recipe

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Kernel(Recipe):
    """A positive semi-definite function of two pairs. Kernels may be added and multiplied.

    A problem divides its kernel by the largest k(w, w) over its pairs where that is above 1.
    """

    abstract: ClassVar[bool] = True

    @abstractmethod
    def between(self, left: Array, right: Array, split: int) -> Array:
        """K of every row of `left` with every row of `right`.

        A row holds the coordinates of a context, then from `split` on those of an action.
        """

    @abstractmethod
    def diagonal(self, points: Array, split: int) -> Array:
        """k(w, w) of every row."""

    def __add__(self, other: "Kernel") -> "KernelSum":
        return KernelSum(self, other)

    def __mul__(self, other: "Kernel") -> "KernelProduct":
        return KernelProduct(self, other)


@dataclass(frozen=True)
class _OnCoordinates(Kernel):
    """A kernel of some coordinates: `on` is "pair" (all), "context" or "action"."""

    abstract: ClassVar[bool] = True
    on: Annotated[
        Literal["pair", "context", "action"], 'What it compares: "pair", "context" or "action".'
    ] = field(default="pair", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.one_of(("pair", "context", "action"), on=self.on)

    def _seen(self, points: Array, split: int) -> Array:
        if self.on == "pair":
            return points
        return points[:, :split] if self.on == "context" else points[:, split:]

    def between(self, left: Array, right: Array, split: int) -> Array:
        """The formula on the coordinates it looks at."""
        return self._of(self._seen(left, split), self._seen(right, split))

    @abstractmethod
    def _of(self, left: Array, right: Array) -> Array:
        """The formula."""


@dataclass(frozen=True)
class _Stationary(_OnCoordinates):
    """A kernel of the distance r = |w − w'| in units of `length_scale`; k(w, w) = 1."""

    abstract: ClassVar[bool] = True
    length_scale: Annotated[
        float, "How far apart two points are whose rewards have little in common."
    ] = 0.2

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.positive(length_scale=self.length_scale)

    def diagonal(self, points: Array, split: int) -> Array:
        """1 everywhere."""
        return np.ones(len(points))

    def _of(self, left: Array, right: Array) -> Array:
        square = np.zeros((len(left), len(right)))
        for axis in range(left.shape[1]):  # not by |a|² + |b|² − 2ab, which loses equal points
            with np.errstate(over="ignore"):  # points that far apart have nothing in common
                square += ((left[:, None, axis] - right[None, :, axis]) / self.length_scale) ** 2
        return self._of_square(square)

    @abstractmethod
    def _of_square(self, square: Array) -> Array:
        """The formula, of r²."""


@dataclass(frozen=True)
class SquaredExponential(_Stationary):
    """exp(−r²/2): very smooth functions, of few effective dimensions.

    >>> SquaredExponential(0.2) * SquaredExponential(0.5, on="context")
    KernelProduct(left=SquaredExponential(...), right=SquaredExponential(...))
    """

    def _of_square(self, square: Array) -> Array:
        return np.exp(-0.5 * square)


@dataclass(frozen=True)
class Matern(_Stationary):
    """Functions that can be differentiated fewer than `smoothness` (½, 1½ or 2½) times.

    With s = √(2ν)·r: e^−s for ν = ½, (1 + s) e^−s for 1½, (1 + s + s²/3) e^−s for 2½.
    """

    smoothness: Annotated[float, "0.5, 1.5 or 2.5: how often the reward can be differentiated."] = 2.5

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.one_of((0.5, 1.5, 2.5), smoothness=self.smoothness)

    def _of_square(self, square: Array) -> Array:
        # At 1000 e^−s is 0 already; further out the product would be ∞·0.
        s = np.minimum(np.sqrt(2.0 * self.smoothness * np.minimum(square, 1e9)), 1e3)
        polynomial = {0.5: 1.0, 1.5: 1.0 + s, 2.5: 1.0 + s + s * s / 3.0}[self.smoothness]
        return np.asarray(polynomial * np.exp(-s))


@dataclass(frozen=True)
class LinearKernel(_OnCoordinates):
    """⟨w, w'⟩: linear functions of the coordinates."""

    def diagonal(self, points: Array, split: int) -> Array:
        """|w|²."""
        return np.asarray(np.sum(self._seen(points, split) ** 2, axis=1))

    def _of(self, left: Array, right: Array) -> Array:
        return np.asarray(np.einsum("id,jd->ij", left, right))


@dataclass(frozen=True)
class PolynomialKernel(_OnCoordinates):
    """(offset + ⟨w, w'⟩)^degree: polynomials of the coordinates."""

    degree: Annotated[int, "The degree of the polynomial."] = 2
    offset: Annotated[float, "The constant added to the inner product."] = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.integer(least=1, degree=self.degree)
        checks.not_negative(offset=self.offset)

    def diagonal(self, points: Array, split: int) -> Array:
        """(offset + |w|²)^degree."""
        return np.asarray((self.offset + np.sum(self._seen(points, split) ** 2, axis=1)) ** self.degree)

    def _of(self, left: Array, right: Array) -> Array:
        return np.asarray((self.offset + np.einsum("id,jd->ij", left, right)) ** self.degree)


@dataclass(frozen=True)
class _OfTwo(Kernel):
    abstract: ClassVar[bool] = True
    left: Annotated[Kernel, "The first kernel."]
    right: Annotated[Kernel, "The second kernel."]

    def __post_init__(self) -> None:
        super().__post_init__()
        for kernel in (self.left, self.right):
            if not isinstance(kernel, Kernel):
                raise InvalidInput(
                    f"expected a kernel such as SquaredExponential(0.2), got {checks.shown(kernel)}"
                )


@dataclass(frozen=True)
class KernelSum(_OfTwo):
    """k + k': functions that are a sum of one of each kind."""

    def between(self, left: Array, right: Array, split: int) -> Array:
        """The sum."""
        return self.left.between(left, right, split) + self.right.between(left, right, split)

    def diagonal(self, points: Array, split: int) -> Array:
        """The sum."""
        return self.left.diagonal(points, split) + self.right.diagonal(points, split)


@dataclass(frozen=True)
class KernelProduct(_OfTwo):
    """k·k': alike only where both kernels say so."""

    def between(self, left: Array, right: Array, split: int) -> Array:
        """The product."""
        return self.left.between(left, right, split) * self.right.between(left, right, split)

    def diagonal(self, points: Array, split: int) -> Array:
        """The product."""
        return self.left.diagonal(points, split) * self.right.diagonal(points, split)
