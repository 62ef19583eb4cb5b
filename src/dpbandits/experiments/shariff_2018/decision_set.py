"""Figure 1: what a decision set looks like."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from dpbandits.engine import Streams
from dpbandits.experiments.figure import Claim, Figure, Scale
from dpbandits.experiments.shariff_2018.setting import PAPER, Array
from dpbandits.extras import extra
from dpbandits.reports.figures import COLOURS
from dpbandits.simulation import Trace
from dpbandits.worlds import SphereContexts


class DecisionSet(Figure):
    """Figure 1: one decision set in three dimensions."""

    name: ClassVar[str] = "shariff-fig1"
    title: ClassVar[str] = "A decision set in R³ with 1000 actions"
    paper: ClassVar[str] = f"{PAPER}, Figure 1"
    _WORLD: ClassVar = SphereContexts(3, 1000)

    def describe_scale(self, scale: Scale) -> str:
        """One drawing."""
        return "one decision set, d = 3, K = 1000"

    def _drawn(self) -> tuple[Array, Array, Array]:
        """Features, means and θ*."""
        world = self._WORLD.world()
        (features,) = world.offer(Streams.of(0).chance)
        return features, world.shown.means, world.shown.theta

    def draw(self, traces: Mapping[str, Trace], scale: Scale) -> Any:
        """The sphere, with θ* and the optimal action marked."""
        with extra("plot"):
            from matplotlib.figure import Figure as Picture

        features, means, theta = self._drawn()
        picture = Picture(figsize=(7.0, 5.4), layout="constrained")
        axes: Any = picture.add_subplot(projection="3d")
        best = int(means.argmax())
        others = np.delete(np.arange(means.size), best)
        shown = axes.scatter(*features[others].T, c=means[others], s=7, cmap="viridis")
        axes.scatter(*features[best], c=COLOURS[1], s=90, marker="*", label="optimal action, mean .75")
        axes.quiver(0, 0, 0, *theta, color="black", arrow_length_ratio=0.1, label="θ*")
        bar = picture.colorbar(shown, shrink=0.6, pad=0.08)
        bar.set_label("mean reward ⟨x, θ*⟩ of the suboptimal actions")
        # Seen from the side of θ*, where the cap without actions is.
        up, around = math.degrees(math.asin(theta[2])), math.degrees(math.atan2(theta[1], theta[0]))
        axes.view_init(elev=0.6 * up, azim=around + 40.0)
        axes.set_box_aspect((1, 1, 1))
        for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
            axis.set_ticks([-1.0, 0.0, 1.0])
        axes.legend(loc="upper left", frameon=False)
        return picture

    def claims(self, traces: Mapping[str, Trace], scale: Scale) -> list[Claim]:
        """The set is what the text says."""
        features, means, theta = self._drawn()
        others = np.sort(means)[:-1]
        lengths = np.linalg.norm(features, axis=1)
        wrong = np.abs(features @ theta - means).max()
        return [
            Claim(
                paper="One optimal action of mean .75, all others in [−.75, .65], all of unit length",
                ours=True,
                criterion="in the set that is drawn, to 10⁻⁹: a check of what we draw",
                measured=f"best {means.max():.4f}, others {others.min():.3f} to {others.max():.3f}, "
                f"lengths within {np.abs(lengths - 1).max():.0e} of 1",
                holds=bool(
                    (means == 0.75).sum() == 1
                    and wrong < 1e-9
                    and others.max() <= 0.65
                    and others.min() >= -0.75
                    and np.abs(lengths - 1).max() < 1e-9
                ),
            )
        ]
