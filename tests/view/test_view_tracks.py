"""What `cingulum view` sends is what `cingulum track` writes: streamlines over the socket, the saved TRX and the TRX of the
command that the page shows, byte for byte, for every getter and on every device that is here; newest wins, two pages, pages
that go away, options that cannot be; scores; and what is shown of files and slices."""
import json
import os
import pathlib
import shlex
import signal
import struct
import subprocess
import tempfile
import time
import unittest
import unittest.mock
import zipfile

from viewer import BATCH, END, ERROR, LONG, PROGRAM, Viewer, messages_of_file, read_batch

import suite


def run(*words, **more):
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, check=True, timeout=300, **more)


def trx_parts(data, folder):
    """Bytes of positions and numbers of points of a TRX."""
    path = pathlib.Path(folder) / "read.trx"
    path.write_bytes(data)
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        positions = archive.read(next(name for name in names if name.startswith("positions")))
        offsets_name = next(name for name in names if name.startswith("offsets"))
        offsets = archive.read(offsets_name)
    width = 8 if offsets_name.endswith("64") else 4
    return positions, [int.from_bytes(offsets[i:i + width], "little") for i in range(0, len(offsets), width)]


def joined(batches):
    positions = b"".join(batch["positions"] for batch in batches)
    offsets, base = [0], 0
    for batch in batches:
        offsets += [base + offset for offset in batch["offsets"][1:]]
        base = offsets[-1]
    return positions, offsets


def need_device(test, name):
    devices = json.loads(run("devices", "--json").stdout)["devices"]
    if any(device["backend"] == name for device in devices):
        return
    if suite.device_is_required(name):
        test.fail(f"there is no device of {name}")
    test.skipTest(f"there is no device of {name}")


class Data(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.holder.name)
        run("phantom", "--preset", "crossing", "--voxel-size", "2.5", "--out", cls.folder / "phantom")
        cls.series = [cls.folder / "phantom/dwi.nii.gz", "--mask", cls.folder / "phantom/mask.nii.gz", "--cache-dir", cls.folder / "fits"]

    @classmethod
    def tearDownClass(cls):
        cls.holder.cleanup()

    def check_equal(self, viewer, page, number, **wish):
        """Socket = saved = command; the answer's end."""
        page.track(number, **wish)
        batches, end = page.answer_to(number)
        sent = joined(batches)
        body = json.dumps({name.replace("_", "-"): value for name, value in wish.items()}).encode()
        saved = viewer.request("POST", "/api/save", body=body, timeout=120)
        self.assertEqual(saved.status, 200, saved.body)
        self.assertEqual(sent, trx_parts(saved.body, self.folder))
        command = dict(saved.headers)["x-cingulum-command"]
        self.assertEqual(command, end["command"])
        words = shlex.split(command)
        self.assertEqual(words[:2], ["cingulum", "track"])
        with tempfile.TemporaryDirectory(dir=self.folder) as place:
            run(*words[1:], cwd=place)
            written = (pathlib.Path(place) / "tracks.trx").read_bytes()
            sidecar = json.loads((pathlib.Path(place) / "tracks.trx.json").read_text())
        self.assertEqual(written, saved.body, command)
        theirs = viewer.request("POST", "/api/save-sidecar", body=body, timeout=120).json()
        for facts in (sidecar, theirs):
            del facts["run"]
        self.assertEqual(theirs, sidecar)
        self.assertEqual(end["kept"], len(sent[1]) - 1)
        self.assertEqual(end["points"], sent[1][-1])
        self.assertEqual(end["seeds"], sidecar["result"]["seeds"])
        self.assertEqual(end["seeds_outside"], sidecar["result"]["seeds_outside"])
        self.assertEqual(end["streamlines"], sidecar["result"]["streamlines"])
        self.assertAlmostEqual(end["mean_mm"], sidecar["result"]["mean_length_mm"], 6)
        self.assertEqual(end["end_reasons"], {name: count for name, count in sidecar["result"]["end_reasons"].items() if count})
        reasons = [reason for batch in batches for reason in batch["reasons"]]
        self.assertEqual(sum(end["end_reasons"].values()), len(reasons))
        seeds = [seed for batch in batches for seed in batch["seeds"]]
        self.assertEqual(seeds, sorted(seeds))
        return end


