"""What the package does besides computing: imports, errors, signals, forks, threads, logs, progress."""

import json
import logging
import os
import pickle
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import cingulum


def python(code, **environment):
    """Runs code in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )


def test_import_loads_neither_the_library_nor_other_packages_and_leaves_signals_alone():
    done = python(
        """
        import signal, sys, threading
        before = [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGHUP)]
        import numpy
        names = set(sys.modules)
        import cingulum
        added = {name.split(".")[0] for name in set(sys.modules) - names}
        assert added <= {"cingulum", "queue", "_queue", "heapq", "_heapq", "__future__"}, added
        assert "cingulum._native" not in sys.modules
        cingulum.track
        assert "cingulum._native" in sys.modules
        for name in ("nibabel", "dipy", "trx", "tqdm", "torch", "cupy"):
            assert name not in sys.modules, name
        assert before == [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGHUP)]
        assert threading.active_count() == 1
        with open("/proc/self/maps") as maps:
            text = maps.read()
        assert "libcuda" not in text and "wgpu" not in text and "vulkan" not in text
        """
    )
    assert done.returncode == 0, done.stderr


def test_runs_from_file_to_file_go_without_numpy_until_an_array_is_wanted(tmp_path, phantom):
    """numpy is half of what a process that tracks into a file would hold besides the run. Options of every type are given:
    each may be a value of numpy, which must not be asked about those that are Python's."""
    done = python(
        f"""
        import pathlib, sys, typing
        import cingulum
        folder, out = pathlib.Path({str(phantom)!r}), pathlib.Path({str(tmp_path)!r})
        common = dict(device="cpu", threads=1, progress=False, force=True)
        mask = folder / "mask.nii.gz"
        made = cingulum.track(folder / "dwi.nii.gz", mask=mask, dg="prob", max_angle=30.0, step_size="0.5vox", nseeds=50,
                              include=[str(mask), mask], seed=7, out=out / "made.trx", **common)
        cingulum.track([folder / "dwi.nii.gz"], mask=str(mask), seed_grid=(1, 1, 2), select=20, out=out / "grid.tck", **common)
        assert made["result"]["seeds"] == 50, made["result"]
        cingulum.info(out / "made.trx")
        cingulum.convert(out / "made.trx", out / "made.tck")
        cingulum.devices()
        assert not [name for name in sys.modules if name.split(".")[0] == "numpy"]
        hints = typing.get_type_hints(cingulum.Tractogram.__init__)
        import numpy.typing
        assert hints["positions"] == numpy.typing.ArrayLike
        assert len(cingulum.Tractogram.load(out / "made.trx")) == made["result"]["kept"] > 0
        """
    )
    assert done.returncode == 0, done.stderr


def test_every_name_is_there():
    for name in cingulum.__all__:
        assert getattr(cingulum, name) is not None
    assert set(cingulum.__all__) <= set(dir(cingulum))
    with pytest.raises(AttributeError, match="no attribute 'trak'"):
        cingulum.trak


def test_every_kind_of_error_has_a_class_that_is_pythons_own():
    from cingulum import _errors

    source = os.path.join(os.path.dirname(os.path.realpath(_errors.__file__)), "../../src/base/result.hpp")
    with open(source, encoding="utf-8") as file:
        body = re.search(r"enum class ErrorKind \{(.*?)\};", file.read(), re.S).group(1)
    kinds = re.findall(r"^\s*([a-z_]+),", body, re.M)
    assert len(kinds) == 14
    assert sorted(_errors._CLASSES) == sorted(kinds)
    for kind, cls in _errors._CLASSES.items():
        assert cls.kind == kind
        others = [base for base in cls.__mro__ if base.__module__ in {"builtins", "queue", "_queue"}]
        assert any(base not in {Exception, BaseException, object} for base in others), cls
        error = cls("a text", argument="x", file="f")
        assert str(error) == "a text" and error.args == ("a text",)
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), again.argument, again.file) == (cls, "a text", "x", "f")


def test_native_kinds_become_their_classes():
    """The words that the library calls its kinds by: error_kind_name."""
    from cingulum import _errors

    source = os.path.join(os.path.dirname(os.path.realpath(_errors.__file__)), "../../src/base/result.cpp")
    with open(source, encoding="utf-8") as file:
        names = dict(re.findall(r'case ErrorKind::(\w+): return "([^"]+)";', file.read()))
    assert len(names) == 14
    for kind, name in names.items():
        assert _errors.make_error(name, "text", "", "").kind == kind


