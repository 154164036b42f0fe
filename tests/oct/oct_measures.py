"""A volume of `cingulum oct run` against the simulated truth, by eight measures. NumPy, SciPy and zarr-python alone.

The truth is placed by one rigid transform and one affine map of values; what is then left counts:
  displacement      of blocks of 32 voxels, median and 99th percentile, in voxels
  slice to slice    rms shift in pixels, angle in degrees, depth in planes, of neighbouring slices against the truth
  seam gradient     |d/dx log| near edges and middles of overlaps over that inside tiles, over the same ratio in the truth
  seam step         signed step along each seam, rms, over that along lines inside tiles
  shading           what is left, folded by tile, relative rms
  profile           largest deviation of a plane's mean inside a slice from the truth's
  levels            largest deviation of a slice's level from the mean of all
  zeros             voxels inside the tissue that hold nothing

    python oct_measures.py VOLUME.ome.zarr SIMULATION_FOLDER [--json]
"""

import functools
import json
import sys
from pathlib import Path

import numpy as np
import scipy.ndimage as ndi
import scipy.signal
import zarr

BOUNDS = {"displacement_median": 0.5, "displacement_p99": 1.5, "slice_shift_px": 0.6, "slice_angle_deg": 0.15,
          "slice_planes": 0.6, "seam_gradient": 1.1, "seam_step": 1.3, "shading": 0.03, "profile": 0.05,
          "levels": 0.05, "zeros": 0}
BLOCK = 32
MARGIN = 4  # voxels at the borders that do not count
SURFACE = 5  # planes under the surface that do not count


def peak_of(values):
    """The maximum of an odd cube of correlations, by a parabola along each axis; None at its border."""
    at = np.array(np.unravel_index(np.argmax(values), values.shape))
    shift = np.zeros(3)
    for axis in range(3):
        if at[axis] in (0, values.shape[axis] - 1):
            return None
        low, mid, high = (values[tuple(at + step * (np.arange(3) == axis))] for step in (-1, 0, 1))
        bend = low - 2 * mid + high
        shift[axis] = at[axis] + (0.5 * (low - high) / bend if bend < 0 else 0)
    return shift - (np.array(values.shape) - 1) / 2


def correlate(block, truth, origin, reach):
    """Displacement of a block of the volume whose first voxel should lie at `origin` of the truth."""
    size = np.array(block.shape)
    low = origin - reach
    high = origin + size + reach
    if (low < 0).any() or (high > truth.shape).any():
        return None
    window = truth[tuple(slice(a, b) for a, b in zip(low, high))]
    window = window - window.mean()
    block = block - block.mean()

    def sums(values, by):
        return scipy.signal.fftconvolve(values, by[::-1, ::-1, ::-1], mode="valid")

    ones = np.ones(block.shape)
    spread = sums(window**2, ones) - sums(window, ones)**2 / ones.size
    return peak_of(sums(window, block) / np.sqrt((block**2).sum() * spread))


def log_smooth(volume, sigma):
    positive = np.where(volume > 0, volume, np.nan)
    floor = np.nanpercentile(positive, 0.1)
    return ndi.gaussian_filter(np.log(np.maximum(volume, floor)), sigma)


def rigid_fit(points, moved):
    """Rotation and translation that bring points to moved (Kabsch)."""
    a, b = points.mean(0), moved.mean(0)
    u, _, v = np.linalg.svd((points - a).T @ (moved - b))
    turn = v.T @ np.diag([1, 1, np.sign(np.linalg.det(v.T @ u.T))]) @ u.T
    return turn, b - turn @ a


def plane_range(one, number, planes, first):
    """Planes of the volume that a slice reaches, without those left out of its top."""
    low = np.ceil(one["start_plane"] + (first if number else 0) - 1e-6)
    return int(low), int(np.floor(one["start_plane"] + planes - 1 + 1e-6)) + 1


