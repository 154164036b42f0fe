"""What is tracked, and with which options: the stated design of the study. Nothing here runs a program or reads a result.

Small presets: an orthogonal array of 16 rows over GF(4) for each group of four presets. Its columns are SNR, voxel size,
scheme, preset and key, so that in each group every pair of levels of SNR, voxel size and scheme occurs exactly once, and
every preset meets every level of each exactly once. The brain takes eight rows of its own, from 1.5 mm on (at 1 mm it has
five million voxels).
"""
import dataclasses
import itertools
import random

SNR = (10, 15, 20, 30)
VOXEL_MM = (1.0, 1.5, 2.0, 2.5)
SCHEMES = ((1000, 30), (1000, 64), (2000, 60), (3000, 90))  # b-value and directions: from few and low to many and high
KEYS = (1, 2, 3, 4, 5)
GROUPS = {
    "single": ("straight", "helix", "arcs", "fanning"),
    "crossing": ("crossing90", "crossing45", "crossing60", "crossing3"),
    "narrow": ("bottleneck", "deadend", "kissing", "commissural"),
    "brain": ("brain",),
}
# Streamlines that are kept grow with the bundles. Few on purpose: with thousands in a small phantom every voxel of a
# bundle is met by somebody, and F1 no longer tells one valid streamline in ten from nine in ten.
BUNDLES = {"straight": 1, "arcs": 3, "helix": 1, "fanning": 1, "crossing90": 2, "crossing60": 2, "crossing45": 2,
           "crossing3": 3, "kissing": 2, "bottleneck": 2, "deadend": 2, "commissural": 5, "brain": 129}
KEPT_PER_BUNDLE = 100
KEPT_IN_BRAIN = 4000
KEPT_IN_BRAIN_OF_SMALL_STUDY = 1000
SEEDS_PER_KEPT = 50  # options that keep less than one seed in fifty are not worth waiting for

BRAIN_ROWS = (  # SNR, voxel size, scheme
    (15, 2.5, (1000, 30)),
    (20, 2.0, (1000, 30)),
    (15, 2.0, (1000, 64)),
    (30, 2.5, (1000, 64)),
    (20, 2.0, (2000, 60)),
    (10, 2.5, (2000, 60)),
    (20, 1.5, (3000, 90)),
    (10, 2.0, (3000, 90)),
)


@dataclasses.dataclass(frozen=True)
class Condition:
    preset: str
    snr: int
    voxel_mm: float
    b_value: int
    directions: int
    key: int
    select: int = 0  # streamlines to keep; 0 stands for as many as the preset has

    def __post_init__(self):
        if self.select == 0:
            kept = KEPT_IN_BRAIN if self.preset == "brain" else KEPT_PER_BUNDLE * BUNDLES[self.preset]
            object.__setattr__(self, "select", kept)

    @property
    def data_name(self):
        return f"{self.preset}-snr{self.snr}-{self.voxel_mm:g}mm-b{self.b_value}-{self.directions}dir-key{self.key}"

    @property
    def name(self):
        """Runs that keep another number are another condition: F1 grows with it."""
        return f"{self.data_name}-n{self.select}"

    @property
    def group(self):
        return next(group for group, presets in GROUPS.items() if self.preset in presets)

def gf4_times(a, b):
    """Product in the field of four elements (2 is the root of x^2 + x + 1); its sum is the exclusive or."""
    if a == 0 or b == 0:
        return 0
    return (a - 1 + b - 1) % 3 + 1


def conditions():
    """All of them, small presets first."""
    found = []
    for replicate, (group, presets) in enumerate(GROUPS.items()):
        if group == "brain":
            continue
        for a, b in itertools.product(range(4), repeat=2):
            scheme, preset, key = (a ^ gf4_times(factor, b) for factor in (1, 2, 3))
            # A turn of the levels keeps the array orthogonal, and gives a pair of voxel size and scheme another SNR in
            # each group.
            found.append(Condition(presets[preset], SNR[(a + replicate) % 4], VOXEL_MM[b], *SCHEMES[scheme],
                                   KEYS[(key + replicate) % len(KEYS)]))
    for i, (snr, voxel, scheme) in enumerate(BRAIN_ROWS):
        found.append(Condition("brain", snr, voxel, *scheme, KEYS[i % len(KEYS)]))
    return found


