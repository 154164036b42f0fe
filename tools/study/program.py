"""Runs cingulum: phantoms and fits of a condition, made once, and one run of `track` with its score."""
import gzip
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import threading

from . import design
from .images import grown_by_faces, read_image, write_like

FITTED_TENSORS = ("tensor", "fa", "md")
RIM_MM = 4
RESPONSE_FA = (0.7, 0.6, 0.5, 0.4)  # the next one where noise leaves too few voxels above


class Failed(Exception):
    pass


class TooLong(Failed):
    pass


class Program:
    def __init__(self, path, device="cpu", device_jobs=4, limit_s=600):
        self.path = str(path)
        self.device, self.limit_s = device, limit_s
        self._device_turns = threading.Semaphore(device_jobs)
        self.version = self._identity()

    def _identity(self):
        """Commit of the program and the hash of its bytes, those of its library included where it lies beside it."""
        version = json.loads(self.run("--version", "--json"))
        found = hashlib.sha256()
        resolved = pathlib.Path(shutil.which(self.path) or self.path).resolve()
        folders = [resolved.parent, resolved.parent.parent / "lib"]
        folders += [pathlib.Path(word) for word in os.environ.get("LD_LIBRARY_PATH", "").split(":") if word]
        libraries = [folder / "libcingulum.so.0" for folder in folders if (folder / "libcingulum.so.0").exists()]
        for file in [resolved] + libraries[:1]:
            found.update(file.read_bytes())
        return f"{version['version']} {version['commit']} {found.hexdigest()[:12]}"

    def run(self, *words, limit_s=None):
        command = [self.path, *map(str, words)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=limit_s or self.limit_s,
                                  stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired as slow:
            raise TooLong(f"more than {limit_s or self.limit_s:g} s: {' '.join(command)}") from slow
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise Failed(f"exit {done.returncode}: {last} ({' '.join(command)})")
        return done.stdout

    def json(self, *words, **options):
        return json.loads(self.run(*words, "--json", "--quiet", **options))

    # Data of conditions

    def has_folder_of(self, condition, work):
        return (work / "conditions" / condition.data_name).exists()

    def folder_of(self, condition, work):
        """The phantom and its fits, made when they are not there; complete or absent."""
        folder = work / "conditions" / condition.data_name
        if folder.exists():
            return folder
        folder.parent.mkdir(parents=True, exist_ok=True)
        making = pathlib.Path(tempfile.mkdtemp(prefix=f".{condition.data_name}.", dir=folder.parent))
        try:
            self.run("phantom", "--preset", condition.preset, "--snr", condition.snr, "--voxel-size",
                     f"{condition.voxel_mm:g}", "--b-values", condition.b_value, "--directions", condition.directions,
                     "--seed", condition.key, "--out", making / "truth", "--threads", 1, "--quiet")
            truth = making / "truth"
            self.write_mask(condition, truth, making / "mask.nii.gz")
            self.fit(truth / "dwi.nii.gz", truth / "dwi.bval", truth / "dwi.bvec", "fsl", making / "mask.nii.gz", making)
            making.rename(folder)
        except BaseException:
            shutil.rmtree(making, ignore_errors=True)
            raise
        return folder

    def write_mask(self, condition, truth, out):
        """Writes the brain's own mask. A small preset is a thread of white matter in a box of grey: there the mask reaches
        RIM_MM beyond the bundles, as far as cortex does. Seeds in the whole box would lie in grey matter nearly all, and
        the study would choose the threshold that leaves noise without seeds."""
        mask = read_image(truth / "mask.nii.gz")[0] > 0
        if condition.preset != "brain":
            near = read_image(truth / "tissue.nii.gz")[0][..., 0] > 0
            for _ in range(round(RIM_MM / condition.voxel_mm)):
                near = grown_by_faces(near)
            mask &= near
        write_like(out, mask, truth / "mask.nii.gz")

    def fit(self, series, b_values, b_vectors, frame, mask, out, radius=1000):
        """Tensors and CSD; what trackers read is unpacked, so that no run spends its time on gzip. The response comes
        from every voxel of the mask with FA above RESPONSE_FA: the middle of a small phantom may hold a crossing."""
        words = [series, "--bvals", b_values, "--bvecs", b_vectors, "--bvec-frame", frame, "--mask", mask, "--threads", 1,
                 "--device", "cpu", "--quiet"]
        self.run("fit", *words, "--model", "dti", "--out", out / "dti")
        for fa in RESPONSE_FA:
            try:
                self.run("fit", *words, "--model", "csd", "--response-radius", radius, "--response-fa", fa, "--out",
                         out / "csd")
                break
            except Failed:
                if fa == RESPONSE_FA[-1]:
                    raise
        for packed in [out / "dti" / f"{name}.nii.gz" for name in FITTED_TENSORS] + [out / "csd" / "fod.nii.gz", series]:
            plain = out / packed.name.removesuffix(".gz")
            with gzip.open(packed) as source, open(plain, "wb") as target:
                shutil.copyfileobj(source, target)
            sidecar = packed.with_name(packed.name + ".json")
            if sidecar.exists():
                shutil.copy(sidecar, plain.with_name(plain.name + ".json"))
        if mask != out / "mask.nii.gz":
            shutil.copy(mask, out / "mask.nii.gz")
        shutil.copy(b_values, out / "dwi.bval")
        shutil.copy(b_vectors, out / "dwi.bvec")

    def source(self, getter, folder, frame="fsl"):
        """What a getter tracks, as options of `track`; the stopping map is the FA of the fit for all of them."""
        common = ["--mask", folder / "mask.nii.gz", "--stop-map", folder / "fa.nii"]
        if getter == "boot":
            return [folder / "dwi.nii", "--bvals", folder / "dwi.bval", "--bvecs", folder / "dwi.bvec", "--bvec-frame",
                    frame, *common]
        if getter == "tensor":
            return ["--tensor", folder / "tensor.nii", *common]
        return ["--sh", folder / "fod.nii", *common]

    def track(self, getter, options, folder, select, out, large, frame="fsl", key=0):
        """One run into `out`; the JSON that it prints."""
        words = [word for name, value in sorted(options.items()) for word in (f"--{name}", value) if word != ""]
        device = self.device if large else "cpu"
        words = ["track", *self.source(getter, folder, frame), "--dg", getter, *words, "--select", select, "--max-seeds",
                 select * design.SEEDS_PER_KEPT, "--seed", key, "--out", out, "--force", "--threads", 1, "--device",
                 device, "--progress", "none"]
        if device == "cpu":
            return self.json(*words)
        with self._device_turns:
            return self.json(*words)

    def score(self, tractogram, folder):
        return self.json("score", tractogram, "--truth", folder / "truth", "--bootstrap", 0, "--threads", 1)


def measures(score):
    return {name: score[name] for name in ("f1", "valid", "invalid", "no_connection", "overlap", "overreach",
                                           "bundles_found", "bundle_count", "streamline_count")}


def scored_run(program, condition, getter, options, work, scratch):
    """The members of a row that were measured."""
    folder = program.folder_of(condition, work)
    with tempfile.TemporaryDirectory(dir=scratch) as temporary:
        out = pathlib.Path(temporary) / "tracks.trx"
        tracked = program.track(getter, options, folder, condition.select, out, condition.preset == "brain",
                                key=condition.key)
        result, run = tracked["result"], tracked["run"]
        values = {"kept": result["kept"], "seeds": result["seeds"], "mean_length_mm": result["mean_length_mm"],
                  "device": run["device"]}
        if result["kept"] == 0:
            return {**values, "f1": 0.0, "valid": 0.0, "invalid": 0.0}
        # What was tracked beyond the last streamline that was kept is not the option's doing.
        used = min(result["seeds"] / max(run["seeds_tracked"], 1), 1)
        if run["device"] == "cpu":
            values["seconds_per_1000"] = 1000 * run["tracking_seconds"] * used / result["kept"]
        return {**values, **measures(program.score(out, folder))}