class Equality(Data):
    def each_getter(self, device):
        sphere = [0, 0, 0, 8]
        number = 0
        kinds = [([*self.series, "--dg", "prob"], {"prob", "det", "ptt", "closest"}), ([*self.series, "--dg", "tensor"], {"tensor"}),
                 ([*self.series, "--dg", "boot"], {"boot"}), (["--sh", self.folder / "phantom/fod.nii.gz"], {"prob", "det", "ptt", "closest"})]
        for words, getters in kinds:
            viewer = Viewer(*words, "--device", device)
            self.addCleanup(viewer.process.kill)
            live = viewer.request("GET", "/api/files").json()["live"]
            self.assertEqual(set(live["getters"]), getters, words)
            self.assertTrue(live["device"].startswith(device), live["device"])
            with viewer.socket() as page:
                for getter in sorted(getters):
                    number += 1
                    end = self.check_equal(viewer, page, number, dg=getter, sphere=sphere, nseeds=60, seed=7)
                    self.assertGreater(end["kept"], 10, getter)
                    # Each has the field of its own defaults: ptt that of amplitudes, whoever came first.
                    self.assertNotIn("interpolate", end["command"])
            code, _, said = viewer.close()
            self.assertEqual(code, 0, said)

    def test_cpu(self):
        self.each_getter("cpu")

    def test_webgpu(self):
        need_device(self, "webgpu")
        self.each_getter("webgpu")

    def test_cuda(self):
        need_device(self, "cuda")
        self.each_getter("cuda")

    def test_options_and_thresholds(self):
        viewer = Viewer(*self.series, "--device", "cpu")
        self.addCleanup(viewer.process.kill)
        live = viewer.request("GET", "/api/files").json()["live"]
        lowest = live["lowest_stop_threshold"]
        self.assertEqual(float(live["defaults"]["prob"]["stop-threshold"]), 2 * lowest)
        with viewer.socket() as page:
            wishes = [{"stop_threshold": lowest}, {"stop_threshold": 0.3, "dg": "ptt"}, {"max_angle": 15.5, "step_size": "0.3vox", "dg": "det"},
                      {"min_length": 20, "include": [[0, 0, 0, 6]], "exclude": [[20, 0, 0, 3]], "stop": [[-15, 0, 0, 4]]},
                      {"sphere": [-30.5, 3, 2, 12], "nseeds": 400, "seed": 18446744073709551615}, {"one_sided": True, "max_directions": 3}]
            for number, wish in enumerate(wishes, 1):
                self.check_equal(viewer, page, number, **{"dg": "prob", "sphere": [0, 0, 0, 8], "nseeds": 50, **wish})
        viewer.close()


    def test_what_is_interpolated_can_be_chosen_for_all(self):
        viewer = Viewer(*self.series, "--device", "cpu", "--interpolate", "harmonics")
        self.addCleanup(viewer.process.kill)
        with viewer.socket() as page:
            end = self.check_equal(viewer, page, 1, dg="ptt", sphere=[0, 0, 0, 8], nseeds=10)
            self.assertIn("--interpolate=harmonics", end["command"])
        viewer.close()

    def test_a_device_that_is_lost_is_told_and_the_cpu_answers_with_the_same_bytes(self):
        devices = [device["id"] for device in json.loads(run("devices", "--json").stdout)["devices"]]
        for device in ("cpu", *(["webgpu"] if any(name.startswith("webgpu") for name in devices) else [])):
            with unittest.mock.patch.dict(os.environ, {"CINGULUM_TEST_LOST_DEVICE": "2"}):
                viewer = Viewer(*self.series, "--device", device)
            self.addCleanup(viewer.process.kill)
            with viewer.socket() as page:
                wish = {"dg": "prob", "sphere": [0, 0, 0, 8], "nseeds": 20}
                page.track(1, **wish)
                before, _ = page.answer_to(1)
                page.track(2, **wish)
                kind, number, body = page.receive()
                self.assertEqual((kind, number), (ERROR, 2), device)
                problem = json.loads(body)
                self.assertEqual(problem["kind"], "device")
                self.assertRegex(problem["message"], f"{device}.* was lost.*from now on the CPU answers")
                page.track(3, **wish)
                after, _ = page.answer_to(3)
                self.assertEqual(joined(after), joined(before))
                self.check_equal(viewer, page, 4, **wish)
            viewer.close()

    def test_scores_are_those_of_the_verb(self):
        viewer = Viewer(*self.series, "--device", "cpu")
        self.addCleanup(viewer.process.kill)
        self.assertTrue(viewer.request("GET", "/api/files").json()["live"]["truth"])
        with viewer.socket() as page:
            page.track(1, dg="prob", sphere=[5, 0, 0, 12], nseeds=300, score=True)
            batches, end = page.answer_to(1)
            page.track(2, dg="prob", sphere=[5, 0, 0, 12], nseeds=300)
            again, without = page.answer_to(2)
        self.assertEqual(joined(again), joined(batches))
        self.assertIsNone(without["score"])
        self.assertNotIn("score", end["command"])
        self.assertEqual(end["command"], without["command"])
        with tempfile.TemporaryDirectory(dir=self.folder) as place:
            run(*shlex.split(end["command"])[1:], cwd=place)
            told = json.loads(run("score", pathlib.Path(place) / "tracks.trx", "--truth", self.folder / "phantom", "--json").stdout)
        self.assertEqual(set(end["score"]), {"valid", "wrong_path", "invalid", "no_connection"})
        self.assertGreater(end["score"]["valid"], 0)
        self.assertGreater(end["score"]["no_connection"], 0)
        for name, share in end["score"].items():
            self.assertAlmostEqual(share, told[name], 12)
        # Without a phantom's description beside it there is none.
        bare = self.folder / "bare"
        bare.mkdir()
        (bare / "fod.nii.gz").symlink_to(self.folder / "phantom/fod.nii.gz")
        other = Viewer("--sh", bare / "fod.nii.gz", "--device", "cpu")
        self.addCleanup(other.process.kill)
        self.assertFalse(other.request("GET", "/api/files").json()["live"]["truth"])
        with other.socket() as page:
            page.track(1, sphere=[5, 0, 0, 12], nseeds=20, score=True)
            self.assertIsNone(page.answer_to(1)[1]["score"])
        viewer.close()
        other.close()


