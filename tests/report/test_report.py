"""`cingulum report` judged from outside: its PNG files by a decoder written here, its page by html.parser, its numbers by
nibabel and NumPy, its density map by brute force and by MRtrix3's tckmap.

CINGULUM names the program, CINGULUM_TEST_DATA the folder with real files (tests that need it are skipped without it).
"""

import base64
import html.parser
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib
from pathlib import Path

import nibabel as nib
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import suite  # noqa: E402  (beside the folder of the script)

PROGRAM = os.path.abspath(os.environ.get("CINGULUM", "build/bin/cingulum"))
DATA = os.environ.get("CINGULUM_TEST_DATA")


def run(*words, check=True):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CINGULUM")}
    environment["CINGULUM_NO_SYNC"] = "1"
    result = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, check=False, env=environment,
                            stdin=subprocess.DEVNULL, timeout=120)
    if check and result.returncode != 0:
        raise AssertionError(f"{words}: exit {result.returncode}: {result.stderr}")
    return result


def decode_png(data):
    """Pixels of an 8-bit RGB PNG, after the specification; every CRC is checked."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = [], 8
    while at < len(data):
        size, = struct.unpack(">I", data[at:at + 4])
        kind, content = data[at + 4:at + 8], data[at + 8:at + 8 + size]
        crc, = struct.unpack(">I", data[at + 8 + size:at + 12 + size])
        assert crc == zlib.crc32(kind + content), kind
        chunks.append((kind, content))
        at += 12 + size
    assert [kind for kind, _ in chunks] == [b"IHDR", b"IDAT", b"IEND"]
    width, height, depth, colour, *methods = struct.unpack(">IIBBBBB", chunks[0][1])
    assert (depth, colour, methods) == (8, 2, [0, 0, 0])
    rows = np.frombuffer(zlib.decompress(chunks[1][1]), np.uint8).reshape(height, 1 + 3 * width)
    picture = np.zeros((height + 1, 3 * width + 3), np.int64)  # one row and one pixel of zeros before
    for y in range(height):
        kind, row, above, own = rows[y, 0], rows[y, 1:].astype(np.int64), picture[y], picture[y + 1]
        if kind == 0:
            own[3:] = row
        elif kind == 2:
            own[3:] = (row + above[3:]) & 255
        elif kind == 1:
            for channel in range(3):
                own[3 + channel::3] = np.cumsum(row[channel::3]) & 255
        else:
            for x in range(3, 3 * width + 3):
                left, up, corner = int(own[x - 3]), int(above[x]), int(above[x - 3])
                if kind == 3:
                    guess = (left + up) // 2
                else:
                    assert kind == 4
                    estimate = left + up - corner
                    guess = min((abs(estimate - left), 0, left), (abs(estimate - up), 1, up),
                                (abs(estimate - corner), 2, corner))[2]
                own[x] = (row[x - 3] + guess) & 255
    return picture[1:, 3:].reshape(height, width, 3).astype(np.uint8)


class Page(html.parser.HTMLParser):
    """Checks that every element is closed in order and collects what a test asks for."""

    VOID = {"meta", "img", "br", "link", "input", "hr"}

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.attributes, self.texts, self.problems = [], [], [], [], []
        self.figures = {}
        self.feed(text)
        self.close()
        if self.open:
            self.problems.append(f"not closed: {self.open}")

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        named = dict(attrs)
        if "data-name" in named:
            self.figures[named["data-name"]] = named["data-value"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]

    def handle_endtag(self, tag):
        if not self.open or self.open[-1] != tag:
            self.problems.append(f"</{tag}> inside {self.open[-3:]}")
        else:
            self.open.pop()

    def handle_data(self, data):
        self.texts.append(data)

    def text(self):
        return " ".join(self.texts)


def random_walks(seed, count, box=20.0):
    rng = np.random.default_rng(seed)
    lines = []
    for _ in range(count):
        steps = rng.normal(size=(int(rng.integers(2, 60)), 3)) * 0.6 + rng.normal(size=3) * 0.5
        lines.append((rng.uniform(3, box - 3, 3) + np.cumsum(steps, 0)).astype(np.float32))
    return lines


def save(lines, path, affine=np.eye(4), shape=(20, 20, 20)):
    tractogram = nib.streamlines.Tractogram(lines, affine_to_rasmm=np.eye(4))
    if str(path).endswith(".trk"):
        header = {"voxel_to_rasmm": affine, "dimensions": np.array(shape, np.int16),
                  "voxel_sizes": np.linalg.norm(affine[:3, :3], axis=0).astype(np.float32),
                  "voxel_order": "".join(nib.aff2axcodes(affine))}
        nib.streamlines.save(nib.streamlines.TrkFile(tractogram, header=header), str(path))
    else:
        nib.streamlines.save(tractogram, str(path))


def lengths_of(lines):
    return np.array([np.linalg.norm(np.diff(line.astype(np.float64), axis=0), axis=1).sum() for line in lines])


class WithFolder(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = Path(self.temporary.name)
        self.addCleanup(self.temporary.cleanup)

    def report(self, tracks, *words):
        out = self.folder / "report.html"
        run("report", tracks, "--out", out, "--force", "--picture-size", 200, *words)
        return out.read_text(encoding="utf-8")


class Pictures(WithFolder):
    def test_pngs_decode_to_the_same_picture_as_in_the_page(self):
        save(random_walks(1, 80), self.folder / "a.trk")
        text = self.report(self.folder / "a.trk", "--pictures", self.folder / "pictures")
        names = {path.name for path in (self.folder / "pictures").iterdir()}
        sides = ["sagittal", "coronal", "axial"]
        self.assertEqual(names, {"views.png"} | {f"{kind}{side}.png" for side in sides
                                                  for kind in ("", "density-", "density-projection-")})
        embedded = [base64.b64decode(uri) for uri in re.findall(r'src="data:image/png;base64,([^"]*)"', text)]
        self.assertEqual(len(embedded), 9)
        in_order = [f"{kind}{side}.png" for kind in ("", "density-", "density-projection-") for side in sides]
        seen = set()
        for name, data in zip(in_order, embedded):
            self.assertEqual(data, (self.folder / "pictures" / name).read_bytes(), name)
            pixels = decode_png(data)
            self.assertGreater(int(pixels.max()), 150, name)
            seen.add(pixels.tobytes())
            if not name.startswith("density"):
                self.assertEqual(pixels.shape, (200, 200, 3))
                self.assertTrue((pixels[0, 0] == [11, 14, 20]).all())
        self.assertEqual(len(seen), 9)  # each shows something else
        views = decode_png((self.folder / "pictures" / "views.png").read_bytes())
        self.assertGreater(views.shape[1], 3 * 190)  # the three views side by side

    def test_one_straight_line_is_where_it_should_be_and_red(self):
        # From the left end to the right end of the head, in the front half: red, and in the upper half seen from above.
        line = np.stack([np.linspace(2, 18, 40), np.full(40, 14.0), np.full(40, 10.0)], 1).astype(np.float32)
        frame = np.array([[10, 2, 10], [10, 18, 10]], np.float32)  # spans the box along y
        save([line, frame], self.folder / "a.trk")
        self.report(self.folder / "a.trk", "--pictures", self.folder / "p")
        pixels = decode_png((self.folder / "p" / "axial.png").read_bytes()).astype(int)
        # 88 % of 200 pixels hold 16 mm: 11 pixels per mm; y = 14 is 4 mm above the middle.
        row = pixels[100 - 44 - 3:100 - 44 + 4, 30:90]
        brightest = row.max(axis=0)
        self.assertTrue((brightest[:, 0] > 120).all())
        self.assertTrue((brightest[:, 0] > 2 * brightest[:, 1]).all())
        column = pixels[120:160, 96:104].max(axis=1)  # the line along y is green
        self.assertTrue((column[:, 1] > 2 * column[:, 0]).all())

    def test_the_same_bytes_for_any_number_of_threads(self):
        save(random_walks(2, 200), self.folder / "a.tck")
        pages = [self.report(self.folder / "a.tck", "--threads", threads) for threads in (1, 2, 8)]
        self.assertEqual(Page(pages[0]).figures["streamlines"], "200")
        self.assertEqual(pages[0], pages[1])
        self.assertEqual(pages[0], pages[2])


class Numbers(WithFolder):
    def check_numbers(self, path, lines, figures, summary):
        lengths = lengths_of(lines)
        self.assertEqual(int(figures["streamlines"]), len(lines), path)
        self.assertEqual(int(figures["points"]), sum(map(len, lines)))
        np.testing.assert_allclose(float(figures["mean_length_mm"]), lengths.mean(), rtol=1e-6)
        np.testing.assert_allclose(float(figures["median_length_mm"]), np.median(lengths), rtol=1e-6)
        np.testing.assert_allclose([float(x) for x in figures["length_quartiles_mm"].split()],
                                   np.quantile(lengths, [0.25, 0.75]), rtol=1e-6)
        np.testing.assert_allclose(float(figures["total_length_mm"]), lengths.sum(), rtol=1e-6)
        histogram = summary["length_histogram"]
        edges = np.arange(len(histogram["counts"]) + 1) * histogram["bin_mm"]
        expected = np.histogram(lengths, edges)[0]
        # Lengths on an edge may fall on either side by rounding.
        self.assertLessEqual(np.abs(expected - histogram["counts"]).sum(), 2)
        self.assertEqual(sum(histogram["counts"]), len(lines))

    def test_ends_on_opposite_sides_and_any_crossing_of_the_midline_are_two_numbers(self):
        """One goes over, one goes over and back, one stays: at the middle of the grid and at another plane."""
        lines = [np.array(points, "f4") for points in ([[-5, 1, 1], [5, 1, 1]], [[-5, 1, 1], [5, 1, 1], [-4, 1, 1]],
                                                       [[2, 1, 1], [6, 1, 1]])]
        save(lines, self.folder / "m.trk")
        for midline, ends, anywhere in ((0, 1, 2), (4, 2, 3), (-4.5, 2, 2)):
            result = run("report", self.folder / "m.trk", "--out", self.folder / "m.html", "--force", "--json",
                         "--midline", midline, "--progress", "none")
            summary = json.loads(result.stdout)
            page = Page((self.folder / "m.html").read_text())
            self.assertEqual((summary["midline_mm"], summary["commissural"], summary["crossing_midline"]),
                             (midline, ends, anywhere))
            self.assertEqual((page.figures["commissural"], page.figures["crossing_midline"]), (str(ends), str(anywhere)))
        for text in ("ends on opposite sides of the midline", "cross the midline anywhere"):
            self.assertIn(text, (self.folder / "m.html").read_text())

    def test_numbers_equal_nibabel_on_random_walks_in_every_format(self):
        lines = random_walks(3, 150)
        save(lines, self.folder / "a.trk")
        save(lines, self.folder / "a.tck")
        run("convert", self.folder / "a.trk", self.folder / "a.trx")
        for name in ("a.trk", "a.tck", "a.trx"):
            out = self.folder / "numbers.html"
            result = run("report", self.folder / name, "--out", out, "--force", "--json", "--picture-size", 64)
            read = lines if name == "a.trx" else list(nib.streamlines.load(self.folder / name).streamlines)
            page = Page(out.read_text(encoding="utf-8"))
            self.assertEqual(page.problems, [])
            self.check_numbers(name, read, page.figures, json.loads(result.stdout))

    @suite.needs("data")
    def test_numbers_equal_nibabel_on_real_files(self):
        for name in ("hardi-lr-superiorfrontal.trk", "mrtrix_sift_phantom.tck", "tract.SLF1_R.tck", "tract.IFOF_R.trk"):
            path = Path(DATA) / "tractograms" / name
            out = self.folder / "numbers.html"
            result = run("report", path, "--out", out, "--force", "--json", "--picture-size", 64)
            page = Page(out.read_text(encoding="utf-8"))
            self.assertEqual(page.problems, [])
            self.check_numbers(name, list(nib.streamlines.load(path).streamlines), page.figures,
                               json.loads(result.stdout))

    def test_end_reasons_come_from_the_sidecar_where_the_file_has_none(self):
        save(random_walks(4, 5), self.folder / "a.tck")
        (self.folder / "a.tck.json").write_text(json.dumps(
            {"result": {"seeds": 12, "end_reasons": {"none": 0, "stop_map": 7, "no_direction": 3}},
             "arguments": {"options": {"dg": "prob", "step-size": "0.5vox"}},
             "inputs": [{"option": "data", "path": "dwi.nii.gz", "xxh3_128": "ab12"}], "run": {"device": "cpu"}}))
        page = Page(self.report(self.folder / "a.tck"))
        self.assertEqual(page.figures["seeds"], "12")
        for words in ("stop map", "no direction", "step-size", "0.5vox", "dwi.nii.gz", "data ab12",
                      "cingulum track --from"):
            self.assertIn(words, page.text())


class Density(WithFolder):
    affine = np.array([[-1.8, 0.3, 0.1, 20], [0.2, 1.5, -0.4, 2], [0.05, 0.5, 2.9, -1], [0, 0, 0, 1.0]])
    shape = (11, 12, 7)

    def density(self, lines, affine, shape):
        save(lines, self.folder / "a.tck")
        nib.save(nib.Nifti1Image(np.zeros(shape, np.float32), affine), self.folder / "grid.nii.gz")
        self.report(self.folder / "a.tck", "--anatomy", self.folder / "grid.nii.gz", "--density",
                    self.folder / "density.nii.gz")
        image = nib.load(self.folder / "density.nii.gz")
        np.testing.assert_allclose(image.affine, affine, atol=1e-5)
        return np.asarray(image.dataobj)

    def test_counts_equal_brute_force_on_an_oblique_grid(self):
        lines = random_walks(5, 90)
        counted = self.density(lines, self.affine, self.shape)
        inverse = np.linalg.inv(nib.load(self.folder / "grid.nii.gz").affine)
        lines = list(nib.streamlines.load(self.folder / "a.tck").streamlines)
        centres = np.stack(np.meshgrid(*map(np.arange, self.shape), indexing="ij"), -1).reshape(-1, 3)
        expected = np.zeros(len(centres), int)
        doubtful = np.zeros(len(centres), bool)
        for line in lines:
            points = nib.affines.apply_affine(inverse, line.astype(np.float64))
            visited = np.zeros(len(centres), bool)
            for a, b in zip(points[:-1], points[1:]):
                # The part of the segment inside each voxel's box, by slabs.
                with np.errstate(divide="ignore", invalid="ignore"):
                    first = (centres - 0.5 - a) / (b - a)
                    second = (centres + 0.5 - a) / (b - a)
                inside = np.minimum(np.maximum(first, second).min(1), 1) - np.maximum(
                    np.minimum(first, second).max(1), 0)
                visited |= inside > 0
                doubtful |= np.abs(inside) < 1e-9  # meets an edge, within the rounding of the affine
            expected += visited
        expected, doubtful = expected.reshape(self.shape), doubtful.reshape(self.shape)
        self.assertLess(doubtful.sum(), 5)
        np.testing.assert_array_equal(counted[~doubtful], expected[~doubtful])
        self.assertGreater(expected.sum(), 500)

    @suite.needs("mrtrix")
    def test_visited_voxels_equal_mrtrix(self):
        """tckmap -precise gives the length of streamlines in each voxel: above zero exactly where we count. It joins
        points by splines, so the streamlines are straight. Its plain map counts streamlines along resampled points (50
        to a step here) and may miss a voxel that is only grazed: it never exceeds ours."""
        affine = np.diag([1.5, 1.5, 2.0, 1.0])
        shape = (16, 16, 12)
        rng = np.random.default_rng(6)
        ends = rng.uniform(0.2, 21.3, (100, 2, 3))
        lines = [np.linspace(a, b, 12).astype(np.float32) for a, b in ends]
        counted = self.density(lines, affine, shape)

        def tckmap(*words):
            out = self.folder / "map.nii"
            subprocess.run(["tckmap", self.folder / "a.tck", out, "-template", self.folder / "grid.nii.gz", "-force",
                            "-quiet", *words], check=True, capture_output=True)
            return np.asarray(nib.load(out).dataobj)

        length_map = tckmap("-precise")
        # Where the length is a rounding error the answer may be either.
        self.assertLess(np.count_nonzero((length_map > 0) & (length_map < 1e-3)), 10)
        np.testing.assert_array_equal(counted[length_map > 1e-3] > 0, True)
        self.assertLess(np.count_nonzero(counted[length_map == 0]), 3)
        plain = tckmap("-upsample", "50")
        self.assertTrue((plain <= counted).all())
        self.assertGreater(plain.sum(), 0.97 * counted.sum())


class PageItself(WithFolder):
    def hostile_names(self):
        return ['a"><script>alert(1)<script>.tck', "it's & <b>bold<b>.tck", "line\nend.tck"]

    def test_the_page_is_well_formed_and_needs_nothing_else(self):
        save(random_walks(7, 30), self.folder / "a.trk")
        text = self.report(self.folder / "a.trk")
        page = Page(text)
        self.assertEqual(page.problems, [])
        self.assertTrue(text.startswith("<!DOCTYPE html>"))
        for tag in ("script", "link", "iframe", "object", "base"):
            self.assertNotIn(tag, page.tags)
        for tag, name, value in page.attributes:
            if name in ("src", "href", "srcset", "data", "action", "poster"):
                self.assertTrue(value.startswith("data:image/png;base64,"), (tag, name, value[:60]))
            self.assertFalse(name.startswith("on"), (tag, name))
        without_pictures = re.sub(r"data:image/png;base64,[^\"]*", "", text)
        for forbidden in ("http:", "https:", "file:", "//", "@import", "url("):
            self.assertNotIn(forbidden, without_pictures.replace("</", ""))
        self.assertIn("prefers-color-scheme: dark", text)
        self.assertIn("@media print", text)
        self.assertEqual(sum(1 for tag, name, _ in page.attributes if (tag, name) == ("img", "alt")), 9)

    def test_hostile_names_and_parameters_stay_text(self):
        lines = random_walks(8, 5)
        save(lines, self.folder / "a.tck")
        tags = Page(self.report(self.folder / "a.tck")).tags
        for name in self.hostile_names():
            hostile = self.folder / name.replace("/", "_")
            shutil.copy(self.folder / "a.tck", hostile)
            page = Page(self.report(hostile))
            self.assertEqual(page.problems, [], name)
            self.assertEqual(page.tags, tags, name)
            self.assertIn(name.replace("\n", " "), page.text())
        evil = '</style></script><script>alert(1)</script><img src=x onerror="alert(2)">'
        (self.folder / "a.tck.json").write_text(json.dumps(
            {"arguments": {"options": {evil: evil}}, evil: {evil: [evil]}, "inputs": [{"option": evil, "path": evil}],
             "result": {"end_reasons": {evil: 3}}, "run": {}}))
        text = self.report(self.folder / "a.tck")
        page = Page(text)
        self.assertEqual(page.problems, [])
        self.assertNotIn("script", page.tags)
        self.assertEqual(page.tags.count("img"), 9)
        self.assertNotIn("<script", text)
        self.assertIn(evil, page.text())

    def test_names_that_are_no_utf8_are_shown(self):
        save(random_walks(9, 3), self.folder / "a.tck")
        name = os.fsencode(self.folder) + b"/\xff\xfe.tck"
        shutil.copy(self.folder / "a.tck", name)
        out = self.folder / "report.html"
        result = subprocess.run([PROGRAM.encode(), b"report", name, b"--out", os.fsencode(out)], capture_output=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("\ufffd\ufffd.tck", out.read_text(encoding="utf-8"))

    def test_an_empty_tractogram_has_a_page(self):
        for name in ("empty.tck", "empty.trk"):
            save([], self.folder / name)
            page = Page(self.report(self.folder / name))
            self.assertEqual(page.problems, [])
            self.assertEqual(page.figures["streamlines"], "0")
            self.assertIn("There is no streamline to draw.", page.text())

    def test_outputs_are_refused_without_force(self):
        save(random_walks(10, 3), self.folder / "a.tck")
        self.report(self.folder / "a.tck")
        page = (self.folder / "report.html").read_bytes()
        save(random_walks(11, 4), self.folder / "a.tck")
        result = run("report", self.folder / "a.tck", "--out", self.folder / "report.html", check=False)
        self.assertEqual(result.returncode, 2)
        self.assertIn("report.html: it exists; use --force", result.stderr)
        self.assertEqual((self.folder / "report.html").read_bytes(), page)
        self.assertNotEqual(self.report(self.folder / "a.tck").encode(), page)

    def test_a_broken_tractogram_is_an_error_and_leaves_no_page(self):
        save(random_walks(11, 20), self.folder / "a.trk")
        whole = (self.folder / "a.trk").read_bytes()
        (self.folder / "broken.trk").write_bytes(whole[:-7])
        out = self.folder / "none.html"
        result = run("report", self.folder / "broken.trk", "--out", out, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn("broken.trk", result.stderr)
        self.assertFalse(out.exists())


class Score(WithFolder):
    def test_the_score_of_the_page_is_that_of_the_score_verb(self):
        phantom = self.folder / "phantom"
        run("phantom", "--preset", "crossing", "--out", phantom, "--voxel-size", "3", "--directions", 12, "--b-values",
            "1000", "--truth-fibres", 40)
        out = self.folder / "report.html"
        summary = json.loads(run("report", phantom / "truth.trx", "--truth", phantom, "--out", out, "--json",
                                 "--picture-size", 64).stdout)
        score = json.loads(run("score", phantom / "truth.trx", "--truth", phantom, "--json").stdout)
        for name in ("valid", "invalid", "no_connection", "overlap", "overreach", "f1"):
            self.assertEqual(summary["score"][name]["value"], score[name], name)
        page = Page(out.read_text(encoding="utf-8"))
        self.assertEqual(page.problems, [])
        self.assertIn(f"{100 * score['valid']:.1f} %", page.text())
        for bundle in score["bundles"]:
            self.assertIn(bundle, page.text())


if __name__ == "__main__":
    suite.main()