# Pairs of voxel size and scheme whose conditions a stage takes; each pair names one condition of every small group.
COARSE_PAIRS = ((2.5, (1000, 30)), (2.0, (2000, 60)))
MIDDLE_PAIRS = COARSE_PAIRS + ((2.0, (1000, 64)), (1.5, (3000, 90)))


def conditions_of(pairs):
    return [c for c in conditions() if (c.voxel_mm, (c.b_value, c.directions)) in pairs]


STAGES = ("coarse", "middle", "final")


def stage_conditions(stage):
    return {"coarse": lambda: conditions_of(COARSE_PAIRS), "middle": lambda: conditions_of(MIDDLE_PAIRS),
            "final": conditions}[stage]()


# Levels of every option, in order: neighbours are one level apart. None leaves an option out, "" is a flag.
ANGLE = ("10", "15", "20", "30", "45", "60")
STEP = ("0.1", "0.2", "0.3", "0.5")
FA = ("0.05", "0.1", "0.15", "0.2", "0.25", "0.3")
SHARE = ("0", "0.05", "0.1", "0.2", "0.4")
ABSOLUTE = ("0", "0.05", "0.1", "0.2")
STARTS = ("1", None)
FLAG = (None, "")
AXES = {
    "prob": {"max-angle": ANGLE, "step-size": STEP, "fa-threshold": FA, "pmf-threshold": SHARE,
             "pmf-threshold-absolute": ABSOLUTE, "max-directions": STARTS, "amplitudes": FLAG},
    "det": {"max-angle": ANGLE, "step-size": STEP, "fa-threshold": FA, "pmf-threshold": SHARE,
            "pmf-threshold-absolute": ABSOLUTE, "max-directions": STARTS, "amplitudes": FLAG},
    # The angle of ptt is another way to say the radius, so the radius alone is an axis.
    "ptt": {"step-size": STEP, "fa-threshold": FA, "pmf-threshold": SHARE, "pmf-threshold-absolute": ABSOLUTE,
            "max-directions": STARTS, "amplitudes": FLAG,
            "ptt-min-radius": ("0.5vox", "0.7vox", "1vox", "1.5vox", "2vox", "3vox"),
            "ptt-probe-length": ("0.25vox", "0.5vox", "1vox", "2vox"), "ptt-probe-quality": ("3", "4", "7"),
            "ptt-substeps": ("1", "4", "20"), "ptt-weak-links": FLAG},
    "closest": {"max-angle": ANGLE, "step-size": STEP, "fa-threshold": FA, "relative-peak-threshold": ("0.1", "0.25", "0.5"),
                "min-separation-angle": ("15", "25", "45"), "max-directions": STARTS, "amplitudes": FLAG},
    "boot": {"max-angle": ANGLE, "step-size": STEP, "fa-threshold": FA, "relative-peak-threshold": ("0.1", "0.25", "0.5"),
             "min-separation-angle": ("25", "45"), "max-directions": STARTS, "model": ("opdt", "csa"),
             "sh-order": ("4", "6"), "boot-retry": ("no-peak", "no-peak-or-angle")},
    "tensor": {"max-angle": ANGLE, "step-size": STEP, "fa-threshold": FA, "rk4": FLAG},
}
GETTERS = tuple(AXES)
SAMPLES = {"prob": 48, "det": 48, "ptt": 64, "closest": 48, "boot": 48, "tensor": 24}

# Where the axes begin: what the program did before the study, and what was seen to be better than that.
_OLD = {"max-angle": "60", "step-size": "0.5", "fa-threshold": "0.1"}
_OLD_PMF = {"pmf-threshold": "0.1", "pmf-threshold-absolute": "0"}
_OLD_PEAKS = {"relative-peak-threshold": "0.25", "min-separation-angle": "45"}
_OLD_PTT = {"step-size": "0.5", "fa-threshold": "0.1", **_OLD_PMF, "ptt-min-radius": "0.5vox", "ptt-probe-length": "2vox",
            "ptt-probe-quality": "7", "ptt-substeps": "1"}