class Shown(Data):
    """What of files and slices is shown, over the network, beside files read another way."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.tracks = cls.folder / "tracks"
        cls.tracks.mkdir()
        run("track", *cls.series, "--dg", "det", "--nseeds", "20000", "--save-seeds", "--out", cls.tracks / "a.trx")
        for ending in ("trk", "tck"):
            run("convert", cls.tracks / "a.trx", cls.tracks / f"a.{ending}")
        (cls.tracks / "broken.trk").write_bytes((cls.tracks / "a.trk").read_bytes()[:5000])
        (cls.tracks / "truth.trx").write_bytes((cls.folder / "phantom/truth.trx").read_bytes())
        cls.viewer = Viewer(*cls.series, cls.tracks, "--device", "cpu")
        cls.files = cls.viewer.request("GET", "/api/files").json()
        cls.ids = {file["name"]: file["id"] for file in cls.files["files"]}

    @classmethod
    def tearDownClass(cls):
        cls.viewer.close()
        super().tearDownClass()

    def messages(self, name):
        def get(number):
            answer = self.viewer.request("GET", f"/api/lines/{self.ids[name]}/{number}")
            self.assertEqual(answer.status, 200, answer.body)
            return answer.body
        return messages_of_file(get)

    def test_lines_of_files_are_theirs_within_a_third_of_a_millimetre(self):
        import numpy as np
        positions, offsets = trx_parts((self.tracks / "a.trx").read_bytes(), self.folder)
        truth = np.frombuffer(positions, "<f4").reshape(-1, 3).astype(float)
        for name in ("a.trx", "a.trk", "a.tck"):
            sample, rest, boxes = self.messages(name)
            self.assertGreater(len(sample), 1, name)
            self.assertGreater(len(rest), 0, name)
            count = 0
            shown = {}
            for message in sample + rest:
                self.assertLess(message["unit"], 0.003, name)  # a box of 196 mm
                numbers = np.frombuffer(message["numbers"], "<u2").reshape(-1, 3)
                points = np.float32(message["corner"]) + np.float32(message["unit"]) * numbers.astype("<f4")
                for i, place in enumerate(message["places"]):
                    self.assertNotIn(place, shown)
                    shown[place] = (points[message["offsets"][i]:message["offsets"][i + 1]].astype(float), message["unit"])
                    count += len(shown[place][0])
            self.assertEqual(sorted(shown), list(range(len(offsets) - 1)), name)
            self.assertLess(count, 0.8 * len(truth))
            for line in range(0, len(offsets) - 1, 7):
                whole, (few, unit) = truth[offsets[line]:offsets[line + 1]], shown[line]
                # Each point that is left is one of the file, in its order, with the first and the last, within half a unit
                # and what float32 rounds.
                at = []
                for point in few:
                    start = at[-1] + 1 if at else 0
                    off = np.abs(whole[start:] - point).max(axis=1)
                    at.append(start + int(np.argmin(off)))
                    self.assertLessEqual(off.min(), 0.5 * unit + 1e-4, name)
                self.assertEqual((at[0], at[-1]), (0, len(whole) - 1))
                for a, b in zip(at, at[1:]):
                    way = whole[b] - whole[a]
                    share = np.clip((whole[a:b] - whole[a]) @ way / max(way @ way, 1e-12), 0, 1)
                    self.assertLess(np.linalg.norm(whole[a] + share[:, None] * way - whole[a:b], axis=1).max(), 0.3001)
            # What is not in the sample lies where its message says: the middle of each line in the box.
            for message, box in zip(rest, boxes):
                for place in message["places"]:
                    middle = truth[offsets[place] + (offsets[place + 1] - offsets[place]) // 2]
                    self.assertTrue(np.all(middle >= np.array(box[:3]) - 1e-3) and np.all(middle <= np.array(box[3:]) + 1e-3), (name, place))

    def test_lines_that_cannot_be(self):
        get = self.viewer.request
        some = self.ids["a.trx"]
        for target, status in ((f"/api/lines/{some}/500", 404), (f"/api/lines/{some}/999999", 404), (f"/api/lines/{some}/-1", 400), (f"/api/lines/{some}/1.5", 400),
                               (f"/api/lines/{some}/18446744073709551616", 400), ("/api/lines/f99/0", 404), (f"/api/lines/{self.ids['dwi.nii.gz']}/0", 404),
                               (f"/api/values/{some}/99", 404), (f"/api/values/{some}/x", 400), (f"/api/values/{self.ids['a.tck']}/0", 404),
                               ("/api/glyphs/3/0", 400), ("/api/glyphs/0/nan", 400), ("/api/glyphs/0/inf", 400), ("/api/glyphs/0/x", 400), ("/api/glyphs/x/0", 400),
                               ("/api/peaks/3/0", 400), ("/api/peaks/0/nan", 400)):
            answer = get("GET", target)
            self.assertEqual(answer.status, status, target)
            self.assertTrue(answer.body.strip(), target)
        # A file that is broken is said, and the others are shown.
        number = 0
        while (answer := get("GET", f"/api/lines/{self.ids['broken.trk']}/{number}")).status == 200:
            number += 1
        self.assertEqual(answer.status, 500)
        self.assertIn("broken.trk", answer.json()["message"])
        self.assertEqual(get("GET", f"/api/lines/{some}/0").status, 200)

    def test_values_and_groups(self):
        with zipfile.ZipFile(self.tracks / "a.trx") as archive:
            seeds = archive.read(next(name for name in archive.namelist() if name.startswith("dps/seed_index")))
            points = archive.read(next(name for name in archive.namelist() if name.startswith("dps/seed_point")))
        columns = {file["name"]: [column["name"] for column in file.get("columns", [])] for file in self.files["files"]}
        self.assertEqual(columns["a.tck"], [])

        def column(file, name):
            answer = self.viewer.request("GET", f"/api/values/{self.ids[file]}/{columns[file].index(name)}")
            self.assertEqual(answer.status, 200, answer.body)
            return struct.unpack(f"<{len(answer.body) // 4}f", answer.body)

        self.assertEqual(column("a.trx", "seed_index"), struct.unpack(f"<{len(seeds) // 4}I", seeds))
        self.assertEqual(column("a.trx", "seed_point 2"), struct.unpack(f"<{len(points) // 4}f", points)[1::3])
        groups = next(entry for file in self.files["files"] if file["name"] == "truth.trx" for entry in file["columns"] if entry["name"] == "group")["groups"]
        found = column("truth.trx", "group")
        with zipfile.ZipFile(self.tracks / "truth.trx") as archive:
            held = {name.split("/")[1].rsplit(".", 1)[0]: archive.read(name) for name in archive.namelist() if name.startswith("groups/") and not name.endswith("/")}
        self.assertEqual(set(groups), set(held))
        self.assertGreater(len(groups), 1)
        for place, name in enumerate(groups):
            members = struct.unpack(f"<{len(held[name]) // 4}I", held[name])
            self.assertEqual([line for line, value in enumerate(found) if value == place], sorted(members), name)

    def slice_of_glyphs(self, axis, mm):
        import numpy as np
        answer = self.viewer.request("GET", f"/api/glyphs/{axis}/{mm}")
        self.assertEqual(answer.status, 200, answer.body)
        voxels, corners, triangles = struct.unpack("<III", answer.body[:12])
        at = [12]

        def take(count, kind):
            begin, at[0] = at[0], at[0] + count * np.dtype(kind).itemsize
            return np.frombuffer(answer.body[begin:at[0]], kind)

        directions, centres = take(3 * corners, "<f4").reshape(-1, 3), take(3 * voxels, "<f4").reshape(-1, 3)
        greatest, _, amplitudes = take(voxels, "<f4"), take(3 * triangles, "<u2"), take(voxels * corners, "u1").reshape(voxels, corners)
        self.assertEqual(at[0], len(answer.body))
        return directions, centres, greatest, amplitudes

    def test_glyphs_are_the_amplitudes_that_dipy_finds_and_peaks_lie_on_them(self):
        import nibabel
        import numpy as np
        from dipy.core.sphere import Sphere
        from dipy.reconst.shm import sh_to_sf
        phantom = self.folder / "phantom"
        run("fit", phantom / "dwi.nii.gz", "--bvals", phantom / "dwi.bval", "--bvecs", phantom / "dwi.bvec", "--mask", phantom / "mask.nii.gz", "--model", "csd",
            "--sh-basis", "descoteaux07-legacy", "--frame", "image", "--out", self.folder / "csd")
        image = nibabel.load(self.folder / "csd/fod.nii.gz")
        data, affine = np.asarray(image.dataobj), image.affine
        for axis, mm in ((0, 1.0), (1, -3.0), (2, 0.0)):
            directions, centres, greatest, amplitudes = self.slice_of_glyphs(axis, mm)
            self.assertGreater(len(centres), 20)
            voxels = np.rint(nibabel.affines.apply_affine(np.linalg.inv(affine), centres)).astype(int)
            np.testing.assert_allclose(nibabel.affines.apply_affine(affine, voxels), centres, atol=1e-4)
            self.assertTrue(np.all(np.abs(centres[:, axis] - mm) <= 0.5 * 2.5 + 1e-5))
            self.assertEqual(len({tuple(voxel) for voxel in voxels}), len(voxels))
            # The phantom's axes are the world's.
            truth = np.clip(sh_to_sf(data[tuple(voxels.T)].astype(float), Sphere(xyz=directions.astype(float)), sh_order_max=8,
                                     basis_type="descoteaux07", legacy=True), 0, None)
            np.testing.assert_allclose(greatest, truth.max(axis=1), rtol=1e-3)
            self.assertLess(np.abs(amplitudes - 255 * truth / truth.max(axis=1, keepdims=True)).max(), 1)
            answer = self.viewer.request("GET", f"/api/peaks/{axis}/{mm}")
            peaks = read_batch(answer.body[12:])
            ends = np.frombuffer(peaks["positions"], "<f4").reshape(-1, 2, 3)
            self.assertEqual(peaks["offsets"], tuple(range(0, 2 * len(ends) + 1, 2)))
            way, middle = ends[:, 1] - ends[:, 0], ends.mean(axis=1)
            strongest = {}
            for i, centre in enumerate(middle):
                strongest.setdefault(tuple(np.round(centre, 3)), i)
            for i, centre in enumerate(centres):
                line = strongest[tuple(np.round(centre, 3))]
                self.assertAlmostEqual(float(np.linalg.norm(way[line])), 2.5, 3)
                along = np.argmax(directions @ way[line])
                self.assertGreater(amplitudes[i][along], 0.7 * 255)  # corners are 11 degrees apart


class Behaviour(Data):
    def setUp(self):
        self.viewer = Viewer(*self.series, "--device", "cpu")

    def tearDown(self):
        code, seconds, said = self.viewer.close()
        self.assertEqual(code, 0, said)
        self.assertLess(seconds, 10)

    def test_what_cannot_be_is_said_and_the_next_request_works(self):
        with self.viewer.socket() as page:
            good = {"sphere": [0, 0, 0, 6], "nseeds": 20}
            wrong = [({"sphere": None}, "sphere"), ({"max-angle": "nan"}, "max-angle"), ({"max-angle": 900}, "max-angle"), ({"max-angle": -1}, "max-angle"),
                     ({"stop-threshold": 0.0001}, "stop-threshold"), ({"stop-threshold": "nan"}, "stop-threshold"), ({"dg": "boot"}, "boot"), ({"dg": "magic"}, "magic"),
                     ({"nseeds": 100001}, "100000"), ({"nseeds": 0}, "nseeds"), ({"nseeds": 1.5}, "nseeds"), ({"sphere": [9000, 0, 0, 1]}, "outside"),
                     ({"sphere": [0, 0, 0, -1]}, "radius"), ({"sphere": "here"}, "x,y,z,r"), ({"mask": "/etc/passwd"}, "mask"), ({"include": "/etc/passwd"}, "sphere"),
                     ({"out": "/tmp/x.trx"}, "out"), ({"seed-file": "/etc/passwd"}, "seed-file"), ({"model": "csa"}, "model"), ({"device": "cuda"}, "device"),
                     ({"rk4": 3}, "rk4"), ({"rk4": "/etc/passwd"}, "rk4"), ({"max-angle": True}, "max-angle"), ({"include": True}, "include"),
                     ({"step-size": "1e99"}, "")]
            number = 0
            for change, text in wrong:
                number += 1
                wish = {**good, **change}
                page.track(number, **{name.replace("-", "_"): value for name, value in wish.items() if value is not None})
                kind, request, body = page.receive()
                self.assertEqual((kind, request), (ERROR, number), (change, body))
                self.assertIn(text, json.loads(body)["message"], change)
            page.track(number + 1, **good)
            self.assertGreater(page.answer_to(number + 1)[1]["kept"], 0)
        for body, status in ((b"{", 400), (b'{"nseeds":5}', 400), (b'{"sphere":[0,0,0,5],"nseeds":200000}', 400)):
            answer = self.viewer.request("POST", "/api/save", body=body)
            self.assertEqual(answer.status, status)
            self.assertIn("message", answer.json())

    def test_the_newest_request_wins(self):
        with self.viewer.socket() as page:
            page.track(1, sphere=[0, 0, 0, 8], nseeds=100000, dg="ptt")
            self.assertEqual(page.receive()[:2], (BATCH, 1))
            for number in range(2, 30):
                page.track(number, sphere=[number * 0.1, 0, 0, 8], nseeds=40)
            newest = 1
            while True:
                kind, number, body = page.receive()
                self.assertIn(kind, (BATCH, END))
                self.assertGreaterEqual(number, newest)  # nothing of an older one after a newer one's first message
                newest = number
                if kind == END and number == 29:
                    break
            page.track(30, sphere=[2.9, 0, 0, 8], nseeds=40)
            batches, end = page.answer_to(30)
            # The answer is that of one who asked nothing before.
            with self.viewer.socket() as other:
                other.track(1, sphere=[2.9, 0, 0, 8], nseeds=40)
                self.assertEqual(joined(other.answer_to(1)[0]), joined(batches))
        state = self.viewer.wait_for(lambda state: state["pages"] == 0 and state["running"] == 0)
        self.assertEqual(state["requests"], state["answered"] + state["replaced"] + state["cancelled"] + state["failed"])

    def test_two_pages_and_a_cancelled_request(self):
        with self.viewer.socket() as one, self.viewer.socket() as two:
            one.track(1, sphere=[0, 0, 0, 8], nseeds=100000, dg="ptt")
            self.assertEqual(one.receive()[:2], (BATCH, 1))
            one.cancel(1)
            while True:
                kind, number, body = one.receive()
                self.assertEqual(number, 1)
                if kind == ERROR:
                    self.assertEqual(json.loads(body)["kind"], "interrupted")
                    break
            for number in range(2, 12):
                one.track(number, sphere=[0, 0, 0, 8], nseeds=50, dg="det")
                two.track(number, sphere=[4, 0, 0, 8], nseeds=50, dg="prob")
                first, second = one.answer_to(number), two.answer_to(number)
                self.assertIn("--dg=det", first[1]["command"])
                self.assertIn("--dg=prob", second[1]["command"])
            # A page that goes away in the middle leaves the other alone.
            one.track(50, sphere=[0, 0, 0, 8], nseeds=100000, dg="ptt")
            self.assertEqual(one.receive()[:2], (BATCH, 50))
            one.close()
            two.track(50, sphere=[4, 0, 0, 8], nseeds=50)
            two.answer_to(50)
        self.viewer.wait_for(lambda state: state["pages"] == 0 and state["running"] == 0)

    def test_a_page_that_does_not_read_is_let_go(self):
        with self.viewer.socket() as deaf:
            resident = self.viewer.resident_bytes()
            deaf.track(1, sphere=[0, 0, 0, 8], nseeds=100000, step_size="0.1vox", dg="det")
            # Its 64 MiB fill up, and it loses its socket; another page is answered, which comes now: filling may take longer than
            # a page may be silent.
            self.viewer.wait_for(lambda state: state["pages"] == 0, 120)
            with self.viewer.socket() as page:
                page.track(1, sphere=[0, 0, 0, 8], nseeds=50)
                page.answer_to(1)
            self.assertLess(self.viewer.resident_bytes() - resident, 400 << 20)

    def test_reconnects_in_the_middle_of_tracking_leave_no_job(self):
        for i in range(1000 if LONG else 40):
            page = self.viewer.socket()
            page.track(1, sphere=[0, 0, 0, 8], nseeds=20000)
            if i % 2:
                page.receive()
            page.close()
        state = self.viewer.wait_for(lambda state: state["pages"] == 0 and state["waiting"] == 0 and state["running"] == 0)
        self.assertEqual(state["requests"], state["answered"] + state["replaced"] + state["cancelled"] + state["failed"])
        with self.viewer.socket() as page:
            page.track(1, sphere=[0, 0, 0, 8], nseeds=20)
            page.answer_to(1)

    def test_a_page_that_goes_away_stops_its_work_within_a_second(self):
        page = self.viewer.socket()
        page.track(1, sphere=[0, 0, 0, 8], nseeds=100000, dg="ptt")
        page.receive()
        page.close()
        begin = time.monotonic()
        self.viewer.wait_for(lambda state: state["running"] == 0 and state["pages"] == 0)
        if LONG:
            self.assertLess(time.monotonic() - begin, 1)

    @unittest.skipUnless(LONG, "half a minute of silence: CINGULUM_TEST_LONG")
    def test_a_page_that_sleeps_loses_its_socket(self):
        asleep = self.viewer.socket()
        asleep.track(1, sphere=[0, 0, 0, 8], nseeds=20)
        asleep.answer_to(1)
        # From now on nobody reads, and no ping is answered: a closed lid.
        state = self.viewer.wait_for(lambda state: state["pages"] == 0, 60)
        self.assertEqual(state["running"], 0)
        asleep.close()
        with self.viewer.socket() as page:
            page.track(1, sphere=[0, 0, 0, 8], nseeds=20)
            page.answer_to(1)

    def test_ctrl_c_in_the_middle_of_a_request(self):
        page = self.viewer.socket()
        page.track(1, sphere=[0, 0, 0, 8], nseeds=100000, dg="ptt")
        page.receive()
        # tearDown presses it.
        self.addCleanup(page.close)


class Interrupted(Data):
    def test_ctrl_c_at_any_moment(self):
        """R22: while it reads, fits, prepares a field, waits and tracks."""
        before = set(pathlib.Path(tempfile.gettempdir()).glob("cingulum-view-*"))
        longest = 0
        for i in range(200 if LONG else 8):
            process = subprocess.Popen([PROGRAM, "view", "--no-open", "--device", "cpu", *map(str, self.series)], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
            time.sleep(0.02 + 0.011 * (i * 37 % 60))
            begin = time.monotonic()
            process.send_signal(signal.SIGINT)
            # Before its handler stands the signal itself ends it.
            self.assertIn(process.wait(timeout=30), (0, 130, -signal.SIGINT), i)
            longest = max(longest, time.monotonic() - begin)
        if LONG:
            self.assertLess(longest, 1)
        self.assertEqual(set(pathlib.Path(tempfile.gettempdir()).glob("cingulum-view-*")) - before, set())


class Large(unittest.TestCase):
    @unittest.skipUnless(LONG, "a file of more than 4 GB: CINGULUM_TEST_LONG")
    def test_a_tractogram_of_4_gb_comes_in_batches(self):
        import numpy as np
        with tempfile.TemporaryDirectory() as folder:
            small, large = pathlib.Path(folder) / "small.tck", pathlib.Path(folder) / "large.trk"
            small.write_bytes(b"mrtrix tracks\ndatatype: Float32LE\ncount: 1\nfile: . 67\nEND\n".ljust(67, b"\n") +
                              struct.pack("<9f", 1, 2, 3, *[float("nan")] * 3, *[float("inf")] * 3))
            run("phantom", "--preset", "crossing", "--voxel-size", "4", "--out", pathlib.Path(folder) / "phantom")
            run("convert", small, large, "--reference", pathlib.Path(folder) / "phantom/mask.nii.gz")
            # The same 8000 random walks again and again, behind the header of a small file.
            points, in_block, blocks = 1000, 8000, 45
            lines = in_block * blocks
            walks = np.cumsum(np.random.default_rng(1).normal(0, 0.3, (in_block, points, 3)), axis=1).astype("<f4")
            counts = np.full((in_block, 1), points, "<i4").view("<f4")
            block = np.concatenate([counts, walks.reshape(in_block, -1)], axis=1).tobytes()
            with open(large, "r+b") as file:
                file.seek(988)
                file.write(struct.pack("<i", lines))
                file.seek(1000)
                for _ in range(blocks):
                    file.write(block)
                file.truncate()
            self.assertGreater(large.stat().st_size, 4 << 30)
            viewer = Viewer(large)
            self.addCleanup(viewer.process.kill)

            def get(number):
                answer = viewer.request("GET", f"/api/lines/f1/{number}")
                self.assertEqual(answer.status, 200, answer.body[:300])
                return answer.body
            sample, rest, _ = messages_of_file(get)
            seen = np.zeros(lines, int)
            for message in sample + rest:
                seen[list(message["places"])] += 1
                self.assertLess(message["offsets"][-1], points * len(message["places"]))
            self.assertTrue(np.all(seen == 1))
            own = next(line for line in pathlib.Path(f"/proc/{viewer.process.pid}/status").read_text().splitlines() if line.startswith("RssAnon"))
            self.assertLess(int(own.split()[1]), 200 << 10)  # kB
            self.assertEqual(viewer.close()[0], 0)


class NoAffine(unittest.TestCase):
    def test_a_grid_without_an_affine_is_tracked_where_its_image_is_shown(self):
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder)
            run("phantom", "--preset", "crossing", "--voxel-size", "4", "--out", place / "phantom")
            import gzip
            for name in ("dwi", "mask"):
                data = bytearray(gzip.decompress((place / "phantom" / f"{name}.nii.gz").read_bytes()))
                data[252:256] = bytes(4)  # qform_code, sform_code
                (place / "phantom" / f"{name}.nii.gz").write_bytes(gzip.compress(bytes(data), 1))
            viewer = Viewer(place / "phantom/dwi.nii.gz", "--mask", place / "phantom/mask.nii.gz", "--device", "cpu")
            self.addCleanup(viewer.process.kill)
            files = viewer.request("GET", "/api/files").json()
            live = files["live"]
            self.assertIsNotNone(live, files["live_error"])
            image = viewer.request("GET", f"/data/{live['image']}").body
            codes = struct.unpack("<hh", image[252:256])
            self.assertGreater(max(codes), 0)  # what is shown says where it lies
            rows = struct.unpack("<12f", image[280:328])
            for own, shown in zip(live["affine"], rows):
                self.assertAlmostEqual(own, shown, 4)
            middle = [sum(row[column] * (live["shape"][column] // 2) for column in range(3)) + row[3]
                      for row in (live["affine"][0:4], live["affine"][4:8], live["affine"][8:12])]
            with viewer.socket() as page:
                page.track(1, sphere=[*middle, 12], nseeds=200)
                self.assertGreater(page.answer_to(1)[1]["kept"], 0)
            self.assertEqual(viewer.close()[0], 0)


class NoData(unittest.TestCase):
    def test_a_phantom_is_shown_and_its_command_makes_the_same(self):
        viewer = Viewer("--device", "cpu")
        files = viewer.request("GET", "/api/files").json()
        self.assertIn(("dwi.nii.gz", "series"), [(file["name"], file["kind"]) for file in files["files"]])
        with viewer.socket() as page, tempfile.TemporaryDirectory() as place:
            page.track(1, sphere=[0, 0, 0, 8], nseeds=50)
            batches, end = page.answer_to(1)
            bin_folder = pathlib.Path(place) / "bin"
            bin_folder.mkdir()
            (bin_folder / "cingulum").symlink_to(PROGRAM)
            environment = {**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}"}
            subprocess.run(["sh", "-c", end["command"]], check=True, cwd=place, env=environment, capture_output=True, timeout=300)
            self.assertEqual(trx_parts((pathlib.Path(place) / "tracks.trx").read_bytes(), place), joined(batches))
        self.assertNotIn("/tmp", end["command"])
        self.assertEqual(viewer.close()[0], 0)

    def test_a_field_that_cannot_be_made_is_said_on_the_page(self):
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder)
            run("phantom", "--preset", "crossing", "--voxel-size", "4", "--out", place / "phantom")
            series = place / "phantom" / "dwi.nii.gz"
            data = series.read_bytes()
            series.write_bytes(data[:len(data) // 2])
            viewer = Viewer(series)
            files = viewer.request("GET", "/api/files").json()
            self.assertIsNone(files["live"])
            self.assertIn("dwi.nii.gz", files["live_error"])
            with viewer.socket() as page:
                page.track(1, sphere=[0, 0, 0, 8])
                self.assertEqual(page.receive()[0], ERROR)
            self.assertEqual(viewer.close()[0], 0)


if __name__ == "__main__":
    suite.main()