def test_messages_name_arguments_as_python_spells_them(tmp_path, phantom):
    with pytest.raises(ValueError, match=r"^max_angle") as caught:
        cingulum.track(phantom / "dwi.nii.gz", max_angle=100)
    assert isinstance(caught.value, cingulum.CingulumError)
    assert caught.value.kind == "invalid_argument"
    assert "--" not in str(caught.value)
    with pytest.raises(ValueError) as caught:
        cingulum.track(phantom / "dwi.nii.gz", mask=phantom / "mask.nii.gz", nseeds=5, seeds_per_voxel=2)
    assert "seeds_per_voxel" in str(caught.value) and "--" not in str(caught.value)
    with pytest.raises(FileNotFoundError, match="no such file"):
        cingulum.track(tmp_path / "absent.nii.gz")
    (tmp_path / "there.trx").write_text("")
    with pytest.raises(FileExistsError, match="force") as caught:
        cingulum.track(phantom / "dwi.nii.gz", out=tmp_path / "there.trx")
    assert isinstance(caught.value, cingulum.AlreadyExistsError) and "--" not in str(caught.value)
    (tmp_path / "bad.nii").write_bytes(b"nothing of the kind" * 40)
    with pytest.raises(cingulum.CingulumError) as caught:
        cingulum.info(tmp_path / "bad.nii")
    assert caught.value.kind == "corrupt" or "bad.nii" in str(caught.value)


def test_unknown_keywords_are_refused_with_the_nearest():
    with pytest.raises(TypeError, match="did you mean 'max_angle'"):
        cingulum.track(max_angel=3)
    with pytest.raises(TypeError, match="did you mean 'model'"):
        cingulum.fit(np.zeros((2, 2, 2, 3)), modle="dti")
    with pytest.raises(TypeError, match="no argument"):
        cingulum.score("a.trx", quite_another=1)


