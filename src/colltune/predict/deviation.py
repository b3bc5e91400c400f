"""How far two choices of one scenario may be apart from what other clusters say.

Notations: n pairs of a scenario and a choice, each with the choice that it is compared with (its base). The variance of
the difference of their log times is the sum of what pairs of this kind left unexplained on clusters that were not
trained on: a part that any two choices have, parts that grow with how differently they send and with how differently
the cost model splits their times into terms, and one for what posts more messages at once than any cluster bore. It is
the covariance of a Gaussian process (``colltune_study.training.pair_kernel``, which its amplitudes are fitted with),
written out for two choices of one scenario, where all that is common to them cancels.
"""

from collections.abc import Mapping

import numpy as np

from colltune.learn.scenario_columns import Floats
from colltune.predict.cost import Places, Sent

# The amplitudes (in log time) and lengths that a file has to name: see colltune_study.training.pair_kernel.
HYPERPARAMETERS = (
    "constant", "linear", "smooth", "traffic_smooth", "traffic", "constants", "shares", "rough",
    "traffic_length", "shares_length", "trees",
)  # fmt: skip
CENTRE: Floats = np.array([6.0, 2.0, 12.0])
SCALE = 4.0
# A slowdown against the default that counts as a loss.
LOSS = 0.03
_TRAFFIC_BOUNDS = (-6.0, 12.0)
# Standard deviation of the log time of what posts more at once than was borne elsewhere, and its length in doublings.
UNBORNE_SD, UNBORNE_LENGTH = 1.5, 4.0


def relative_traffic(sent: Sent) -> Floats:
    """(n, t): what each pair sends over textbook algorithms, within what the process was fitted to."""
    return np.clip(sent.relative(), *_TRAFFIC_BOUNDS)


def deviations(
    theta: Mapping[str, float], values: Floats, sent: Sent, rows: Places, bases: Places, unborne: Floats
) -> Floats:
    """(n,): the standard deviation of the log time of each pair of ``sent`` in ``rows`` over that of its base.

    ``values`` (d,): seconds per unit of each term. ``unborne``: of all of ``sent``, 1 for what posts more at once than
    was borne elsewhere, else 0.
    """
    traffic, shares, flying = relative_traffic(sent), sent.shares(values), np.log2(sent.flying)
    z = (sent.z[rows] - CENTRE) / SCALE
    apart = ((traffic[rows] - traffic[bases]) ** 2).mean(axis=1)
    split = ((shares[rows] - shares[bases]) ** 2).sum(axis=1)
    own = (
        theta["constant"] ** 2 + theta["linear"] ** 2 * (z**2).sum(axis=1) + theta["smooth"] ** 2 + theta["rough"] ** 2
    )
    unlike = 1.0 - np.exp(-0.5 * apart / theta["traffic_length"] ** 2)
    other = 1.0 - np.exp(-0.5 * split / theta["shares_length"] ** 2)
    variance = 2.0 * (own + unlike * (theta["traffic"] ** 2 + theta["traffic_smooth"] ** 2))
    variance += theta["constants"] ** 2 * split + 2.0 * theta["shares"] ** 2 * other
    both = np.exp(-np.abs(flying[rows] - flying[bases]) / UNBORNE_LENGTH) * unborne[rows] * unborne[bases]
    return np.asarray(np.sqrt(variance + UNBORNE_SD**2 * (unborne[rows] + unborne[bases] - 2.0 * both)))


def probability_of_loss(mean: Floats, std: Floats) -> Floats:
    """(n,): how likely log times over the default's are above that of a loss of LOSS.

    Student's t with 3 degrees of freedom, whose distribution function has a closed form: on left-out clusters
    deviations have long tails (docs/design/prior.md).
    """
    scaled = (np.log1p(LOSS) - mean) / np.maximum(std, 1e-9) / np.sqrt(3.0)
    # By the complement of the arctangent: a small probability must not be a difference of large numbers.
    far = np.arctan2(1.0, scaled) - scaled / (1.0 + scaled**2)
    return np.asarray(np.clip(far / np.pi, 0.0, 1.0), dtype=float)
