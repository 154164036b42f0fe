"""What `cingulum view` sends is what `cingulum track` writes: streamlines over the socket, the saved TRX and the TRX of the
command that the page shows, byte for byte, for every getter and on every device that is here; newest wins, two pages, pages
that go away, options that cannot be."""
import json
import os
import pathlib
import shlex
import subprocess
import tempfile
import unittest
import zipfile

from viewer import BATCH, END, ERROR, LONG, PROGRAM, Viewer

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
        with self.viewer.socket() as deaf, self.viewer.socket() as page:
            resident = self.viewer.resident_bytes()
            deaf.track(1, sphere=[0, 0, 0, 8], nseeds=100000, step_size="0.1vox", dg="det")
            # Its 64 MiB fill up, and it loses its socket; another page is answered.
            self.viewer.wait_for(lambda state: state["pages"] == 1, 120)
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

    def test_ctrl_c_in_the_middle_of_a_request(self):
        page = self.viewer.socket()
        page.track(1, sphere=[0, 0, 0, 8], nseeds=100000, dg="ptt")
        page.receive()
        # tearDown presses it.
        self.addCleanup(page.close)


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
