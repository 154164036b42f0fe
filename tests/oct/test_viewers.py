"""A volume of `cingulum oct run` in what pages in a browser read OME-Zarr with: every level in zarrita, and neuroglancer's own
page in Chromium, which shows the plane that it is asked for. Part of `make test-web`.

CINGULUM names the program, CINGULUM_TEST_NODE_PACKAGES the packages of tests/web, CINGULUM_TEST_NEUROGLANCER the folder of
neuroglancer's Python package, which serves the page (tools/bootstrap ... web).
"""
import functools
import hashlib
import http.server
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest

import numpy as np
import zarr

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
import suite  # noqa: E402  (beside the folder of the script)

PROGRAM = os.path.abspath(os.environ.get("CINGULUM", "build/bin/cingulum"))
PACKAGES = pathlib.Path(os.environ.get("CINGULUM_TEST_NODE_PACKAGES", ""))


class RangeHandler(http.server.SimpleHTTPRequestHandler):
    """Files with byte ranges, which shards are read by, for pages from anywhere."""

    def send_head(self):
        path = pathlib.Path(self.translate_path(self.path))
        wanted = self.headers.get("Range")
        if not wanted or not path.is_file():
            return super().send_head()
        size = path.stat().st_size
        first, last = wanted.removeprefix("bytes=").split("-")
        begin, end = (int(first), min(int(last or size - 1), size - 1)) if first else (max(0, size - int(last)), size - 1)
        if begin > end:
            self.send_error(416)
            return None
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {begin}-{end}/{size}")
        self.send_header("Content-Length", str(end - begin + 1))
        self.end_headers()
        if self.command != "HEAD":
            with open(path, "rb") as file:
                file.seek(begin)
                self.wfile.write(file.read(end - begin + 1))
        return None

    def end_headers(self):
        self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Access-Control-Allow-Headers", "*")
        self.send_header("Accept-Ranges", "bytes")
        super().end_headers()

    def log_message(self, *_):
        pass


def served(folder):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(RangeHandler, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_address[1]}"


def blocks(image, count=8):
    """Means over count x count blocks."""
    rows, columns = (np.linspace(0, n, count + 1).round().astype(int) for n in image.shape)
    return np.array([[image[a:b, c:d].mean() for c, d in zip(columns, columns[1:])] for a, b in zip(rows, rows[1:])])


@suite.needs("zarrita")
class Viewers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory(prefix="cingulum-test-")
        cls.addClassCleanup(holder.cleanup)
        cls.folder = pathlib.Path(holder.name)
        for words in (("simulate", "--grid", "2,3", "--tile", "48,80,80", "--surface", "8", "--slices", "2", "--interval", "20",
                       "--speckle", "4", "--seed", "3", "--out", cls.folder / "tiles"),
                      ("run", cls.folder / "tiles", "--axial-step", "3.5", "--device", "cpu", "--pyramid", "3", "--out",
                       cls.folder / "volume.ome.zarr")):
            done = subprocess.run([PROGRAM, "oct", *map(str, words), "--quiet"], capture_output=True, text=True, check=False)
            if done.returncode:
                raise AssertionError(done.stderr)
        cls.group = zarr.open_group(str(cls.folder / "volume.ome.zarr"), mode="r")

    def test_zarrita_reads_every_level(self):
        script = (ROOT / "tests/zarr/read_with_zarrita.mjs").read_text()
        levels = sorted(name for name, _ in self.group.arrays())
        self.assertEqual(len(levels), 3)
        done = subprocess.run([suite.node_program(), "--input-type=module", "-e", script, self.folder / "volume.ome.zarr", *levels],
                              capture_output=True, text=True, check=False, cwd=PACKAGES)
        self.assertEqual(done.returncode, 0, done.stderr)
        for level, line in zip(levels, done.stdout.splitlines(), strict=True):
            found = json.loads(line)
            values = self.group[level][:]
            self.assertEqual(found["shape"], list(values.shape))
            self.assertEqual(found["digest"], hashlib.sha256(np.ascontiguousarray(values, dtype="<f4").tobytes()).hexdigest())

    @suite.needs("chromium", "neuroglancer")
    def test_neuroglancer_shows_a_plane(self):
        sys.path.append(os.environ["CINGULUM_TEST_NEUROGLANCER"])
        import neuroglancer

        values = self.group["0"][:]
        plane = values.shape[0] // 2
        white = float(np.percentile(values[plane], 99))
        server, url = served(self.folder)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        scale = self.group.attrs["ome"]["multiscales"][0]["datasets"][0]["coordinateTransformations"][0]["scale"]
        viewer = neuroglancer.Viewer()
        self.addCleanup(neuroglancer.server.stop)
        with viewer.txn() as state:
            state.dimensions = neuroglancer.CoordinateSpace(names=["x", "y", "z"], units=["um"] * 3, scales=scale[::-1])
            state.position = [values.shape[2] / 2, values.shape[1] / 2, plane]  # voxels' centres are whole numbers
            state.layers["volume"] = neuroglancer.ImageLayer(source=f"zarr3://{url}/volume.ome.zarr/",
                                                             shader_controls={"normalized": {"range": [0, white]}}, opacity=1)
            state.layout = "xy"
            state.show_axis_lines = state.show_scale_bar = state.show_default_annotations = False
            state.cross_section_background_color = "#000000"
        done = subprocess.run([suite.node_program(), ROOT / "tests/web/open_in_neuroglancer.mjs", viewer.get_viewer_url()],
                              capture_output=True, text=True, check=False, timeout=240)
        self.assertEqual(done.returncode, 0, done.stdout[-3000:] + done.stderr[-3000:])
        found = json.loads(done.stdout)
        self.assertEqual(found["complaints"], [])
        shown = np.array(found["grey"], dtype=float).reshape(found["rows"], found["columns"])
        lit = np.argwhere(shown > 0)
        self.assertGreater(len(lit), 0.2 * shown.size)
        (top, left), (bottom, right) = lit.min(0), lit.max(0) + 1
        expected = blocks(np.clip(values[plane] / white, 0, 1))

        def likeness(image):
            return np.corrcoef(blocks(image).ravel(), expected.ravel())[0, 1]

        picture = shown[top:bottom, left:right]
        self.assertGreater(likeness(picture), 0.95)
        # Turned or mirrored it would not look like this, nor would another plane.
        self.assertLess(max(likeness(picture[::-1]), likeness(picture[:, ::-1]), likeness(values[plane - 12])), 0.8)


if __name__ == "__main__":
    suite.main()