class Comparison:
    def __init__(self, volume_path, folder):
        self.volume = np.asarray(zarr.open_group(str(volume_path), mode="r")["0"][:], dtype=np.float64)
        self.truth = np.asarray(zarr.open_group(str(Path(folder) / "truth.ome.zarr"), mode="r")["0"][:],
                                dtype=np.float64)
        self.scene = json.loads((Path(folder) / "truth.json").read_text())
        sidecar = Path(str(volume_path) + ".json")
        self.result = json.loads(sidecar.read_text())["result"]
        self.parameters = self.scene["parameters"]
        self.smooth = log_smooth(self.volume, 1.0)
        self.smooth_truth = log_smooth(self.truth, 1.0)
        self.owners = self.owned_planes()
        self.find_start()

    def owned_planes(self):
        """First and last plane of the volume that each slice alone shows."""
        slices = self.result["stack"]
        planes = self.result["tile_in_slice"][0]
        first = self.result["first_kept_plane"]
        ranges = []
        for i, one in enumerate(slices):
            low, high = plane_range(one, i, planes, first)
            if i:
                low = max(low, plane_range(slices[i - 1], i - 1, planes, first)[1])
            else:
                low = max(low, SURFACE)
            if i + 1 < len(slices):
                high = min(high, plane_range(slices[i + 1], i + 1, planes, first)[0])
            else:
                high = min(high, round(one["start_plane"]) + self.parameters["interval_planes"])
            ranges.append((low, high))
        return ranges

    def find_start(self):
        """A whole-voxel place of the volume in the truth: by what the run says of its first slice, then by correlation."""
        one = self.result["stack"][0]
        tiles = [tile for tile in self.scene["tiles"] if tile["slice"] == 0]
        corner = np.min([tile["place_px"] for tile in tiles], axis=0)
        place = np.array(one["place_px"]) + one["shift_px"]
        start = np.array([self.result["slices"][0]["first_plane"], *(corner - place)])
        self.start = np.round(start).astype(int)
        middle = np.array(self.volume.shape) // 2
        low, high = self.owners[len(self.owners) // 2]
        size = np.array([min(24, high - low), 64, 64])
        origin = np.array([low, *(middle - size // 2)[1:]])
        block = self.smooth[tuple(slice(a, a + n) for a, n in zip(origin, size))]
        found = correlate(block, self.smooth_truth, origin + self.start, np.array([6, 6, 6]))
        assert found is not None, "the volume does not look like the truth"
        self.start = self.start + np.round(found).astype(int)

    def blocks(self, low, high, depth):
        """Centres of blocks and their displacement from the truth at `start`."""
        centres, moved = [], []
        valid = self.volume > 0
        for z in range(low, high - depth + 1, depth):
            for y in range(MARGIN, self.volume.shape[1] - BLOCK - MARGIN + 1, BLOCK):
                for x in range(MARGIN, self.volume.shape[2] - BLOCK - MARGIN + 1, BLOCK):
                    at = (slice(z, z + depth), slice(y, y + BLOCK), slice(x, x + BLOCK))
                    if not valid[at].all():
                        continue
                    origin = np.array([z, y, x])
                    found = correlate(self.smooth[at], self.smooth_truth, origin + self.start, np.array([3, 3, 3]))
                    if found is None:
                        continue
                    centres.append(origin + (np.array([depth, BLOCK, BLOCK]) - 1) / 2)
                    moved.append(centres[-1] + found)
        return np.array(centres), np.array(moved)

    def displacement(self):
        top = max(SURFACE, self.owners[0][0])
        bottom = self.owners[-1][1]
        centres, moved = self.blocks(top, bottom, BLOCK)
        turn, shift = rigid_fit(centres, moved)
        self.turn, self.shift = turn, shift
        left = np.linalg.norm(moved - (centres @ turn.T + shift), axis=1)
        return {"displacement_median": np.median(left), "displacement_p99": np.percentile(left, 99),
                "blocks": len(left)}

    def slice_to_slice(self):
        rows = []
        for low, high in self.owners:
            centres, moved = self.blocks(low, high, high - low)
            left = moved - (centres @ self.turn.T + self.shift)
            middle = centres.mean(0)
            y, x = (centres - middle)[:, 1], (centres - middle)[:, 2]
            # A turn by w moves (y, x) by (-w x, w y).
            w = (left[:, 2] * y - left[:, 1] * x).sum() / (y**2 + x**2).sum()
            rows.append([*np.median(left, axis=0), np.degrees(w)])
        steps = np.diff(np.array(rows), axis=0)
        return {"slice_shift_px": np.sqrt((steps[:, 1:3]**2).sum(1).mean()),
                "slice_angle_deg": np.sqrt((steps[:, 3]**2).mean()), "slice_planes": np.sqrt((steps[:, 0]**2).mean())}

    def in_truth(self, z, y, x):
        points = np.stack([np.broadcast_to(v, np.broadcast(z, y, x).shape) for v in (z, y, x)], -1).astype(float)
        return points @ self.turn.T + self.shift + self.start

    @functools.lru_cache(maxsize=None)
    def truth_plane(self, z):
        """The truth where a plane of the volume lies."""
        y, x = np.meshgrid(*[np.arange(n) for n in self.volume.shape[1:]], indexing="ij")
        return ndi.map_coordinates(self.truth, np.moveaxis(self.in_truth(z, y, x), -1, 0), order=1, mode="nearest")

    @functools.lru_cache(maxsize=None)
    def slice_images(self, number):
        """Mean over the planes that a slice alone owns, of the volume and of the truth there, and each pixel's place in
        the plane of the slice."""
        low, high = self.owners[number]
        y, x = np.meshgrid(*[np.arange(n) for n in self.volume.shape[1:]], indexing="ij")
        image = self.volume[low:high].mean(0)
        planes = [self.truth_plane(z) for z in range(low, high)]
        truth = np.mean(planes, axis=0)
        one = self.scene["slices"][number]
        places = self.in_truth((low + high - 1) / 2, y, x)[..., 1:]
        middle = np.array(self.scene["extent_px"]) / 2
        angle = np.radians(one["rotation_deg"])
        rest = places - middle - one["shift_px"]
        back = np.stack([np.cos(angle) * rest[..., 0] + np.sin(angle) * rest[..., 1],
                         -np.sin(angle) * rest[..., 0] + np.cos(angle) * rest[..., 1]], -1) + middle
        return image, truth, back

    def inside(self, image):
        return ndi.binary_erosion(image > 0, iterations=MARGIN, border_value=0)

    def seams(self):
        """Gradient and signed step at seams, against lines inside tiles."""
        near, far, near_truth, far_truth, steps, plain = [], [], [], [], [], []
        size = self.parameters["tile"][1:]
        for number in range(len(self.owners)):
            image, truth, places = self.slice_images(number)
            good = self.inside(image)
            tiles = [tile for tile in self.scene["tiles"] if tile["slice"] == number and not tile["missing"]]
            logs = [ndi.gaussian_filter(np.log(np.maximum(values, values[good].min())), 1) for values in (image, truth)]
            for axis in (0, 1):
                lines = self.lines_of(tiles, axis, size)
                along = 1 - axis
                distance = np.full(image.shape, np.inf)
                for at, begin, end, _ in lines:
                    span = (places[..., along] >= begin) & (places[..., along] <= end)
                    distance = np.where(span, np.minimum(distance, np.abs(places[..., axis] - at)), distance)
                slopes = [np.abs(np.gradient(values, axis=axis)) for values in logs]
                close, away = good & (distance <= 2), good & (distance > 6)
                near.append(slopes[0][close].mean())
                far.append(slopes[0][away].mean())
                near_truth.append(slopes[1][close].mean())
                far_truth.append(slopes[1][away].mean())
                left = logs[0] - logs[1]
                for at, begin, end, seam in lines + self.plain_lines(tiles, axis, size):
                    offset = places[..., axis] - at
                    span = good & (places[..., along] >= begin) & (places[..., along] <= end)
                    below, above = span & (offset < -0.5) & (offset > -4.5), span & (offset > 0.5) & (offset < 4.5)
                    if min(below.sum(), above.sum()) < 60:
                        continue
                    (steps if seam else plain).append(left[above].mean() - left[below].mean())
        ratio = (np.mean(near) / np.mean(far)) / (np.mean(near_truth) / np.mean(far_truth))
        rms = lambda values: np.sqrt(np.mean(np.square(values)))
        return {"seam_gradient": ratio, "seam_step": rms(steps) / rms(plain), "seams": len(steps), "lines": len(plain)}

    @staticmethod
    def lines_of(tiles, axis, size):
        """Edges of tiles inside the mosaic and middles of overlaps: place, span, and that they are seams."""
        lines = []
        key = ("row", "column")[axis]
        other = ("row", "column")[1 - axis]
        by_index = {(tile["row"], tile["column"]): tile for tile in tiles}
        for tile in tiles:
            after = by_index.get((tile["row"] + (axis == 0), tile["column"] + (axis == 1)))
            if after is None:
                continue
            begin = max(tile["place_px"][1 - axis], after["place_px"][1 - axis])
            end = min(tile["place_px"][1 - axis], after["place_px"][1 - axis]) + size[1 - axis] - 1
            first, last = after["place_px"][axis], tile["place_px"][axis] + size[axis] - 1
            for at in (first, (first + last) / 2, last):
                lines.append((at, begin, end, True))
            assert tile[other] == after[other] and tile[key] + 1 == after[key]
        return lines

    @staticmethod
    def plain_lines(tiles, axis, size):
        lines = []
        for tile in tiles:
            begin = tile["place_px"][1 - axis]
            for share in (0.35, 0.5, 0.65):
                lines.append((tile["place_px"][axis] + share * size[axis], begin, begin + size[1 - axis] - 1, False))
        return lines

    def values(self):
        """Shading, profile and levels, after one affine map of values."""
        rows, columns = self.parameters["tile"][1:]
        images = [self.slice_images(number) for number in range(len(self.owners))]
        good = [self.inside(image) for image, _, _ in images]
        a = np.concatenate([image[mask] for (image, _, _), mask in zip(images, good)])
        b = np.concatenate([truth[mask] for (_, truth, _), mask in zip(images, good)])
        gain, offset = np.polyfit(b, a, 1)
        fold, count = np.zeros((rows, columns)), np.zeros((rows, columns))
        levels, worst = [], 0.0
        for number, ((image, truth, places), mask) in enumerate(zip(images, good)):
            ratio = image / (gain * truth + offset)
            levels.append(ratio[mask].mean())
            for tile in self.scene["tiles"]:
                if tile["slice"] != number or tile["missing"]:
                    continue
                inside = np.round(places - tile["place_px"]).astype(int)
                held = mask & (inside >= 0).all(-1) & (inside[..., 0] < rows) & (inside[..., 1] < columns)
                np.add.at(fold, (inside[held][:, 0], inside[held][:, 1]), ratio[held] / levels[-1])
                np.add.at(count, (inside[held][:, 0], inside[held][:, 1]), 1)
            low, high = self.owners[number]
            plane_ratio = []
            for z in range(low, high):
                expected = self.truth_plane(z)
                plane_ratio.append(self.volume[z][mask].mean() / (gain * expected[mask] + offset).mean())
            worst = max(worst, np.abs(np.array(plane_ratio) / np.mean(plane_ratio) - 1).max())
        shading = ndi.gaussian_filter(fold, 2) / np.maximum(ndi.gaussian_filter(count, 2), 1e-9)
        shading = shading[count > 0]
        levels = np.array(levels) / np.mean(levels)
        return {"shading": shading.std() / shading.mean(), "profile": worst, "levels": np.abs(levels - 1).max(),
                "gain": gain, "offset": offset}

    def zeros(self):
        """In the planes of each slice: what its tiles cover, without the borders."""
        count = 0
        size = np.array(self.parameters["tile"][1:])
        planes, first = self.result["tile_in_slice"][0], self.result["first_kept_plane"]
        for number, one in enumerate(self.result["stack"]):
            _, _, places = self.slice_images(number)
            covered = np.zeros(places.shape[:2], dtype=bool)
            for tile in self.scene["tiles"]:
                if tile["slice"] == number and not tile["missing"]:
                    inside = places - tile["place_px"]
                    covered |= (inside >= 0).all(-1) & (inside <= size - 1).all(-1)
            covered = ndi.binary_erosion(covered, iterations=MARGIN, border_value=0)
            low, high = plane_range(one, number, planes, first)
            low, high = max(low, SURFACE), min(high, self.owners[-1][1])
            count += int((self.volume[low:high][:, covered] == 0).sum())
        return {"zeros": count}

    def all(self):
        measures = {}
        for part in (self.displacement, self.slice_to_slice, self.seams, self.values, self.zeros):
            measures.update(part())
        return {name: float(value) for name, value in measures.items()}


def compare(volume, folder):
    return Comparison(volume, folder).all()


def main():
    measures = compare(sys.argv[1], sys.argv[2])
    failed = [name for name, bound in BOUNDS.items() if not measures[name] <= bound]
    if "--json" in sys.argv:
        print(json.dumps({"measures": measures, "bounds": BOUNDS, "failed": failed}, indent=1))
    else:
        for name, bound in BOUNDS.items():
            print(f"{name:22} {measures[name]:10.4f}   at most {bound}{'   FAILED' if name in failed else ''}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
