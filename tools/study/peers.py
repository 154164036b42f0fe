"""Other trackers on the phantoms of the study, each with its own defaults: the same series, the same fODF, FA and mask, the
same number of streamlines, in the conditions of the study but with noise of other keys, scored by `cingulum score`. All stop
where FA is not above the threshold that our run had: DIPY by its criterion, MRtrix3 and Trekker by a mask of the voxels that
pass, beside the amplitude at which they end by themselves. Without it they follow the fODF of grey matter, which a response
of white matter makes large, past the ends of every bundle, and not one streamline is valid."""
import dataclasses
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from . import design, tables
from .images import read_image, write_like
from .program import Failed, TooLong, measures, scored_run
from .results import key_of

HERE = pathlib.Path(__file__).resolve().parent
# Tool, its method, the getter of ours that it is compared with.
PEERS = (("DIPY", "boot", "boot"), ("DIPY", "closest", "closest"), ("DIPY", "prob", "prob"), ("DIPY", "det", "det"),
         ("MRtrix3", "iFOD1", "prob"), ("MRtrix3", "iFOD2", "prob"), ("MRtrix3", "SD_STREAM", "det"),
         ("MRtrix3", "Tensor_Det", "tensor"), ("Trekker", "ptt", "ptt"))


def trekker_python():
    """An interpreter that imports Trekker: the one that TREKKER_PYTHON names, or this one."""
    for python in (os.environ.get("TREKKER_PYTHON"), sys.executable):
        if python and subprocess.run([python, "-c", "import Trekker"], capture_output=True).returncode == 0:
            return python
    return None


def there():
    """Tools that can run here, and why others cannot."""
    found, lacking = {}, {}
    if all(importlib.util.find_spec(name) for name in ("dipy", "nibabel")):
        found["DIPY"] = sys.executable
    else:
        lacking["DIPY"] = "this Python does not import dipy and nibabel"
    if shutil.which("tckgen"):
        found["MRtrix3"] = "tckgen"
    else:
        lacking["MRtrix3"] = "tckgen is not installed"
    python = trekker_python()
    if python:
        found["Trekker"] = python
    else:
        lacking["Trekker"] = "neither TREKKER_PYTHON nor this Python imports Trekker"
    return found, lacking


def command_of(tool, method, executable, folder, condition, threshold, passing, out):
    seeds = condition.select * design.SEEDS_PER_KEPT
    if tool == "DIPY":
        return [executable, HERE / "peer_dipy.py", method, folder, condition.select, seeds, threshold, condition.key, out]
    if tool == "Trekker":
        return [executable, HERE / "peer_trekker.py", folder, passing, condition.select, seeds, condition.key, out]
    source = [folder / "fod.nii"]
    if method == "Tensor_Det":
        source = [folder / "dwi.nii", "-fslgrad", folder / "dwi.bvec", folder / "dwi.bval"]
    return [executable, source[0], out, *source[1:], "-algorithm", method, "-seed_image", passing, "-mask", passing, "-select", condition.select, "-seeds", seeds, "-nthreads", 1, "-force", "-quiet"]


def peer_run(study, condition, tool, method, executable, threshold):
    folder = study.program.folder_of(condition, study.work)
    with tempfile.TemporaryDirectory(dir=study.scratch) as temporary:
        out, passing = pathlib.Path(temporary) / "tracks.tck", pathlib.Path(temporary) / "passing.nii.gz"
        mask = read_image(folder / "mask.nii.gz")[0] > 0
        write_like(passing, mask & (read_image(folder / "fa.nii")[0] > float(threshold)), folder / "mask.nii.gz")
        command = [str(word) for word in command_of(tool, method, executable, folder, condition, threshold, passing, out)]
        environment = {**os.environ, "MRTRIX_RNG_SEED": str(condition.key), "OMP_NUM_THREADS": "1"}
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=study.program.limit_s, env=environment,
                                  stdin=subprocess.DEVNULL, cwd=temporary)
        except subprocess.TimeoutExpired as slow:
            raise TooLong(f"more than {study.program.limit_s:g} s") from slow
        if done.returncode != 0:
            raise Failed(f"exit {done.returncode}: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
        return measures(study.program.score(out, folder))


def threshold_of(options, program, getter):
    """The FA threshold of ours: given, or what the program's own help states for the getter."""
    if "fa-threshold" in options:
        return options["fa-threshold"]
    text = program.run("track", "--help").split("--fa-threshold X", 1)[1].split("default ", 1)[1].split(")", 1)[0]
    text = " ".join(text.split())
    if not text.startswith("by getter"):
        return text
    return dict(part.split() for part in text.removeprefix("by getter:").split(","))[getter]


def run(study, getters, only_conditions):
    found, lacking = there()
    for tool, reason in lacking.items():
        study.say(f"no rows of {tool}: {reason}")
    # Other noise than that by which ours was chosen: the best of many in one draw of noise is better there than elsewhere.
    conditions = [dataclasses.replace(condition, key=condition.key + len(design.KEYS))
                  for condition in study.conditions("final") if only_conditions in condition.name]
    scored = [row for row in study.results.good(study.program.version) if row["stage"] in design.STAGES]
    pending = []
    for getter in getters:
        ours = {"ours, defaults": {}}
        complete = tables.compared(scored, getter)
        if complete.names:
            chosen = complete.chosen(tables.is_allowed(scored, getter, study.limits))
            if chosen is not None:
                ours["ours, chosen"] = tables.options_of(scored, getter)[chosen]
        threshold = threshold_of(list(ours.values())[-1], study.program, getter)
        rivals = [(tool, method) for tool, method, rival in PEERS if rival == getter and tool in found]
        for condition in conditions:
            for name, options in ours.items():
                pending.append((condition, getter, name, options, None, threshold))
            for tool, method in rivals:
                pending.append((condition, getter, f"{tool} {method}", {}, (tool, method, found[tool]), threshold))

    def one_run(item):
        condition, getter, name, options, peer, threshold, key = item
        row = {"key": key, "stage": "peers", "getter": getter, "condition": condition.name, "group": condition.group,
               "candidate": name, "options": options, "select": condition.select, "program": study.program.version}
        try:
            if peer is None:
                return {**row, **scored_run(study.program, condition, getter, options, study.work,
                                           study.scratch)}
            return {**row, "fa_threshold": threshold, **peer_run(study, condition, *peer, threshold)}
        except TooLong as slow:
            return {**row, "error": str(slow), "too_long": True}
        except Failed as failed:
            return {**row, "error": str(failed)}

    # The name is part of the key: our own run with the same options is another row, of this stage.
    keyed = [(*item, key_of(item[0].name, f"peers {item[1]} {item[2]} {item[5]}", item[3],
                            study.program.version)) for item in pending]
    keyed = [item for item in keyed if not study.results.is_done(item[-1])]
    study.say(f"peers: {len(pending) - len(keyed)} of {len(pending)} runs are there")
    study.make_conditions(item[0] for item in keyed)
    for row in study.in_parallel(one_run, keyed):
        study.results.add(row)
        study.say(f"  {row['condition']}: {row['candidate']} ({row['getter']}): " +
                  (row["error"] if "error" in row else f"F1 {row['f1']:.3f}, valid {row['valid']:.3f}"))
