"""The criterion, its intervals, and Pareto fronts.

In a condition the F1 of a run counts as a share of the best F1 of all that are compared there (of 0.1 where the best is
below that, since shares of next to nothing are noise). The criterion of a candidate is the mean of these shares over the
conditions of a group, then over the groups: neither a preset that is easy nor a group with many conditions dominates.
Candidates within TIE of the best are as good; among them the one with the fewest invalid streamlines per valid one (both
shares averaged in the same way) is chosen. Intervals are percentiles of a bootstrap over the conditions of each group.
"""
import collections

import numpy as np

SMALLEST_BEST = 0.1
TIE = 0.01
REPLICATES = 2000
LEVEL = 0.95


class Comparison:
    """Candidates by name, all run in the same conditions."""

    def __init__(self, rows, group_of, replicates=REPLICATES):
        """`rows`: (candidate, condition, {f1, valid, invalid, ...}). Candidates that lack a condition which most others
        have are left out and named in `incomplete`."""
        found = collections.defaultdict(dict)
        for candidate, condition, values in rows:
            found[candidate][condition] = values
        most = max((len(by_condition) for by_condition in found.values()), default=0)
        fullest = [set(by_condition) for by_condition in found.values() if len(by_condition) == most]
        self.conditions = sorted(fullest[0]) if fullest else []
        wanted = set(self.conditions)
        self.incomplete = sorted(name for name, by_condition in found.items() if not wanted <= set(by_condition))
        self.names = sorted(name for name in found if name not in self.incomplete)
        self.values = {name: found[name] for name in self.names}
        groups = collections.defaultdict(list)
        for place, condition in enumerate(self.conditions):
            groups[group_of(condition)].append(place)
        self.groups = [np.array(places) for _, places in sorted(groups.items())]
        self.replicates = replicates
        self.shares = {}
        if self.names:
            f1 = np.array([[self.values[name][condition]["f1"] for condition in self.conditions] for name in self.names])
            shares = f1 / np.maximum(f1.max(axis=0), SMALLEST_BEST)
            self.shares = dict(zip(self.names, shares))
        self._draws = None

    def mean(self, per_condition):
        """Over the conditions of each group, then over groups."""
        return float(np.mean([per_condition[places].mean() for places in self.groups]))

    def measure(self, name, field):
        """A field of the runs in the criterion's mean; None where a run lacks it."""
        values = [self.values[name][condition].get(field) for condition in self.conditions]
        return None if None in values else self.mean(np.array(values, dtype=float))

    def criterion(self, name):
        return self.mean(self.shares[name])

    def _weights(self):
        """Replicates x conditions: how often each was drawn, as a weight whose product with values is their mean."""
        if self._draws is None:
            random = np.random.default_rng(0)
            weights = np.zeros((self.replicates, len(self.conditions)))
            for places in self.groups:
                drawn = random.multinomial(len(places), np.full(len(places), 1 / len(places)), size=self.replicates)
                weights[:, places] = drawn / (len(places) * len(self.groups))
            self._draws = weights
        return self._draws

    def interval(self, name, other=None):
        """The interval of the criterion, or of its difference to another candidate's in the same conditions."""
        values = self.shares[name] - (self.shares[other] if other is not None else 0)
        tail = 50 * (1 - LEVEL)
        low, high = np.percentile(self._weights() @ values, [tail, 100 - tail])
        return float(low), float(high)

    def ranked(self, allowed=lambda name: True):
        return sorted((name for name in self.names if allowed(name)), key=lambda name: (-self.criterion(name), name))

    def chosen(self, allowed=lambda name: True):
        """The winner: among those within TIE of the best the one with the fewest invalid per valid."""
        ranked = self.ranked(allowed)
        if not ranked:
            return None
        best = self.criterion(ranked[0])
        tied = [name for name in ranked if self.criterion(name) >= best - TIE]
        return min(tied, key=lambda name: (self.measure(name, "invalid") / max(self.measure(name, "valid"), 1e-9),
                                           -self.criterion(name), name))


def pareto_front(points):
    """Names of (name, gain, cost) that no other one beats in both, by rising cost."""
    front = []
    for name, gain, cost in sorted(points, key=lambda point: (point[2], -point[1], point[0])):
        if not front or gain > front[-1][1]:
            front.append((name, gain, cost))
    return [name for name, _, _ in front]