def test_ctrl_c_is_keyboard_interrupt_soon_and_leaves_nothing(tmp_path, phantom):
    code = f"""
        import sys, time, cingulum
        print("begin", flush=True)
        try:
            cingulum.track({str(phantom / "dwi.nii.gz")!r}, mask={str(phantom / "mask.nii.gz")!r}, nseeds=50_000_000,
                           device="cpu", out={str(tmp_path / "t.trx")!r}, progress=lambda event: print(event.label, flush=True))
        except KeyboardInterrupt:
            print("interrupted", time.monotonic(), flush=True)
        # The process goes on, and can track again.
        print(len(cingulum.track({str(phantom / "dwi.nii.gz")!r}, mask={str(phantom / "mask.nii.gz")!r}, nseeds=50, device="cpu")))
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        for line in process.stdout:
            if line.startswith("tracking"):
                break
        time.sleep(0.3)
        sent = time.monotonic()
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0, errors
    said = [line for line in rest.splitlines() if line.startswith("interrupted")]
    assert said, rest + errors
    # Not a measurement: a machine may be busy. What must not be is a run that goes on for its minutes.
    assert float(said[0].split()[1]) - sent < 10
    assert int(rest.splitlines()[-1]) > 0
    assert list(tmp_path.iterdir()) == []


def test_forked_children_are_refused_and_those_of_an_unused_parent_work(phantom):
    track = f'cingulum.track({str(phantom / "dwi.nii.gz")!r}, mask={str(phantom / "mask.nii.gz")!r}, nseeds=20, device="cpu")'
    code = """
        import os, sys, cingulum
        {before}
        pid = os.fork()
        if pid == 0:
            try:
                {track}
                os._exit(10)
            except RuntimeError as error:
                os._exit(20 if "fork" in str(error) and isinstance(error, cingulum.CingulumError) else 30)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    """
    assert python(code.format(before=track, track=track)).stdout.strip() == "20"
    assert python(code.format(before="cingulum.track", track=track)).stdout.strip() == "10"


def test_threads_track_at_once_with_the_same_result(phantom):
    results = [None] * 4

    def work(i):
        results[i] = cingulum.track(
            phantom / "dwi.nii.gz", mask=phantom / "mask.nii.gz", nseeds=300, dg="prob", device="cpu", threads=1, seed=i % 2
        )

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert np.array_equal(results[0].positions, results[2].positions)
    assert np.array_equal(results[1].positions, results[3].positions)
    assert not np.array_equal(results[0].positions, results[1].positions)


def test_log_lines_go_to_logging(phantom, caplog):
    with caplog.at_level(logging.INFO, logger="cingulum"):
        cingulum.track(phantom / "dwi.nii.gz", mask=phantom / "mask.nii.gz", nseeds=20)
    texts = [record.getMessage() for record in caplog.records if record.name == "cingulum"]
    assert any(text.startswith("device auto: tracking on") for text in texts), texts
    assert not any("--" in text for text in texts)


def test_progress_is_told_in_the_calling_thread_and_may_end_the_run(phantom):
    events = []

    def watch(event):
        assert threading.current_thread() is threading.main_thread()
        events.append(event)

    cingulum.track(phantom / "dwi.nii.gz", mask=phantom / "mask.nii.gz", nseeds=2000, device="cpu", progress=watch)
    labels = {event.label for event in events}
    assert "tracking" in labels and len(labels) > 1
    last = [event for event in events if event.label == "tracking" and event.state == "finish"]
    assert len(last) == 1 and last[0].done == 2000 and last[0].total == 2000 and last[0].unit == "seeds"

    class Enough(Exception):
        pass

    def stop(event):
        raise Enough

    with pytest.raises(Enough):
        cingulum.track(phantom / "dwi.nii.gz", mask=phantom / "mask.nii.gz", nseeds=50_000_000, device="cpu", progress=stop)


def test_devices_have_reasons_where_they_are_absent():
    found = cingulum.devices()
    by_backend = {device.backend for device in found}
    assert by_backend == {"cuda", "webgpu", "cpu"}
    for device in found:
        assert device.available == (device.reason == "")
    assert [device for device in found if device.id == "cpu" and device.available]


def test_looking_for_devices_says_nothing_on_stderr():
    environment = {name: value for name, value in os.environ.items() if name != "XDG_RUNTIME_DIR"}
    code = "import cingulum; cingulum.devices()"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_the_console_is_the_program(program):
    for words in (["--version"], ["track", "--help"], ["settings"], ["nonsense"], ["track", "--max-angle", "100"]):
        ours = subprocess.run([sys.executable, "-m", "cingulum", *words], capture_output=True, text=True, check=False)
        theirs = subprocess.run([program, *words], capture_output=True, text=True, check=False)
        assert (ours.returncode, ours.stdout, ours.stderr) == (theirs.returncode, theirs.stdout, theirs.stderr), words


def test_memory_stays_flat(phantom):
    """Grown memory of further runs, once everything was loaded: a run's streamlines alone are some 20 MB here."""
    done = python(
        f"""
        import os, cingulum
        def resident():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        with cingulum.Tracker({str(phantom / "dwi.nii.gz")!r}, mask={str(phantom / "mask.nii.gz")!r}, device="cpu", dg="prob") as tracker:
            for i in range(10):
                made = tracker.track(nseeds=3000)
            before = resident()
            for i in range(200):
                made = tracker.track(nseeds=500)
                for batch in tracker.batches(nseeds=500):
                    break
            grown = resident() - before
        print(made.positions.nbytes, grown)
        assert grown < 8 << 20, grown
        """
    )
    assert done.returncode == 0, done.stderr


def test_peak_memory_does_not_grow_with_the_seeds_that_go_to_a_file(tmp_path):
    """Both runs have ranges of the same size, three of which are in memory at a time: further ones need no more. A job runs
    in a thread of its own, and malloc gives it an arena that does not shrink: buffers that are freed and allocated again
    for ranges of different lengths made it 14 MB larger here."""
    import nibabel

    peaks = np.zeros((128, 16, 16, 3), np.float32)
    peaks[..., 0] = 1
    peaks[np.random.default_rng(1).random(peaks.shape[:3]) < 0.01] = 0  # holes, where streamlines end
    nibabel.save(nibabel.Nifti1Image(peaks, np.eye(4)), tmp_path / "peaks.nii")
    peak = {}
    for seeds in (3000, 12000):
        done = python(
            f"""
            import resource, cingulum
            made = cingulum.track(peaks={str(tmp_path / "peaks.nii")!r}, device="cpu", threads=2, dg="closest", step_size=0.1,
                                  nseeds={seeds}, chunk_size=1000, out={str(tmp_path / "made.trx")!r}, force=True, progress=False)
            print(made["result"]["kept"], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
            """
        )
        assert done.returncode == 0, done.stderr
        kept, peak[seeds] = map(int, done.stdout.split())
        assert kept > 0.9 * seeds
    print(peak)
    assert peak[12000] - peak[3000] < 5 << 20, peak