_OLD_BOOT = {**_OLD, **_OLD_PEAKS, "model": "opdt", "sh-order": "4", "boot-retry": "no-peak"}
ANCHORS = {
    "prob": ({**_OLD, **_OLD_PMF}, {**_OLD, **_OLD_PMF, "max-angle": "30", "fa-threshold": "0.2"},
             {**_OLD, **_OLD_PMF, "max-angle": "20", "step-size": "0.1", "fa-threshold": "0.2"}),
    "det": ({**_OLD, **_OLD_PMF}, {**_OLD, **_OLD_PMF, "max-angle": "30", "fa-threshold": "0.2"}),
    "ptt": (_OLD_PTT, {**_OLD_PTT, "ptt-min-radius": "1.5vox", "fa-threshold": "0.2", "amplitudes": ""},
            {"step-size": "0.5", "fa-threshold": "0.2", "pmf-threshold": "0", "pmf-threshold-absolute": "0.05",
             "ptt-min-radius": "0.5vox", "ptt-probe-length": "0.25vox", "ptt-probe-quality": "4", "ptt-substeps": "20",
             "ptt-weak-links": "", "amplitudes": "", "max-directions": "1"}),
    "closest": ({**_OLD, **_OLD_PEAKS}, {**_OLD, **_OLD_PEAKS, "max-angle": "45", "fa-threshold": "0.2"}),
    "boot": (_OLD_BOOT, {**_OLD_BOOT, "max-angle": "45", "fa-threshold": "0.2"}),
    "tensor": (_OLD, {**_OLD, "max-angle": "45", "fa-threshold": "0.2"}),
}
# Rows to compare with, never chosen: the program as it is typed, and what other tools do.
REFERENCES = {
    "prob": ({}, {"preset": "dipy"}, {"preset": "mrtrix3"}, {"preset": "cuslines"}),
    "det": ({}, {"preset": "dipy"}, {"preset": "mrtrix3"}),
    "ptt": ({}, {"preset": "trekker"}, {"preset": "dipy"}),
    "closest": ({}, {"preset": "dipy"}),
    "boot": ({}, {"preset": "dipy"}, {"preset": "cuslines"}),
    "tensor": ({}, {"preset": "mrtrix3"}),
}
SURVIVORS = {"middle": 16, "final": 10}  # how many of the best go on to the stage
NEIGHBOURHOODS = 2  # rounds of neighbours in the middle stage
CENTRES = 3  # each round is around so many of the best


def is_within(options, limits):
    """No option above the limit that is set for it. A phantom has no white matter of low FA as brains have in crossings, so
    that a threshold may have to be held down by hand."""
    return all(float(options.get(name, "0").removesuffix("vox")) <= limit + 1e-9 for name, limit in limits.items())


def candidate_name(options):
    """The words of a command line, in one order."""
    if not options:
        return "defaults"
    return " ".join(f"--{name} {value}".strip() for name, value in sorted(options.items()))


def is_reference(options):
    return not options or "preset" in options


SHORTEST_ARC = 0.025  # edges; Trekker's. Ten times shorter ones take ten times as long, and hours of the study


def is_affordable(options):
    return float(options.get("step-size", 1)) / int(options.get("ptt-substeps", 1)) >= SHORTEST_ARC - 1e-9


def sampled(getter, count=None):
    """Balanced draws: every level of every axis equally often (to one), in an order that depends on the getter alone. Where
    arcs would be too short there are fewer of them per step."""
    count = SAMPLES[getter] if count is None else count
    draw = random.Random(f"track-study {getter} {count}")
    columns = {}
    for option, levels in AXES[getter].items():
        column = [levels[i % len(levels)] for i in range(count)]
        draw.shuffle(column)
        columns[option] = column
    found = []
    for i in range(count):
        options = {option: column[i] for option, column in columns.items() if column[i] is not None}
        while not is_affordable(options):
            levels = AXES[getter]["ptt-substeps"]
            options["ptt-substeps"] = levels[levels.index(options["ptt-substeps"]) - 1]
        found.append(options)
    return found


def first_candidates(getter, count=None):
    return unique(list(ANCHORS[getter]) + sampled(getter, count))


def unique(candidates):
    return list({candidate_name(options): options for options in candidates}.values())


def neighbours(getter, options):
    """One level up and one down along every axis. An option that stands at no level of its axis has none there."""
    found = []
    for option, levels in AXES[getter].items():
        if options.get(option) not in levels:
            continue
        place = levels.index(options.get(option))
        for other in (place - 1, place + 1):
            if not 0 <= other < len(levels):
                continue
            changed = {name: value for name, value in options.items() if name != option}
            if levels[other] is not None:
                changed[option] = levels[other]
            if is_affordable(changed):
                found.append(changed)
    return unique(found)
