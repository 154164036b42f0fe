"""The workflow on this machine: its profile `test`, the bytes of single runs, -resume, what fails and how, and the two
programs that its tasks run under."""
import json
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import suite
import pipeline
from pipeline import PROJECT, Case, Run

WORKFLOWS = PROJECT / "workflows"
BIN = WORKFLOWS / "bin"
COMMON = ["--track_args", pipeline.TRACK_ARGUMENTS, "--cpus", "1", "--outdir", "results"]


def tearDownModule():
    pipeline.remove_phantoms()


def program(folder, name, text):
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def bids_errors(folder):
    validator = pathlib.Path(sys.executable).with_name("bids-validator-deno")
    done = subprocess.run([validator, "--json", folder], capture_output=True, text=True)
    issues = json.loads(done.stdout)["issues"]["issues"]
    return [(issue["code"], issue.get("location")) for issue in issues if issue["severity"] == "error"]


@suite.needs("nextflow", "bids-validator")
class Workflow(Case):
    def assert_valid_bids(self, folder):
        """No errors by bids-validator, which is seen to find one."""
        self.assertEqual(bids_errors(folder), [])
        (folder / "sub-x").mkdir()
        (folder / "sub-x" / "sub-x_thing.txt").write_text("of no standard")
        try:
            self.assertNotEqual(bids_errors(folder), [])
        finally:
            shutil.rmtree(folder / "sub-x")

    def test_the_profile_test_needs_no_argument_and_is_wholly_cached_when_resumed(self):
        run = Run(self.folder, "-profile", "test").wait()
        self.assertEqual(run.status, 0, run.said())
        outdir = self.folder / "results-test"
        names = {task["process"] for task in run.tasks(outdir)}
        self.assertEqual(names, {"PHANTOMS", "INDEX", "BATCH", "PREPARE", "TRACK", "MERGE", "REPORT", "COHORT", "COMPLETE"})
        self.assertEqual(sorted(task["name"] for task in run.tasks(outdir) if task["process"] in ("BATCH", "TRACK")),
                         ["BATCH (p1 to p2)", "BATCH (p3)", "TRACK (sub-p4 1 of 2)", "TRACK (sub-p4 2 of 2)"])
        tracks = sorted(outdir.glob("sub-*/dwi/*_tractogram.trx"))
        self.assertEqual(len(tracks), 4)
        for track in tracks:
            pipeline.cingulum("verify", track)
        self.assertTrue((outdir / "cohort.html").stat().st_size > 0)
        self.assertEqual((outdir / "pipeline_info" / "missing.tsv").read_text(), "unit\tfile\terror\n")
        versions = (outdir / "pipeline_info" / "versions.yml").read_text()
        self.assertRegex(versions, r'"TRACK":\n    cingulum: \d+\.\d+\.\d+\n')

        self.assert_valid_bids(outdir)
        # Nothing of this machine stands in what is shared.
        self.assertNotIn("DatasetLinks", json.loads((outdir / "dataset_description.json").read_text()))
        for sidecar in outdir.glob("sub-p[123]/dwi/*_tractogram.json"):
            self.assertNotIn(str(self.folder), sidecar.read_text())
        before = {path: pipeline.digest(path) for path in tracks}
        tasks = run.counts()["succeeded"]
        again = Run(self.folder, "-profile", "test", "-resume").wait()
        self.assertEqual(again.status, 0, again.said())
        # INDEX asks the tree in every run; nothing else is done twice.
        self.assertEqual((again.counts()["cached"], again.counts()["succeeded"]), (tasks - 1, 1), again.said())
        self.assertEqual({path: pipeline.digest(path) for path in tracks}, before)

    def test_ranges_merge_to_the_files_of_single_runs_and_cached_tasks_are_not_repeated(self):
        sheet = self.sheet("a", "b")
        arguments = ["--input", sheet, "--parts", "3", *COMMON]
        run = Run(self.folder, *arguments).wait()
        self.assertEqual(run.status, 0, run.said())
        units = {f"sub-{name}/dwi/sub-{name}_tract-wholebrain_tractogram": (pipeline.phantom(number), True)
                 for number, name in enumerate("ab")}
        self.assert_single_runs(self.folder / "results", units)
        self.assertEqual(sum(task["process"] == "TRACK" for task in run.tasks(self.folder / "results")), 6)
        tasks = run.counts()["succeeded"]
        again = Run(self.folder, *arguments, "-resume").wait()
        self.assertEqual((again.counts()["cached"], again.counts()["succeeded"]), (tasks, 0), again.said())

    def test_a_subject_that_fails_in_a_batch_is_listed_fails_the_run_and_is_done_again_once_mended(self):
        tree = pipeline.bids_tree(self.folder, "abc")
        series = tree / "sub-b" / "dwi" / "sub-b_dwi.nii.gz"
        whole = series.read_bytes()
        series.write_bytes(whole[:len(whole) // 2])
        arguments = ["--bids", tree, "--mode", "batch", "--batch_size", "2", "--cohort", "false", *COMMON]
        run = Run(self.folder, *arguments).wait()
        self.assertNotEqual(run.status, 0, run.said())
        outdir = self.folder / "results"
        found = lambda: sorted(path.parts[-3] for path in outdir.glob("sub-*/dwi/*_tractogram.trx"))
        self.assertEqual(found(), ["sub-a", "sub-c"])
        missing = (outdir / "pipeline_info" / "missing.tsv").read_text().splitlines()
        self.assertEqual([line.split("\t")[0] for line in missing], ["unit", "sub-b"])

        series.write_bytes(whole)
        again = Run(self.folder, *arguments, "-resume").wait()
        self.assertEqual(again.status, 0, again.said())
        self.assertEqual(found(), ["sub-a", "sub-b", "sub-c"])
        self.assert_single_runs(outdir, pipeline.batch_units("abc"), sidecars=False)
        batches = {task["name"]: task["status"] for task in again.tasks(outdir) if task["process"] == "BATCH"}
        self.assertEqual(batches, {"BATCH (a to b)": "COMPLETED", "BATCH (c)": "CACHED"})

    def test_what_failed_for_a_passing_reason_in_a_batch_is_done_again_by_resume(self):
        tree = pipeline.bids_tree(self.folder, "ab")
        # The b-values of one subject cannot be read, the first time only, by what its task sees and not by its file.
        shim = program(self.folder / "shim", "cingulum", f"""#!/usr/bin/env bash
            if [ "$1" = batch ] && [ -e staged/bids/sub-b ] && mkdir {self.folder}/was-unreadable 2>/dev/null; then
              rm staged/bids/sub-b/dwi/*.bval
              echo nothing > staged/bids/sub-b/dwi/sub-b_dwi.bval
            fi
            exec {pipeline.PROGRAM} "$@"
            """)
        arguments = ["--bids", tree, "--mode", "batch", "--batch_size", "1", "--cohort", "false", *COMMON]
        run = Run(self.folder, *arguments, before=[shim.parent]).wait()
        self.assertNotEqual(run.status, 0, run.said())
        again = Run(self.folder, *arguments, "-resume", before=[shim.parent]).wait()
        self.assertEqual(again.status, 0, again.said())
        statuses = sorted(task["status"] for task in again.tasks(self.folder / "results") if task["process"] == "BATCH")
        self.assertEqual(statuses, ["CACHED", "COMPLETED"])
        third = Run(self.folder, *arguments, "-resume", before=[shim.parent]).wait()
        self.assertEqual(third.counts()["succeeded"], 1, third.said())  # INDEX

    def test_a_wrong_series_is_not_retried_and_what_is_missing_is_listed(self):
        sheet = self.sheet("a")
        cut = self.folder / "cut"
        shutil.copytree(pipeline.phantom(0), cut)
        series = cut / "dwi.nii.gz"
        series.write_bytes(series.read_bytes()[:20000])
        sheet.write_text(sheet.read_text() + f"b,,{cut}/dwi.nii.gz,,,{cut}/mask.nii.gz\n")
        run = Run(self.folder, "--input", sheet, "--parts", "2", *COMMON).wait()
        self.assertNotEqual(run.status, 0, run.said())
        self.assertEqual(run.counts()["retries"], 0)
        self.assertGreaterEqual(run.counts()["failed"], 1)
        missing = (self.folder / "results" / "pipeline_info" / "missing.tsv").read_text()
        self.assertRegex(missing, r"(?m)^sub-b\t")

    def test_a_task_that_is_killed_is_done_again_with_twice_the_memory(self):
        sheet = self.sheet("a")
        shim = program(self.folder / "shim", "cingulum", f"""#!/usr/bin/env bash
            if [[ " $* " == *" --part 2/2 "* ]] && mkdir {self.folder}/killed 2>/dev/null; then kill -KILL $$; fi
            exec {pipeline.PROGRAM} "$@"
            """)
        run = Run(self.folder, "--input", sheet, "--parts", "2", *COMMON, before=[shim.parent]).wait()
        self.assertEqual(run.status, 0, run.said())
        self.assertEqual(run.counts()["retries"], 1)
        self.assert_single_runs(self.folder / "results", {"sub-a/dwi/sub-a_tract-wholebrain_tractogram": (pipeline.phantom(0), True)})
        tasks = [task for task in run.tasks(self.folder / "results") if task["name"] == "TRACK (sub-a 2 of 2)"]
        self.assertEqual([(task["attempt"], task["exit"]) for task in tasks], [("1", "137"), ("2", "0")])
        megabytes = [float(re.fullmatch(r"([\d.]+) MB", task["memory"]).group(1)) for task in tasks]
        self.assertAlmostEqual(megabytes[1], 2 * megabytes[0], delta=0.2)

    def test_parameters_that_are_wrong_are_named_before_any_work(self):
        run = Run(self.folder, "--input", self.sheet("a"), "--mdoe", "batch", "--mode", "some", "--parts", "many", "--task_seconds",
                  "0", *COMMON).wait()
        self.assertNotEqual(run.status, 0)
        for said in ("--mdoe is not known", "--mode some: one of auto, ranges, batch", "--parts many: a whole number",
                     "--task_seconds 0: at least 0.1"):
            self.assertIn(said, run.said())
        self.assertNotIn("Submitted process", run.said())

    def test_a_subject_that_is_named_twice_or_by_no_label_is_refused(self):
        sheet = self.sheet("a", "a")
        self.assertIn("named twice: sub-a", Run(self.folder, "--input", sheet, *COMMON).wait().said())
        sheet = self.sheet("../a")
        self.assertIn("'../a' is no label", Run(self.folder, "--input", sheet, *COMMON).wait().said())

    def test_profiles_say_what_they_promise(self):
        def configuration(profiles):
            done = subprocess.run([PROJECT / "tools/nextflow", "config", WORKFLOWS, "-flat", "-profile", profiles],
                                  cwd=self.folder, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            return done.stdout

        cluster = configuration("slurm,gpu,apptainer")
        for line in ("process.executor = 'slurm'", "params.array_size = 20", "params.use_gpu = true", "params.device = 'cuda'",
                     "apptainer.enabled = true", "process.'withName:TRACK|BATCH'.array = 20"):
            self.assertIn(line, cluster)
        self.assertIn("docker.enabled = true", configuration("docker"))

    def test_stubs_go_through_the_whole_workflow(self):
        run = Run(self.folder, "-profile", "test", "-stub").wait()
        self.assertEqual(run.status, 0, run.said())


class Schema(unittest.TestCase):
    def test_schemas_and_the_defaults_of_the_configurations_agree(self):
        for folder in (WORKFLOWS, WORKFLOWS / "oct"):
            schema = json.loads((folder / "nextflow_schema.json").read_text())
            rules = {name: rule for group in schema["$defs"].values() for name, rule in group["properties"].items()}
            block = re.search(r"params \{(.*?)\n\}", (folder / "nextflow.config").read_text(), re.S).group(1)
            values = dict(re.findall(r"^\s+(\w+)\s+= (.*)$", block, re.M))
            self.assertEqual(set(values), set(rules))
            for name, value in values.items():
                expected = "null" if "default" not in rules[name] else json.dumps(rules[name]["default"])
                self.assertEqual(value.replace("'", '"'), expected, name)

    def test_every_module_has_a_stub_and_a_page_that_names_its_outputs(self):
        modules = sorted(WORKFLOWS.rglob("modules/local/*/main.nf"))
        self.assertGreater(len(modules), 12)
        for module in modules:
            page, text = module.with_name("meta.yml").read_text(), module.read_text()
            self.assertIn(f'name: "{module.parent.name}"', page)
            for emitted in re.findall(r"emit: (\w+)", text):
                self.assertRegex(page, rf"(?m)^  {emitted}:", f"{module}: its page does not name the output {emitted}")
            if "script:" in text:
                self.assertIn("stub:", text, module)
                self.assertIn("topic: versions", text, module)

    def test_nothing_that_fails_is_ignored(self):
        for path in WORKFLOWS.rglob("*"):
            if path.suffix in (".nf", ".config"):
                for line in path.read_text().splitlines():
                    self.assertNotRegex(line.split("//")[0], "['\"]ignore['\"]", path)


class Wrappers(Case):
    def run_under(self, *words, **variables):
        return subprocess.run([str(word) for word in words], capture_output=True, text=True,
                              env=dict(os.environ, **variables))

    def test_want_of_memory_becomes_137_and_other_failures_stay_what_they_are(self):
        for message, status, expected in (
                ("cingulum track: out of memory", 1, 137),
                ("cingulum track: device cuda:0: 18.2 GiB needed, 11.6 GiB free of 79.1 GiB; ask for less", 1, 137),
                ("cingulum track: writing a.trx: 2 GiB needed, 1 GiB free in work; make room", 1, 1),
                ("cingulum track: reading a.nii.gz: it is cut short", 1, 1),
                ("cingulum track: out of memory", 2, 2), ("", 0, 0), ("", 130, 130)):
            with self.subTest(message=message, status=status):
                done = self.run_under(BIN / "memory-exit", "bash", "-c", f"echo out; echo '{message}' >&2; exit {status}")
                self.assertEqual(done.returncode, expected)
                self.assertEqual(done.stdout, "out\n")
                self.assertIn(message, done.stderr)
        self.assertEqual(self.run_under(BIN / "memory-exit", "bash", "-c", "kill -KILL $$").returncode, 137)

    def test_what_the_program_says_when_memory_does_not_suffice_is_recognised(self):
        out = self.folder / "a.trx"
        done = self.run_under(BIN / "memory-exit", pipeline.PROGRAM, "track", pipeline.phantom(0) / "dwi.nii.gz", "--dg", "prob",
                              "--device", "cpu", "--out", out, CINGULUM_MEMORY_LIMIT="20K")
        self.assertEqual(done.returncode, 137, done.stderr)

    def test_tasks_share_a_gpu_by_its_memory_and_a_large_one_is_not_overtaken_for_ever(self):
        # A program that shows one GPU of 16 GB.
        shim = program(self.folder / "shim", "cingulum", """#!/usr/bin/env bash
            printf '{\\n  "devices": [\\n    {\\n      "id": "cuda:0",\\n      "memory": {\\n        "total_bytes": 16000000000,\\n'
            printf '        "free_bytes": 1\\n      }\\n    },\\n    {\\n      "id": "cpu",\\n      "memory": {\\n        "total_bytes": 99\\n      }\\n    }\\n  ]\\n}\\n'
            """)
        log = self.folder / "log"
        task = (f"echo begin $0 $CUDA_VISIBLE_DEVICES $CINGULUM_MEMORY_LIMIT >> {log}; sleep 0.6; echo end $0 >> {log}")
        environment = dict(os.environ, PATH=f"{shim.parent}:{os.environ['PATH']}", CINGULUM_GPU_SLOTS=str(self.folder / "slots"))
        needs = [5_000_000_000] * 4 + [12_000_000_000] + [5_000_000_000] * 3
        children = []
        for number, need in enumerate(needs):
            children.append(subprocess.Popen([BIN / "gpu-slot", str(need), "bash", "-c", task, str(need)], env=environment))
            time.sleep(0.05)
        self.assertEqual([child.wait(60) for child in children], [0] * len(needs))
        in_use = most = 0
        limits = set()
        for line in log.read_text().splitlines():
            words = line.split()
            in_use += int(words[1]) * (1 if words[0] == "begin" else -1)
            most = max(most, in_use)
            if words[0] == "begin":
                self.assertEqual(words[2], "0")
                self.assertGreaterEqual(int(words[3]), int(words[1]))
                limits.add(words[3])
        self.assertEqual(limits, {"5000000000", "12000000000"})
        self.assertLessEqual(most, 16_000_000_000)
        self.assertGreaterEqual(most, 15_000_000_000)  # three at a time
        order = [line.split()[1] for line in log.read_text().splitlines() if line.startswith("begin")]
        self.assertNotEqual(order[-1], "12000000000", "the large task came last: it was overtaken")

    def test_without_a_gpu_or_a_need_the_command_just_runs(self):
        done = self.run_under(BIN / "gpu-slot", "0", "echo", "here")
        self.assertEqual((done.returncode, done.stdout), (0, "here\n"))


if __name__ == "__main__":
    suite.main()
