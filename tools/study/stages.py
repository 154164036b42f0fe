"""The stages of the study: which runs come next, given the results so far, and who runs them. Candidates of a stage follow
from the results alone, so a study that was stopped goes on where it was."""
import atexit
import concurrent.futures
import dataclasses
import functools
import os
import shutil
import sys
import time

from . import design
from .criterion import Comparison
from .program import Failed, TooLong, scored_run
from .results import key_of


def comparison(rows, getter, condition_names):
    """Candidates of a getter that ran in all of these conditions."""
    wanted = set(condition_names)
    rows = [row for row in rows if row["getter"] == getter and row["condition"] in wanted]
    conditions_of = {}
    for row in rows:
        conditions_of.setdefault(row["candidate"], set()).add(row["condition"])
    return compare([row for row in rows if conditions_of[row["candidate"]] == wanted])


def compare(rows, name_of=lambda row: row["candidate"]):
    groups = {row["condition"]: row["group"] for row in rows}
    return Comparison([(name_of(row), row["condition"], row) for row in rows], groups.get)


def scratch_folder(work):
    """One for this process. Those of processes that were killed are removed."""
    for left in work.glob("scratch-*"):
        try:
            os.kill(int(left.name.removeprefix("scratch-")), 0)
        except ProcessLookupError:
            shutil.rmtree(left, ignore_errors=True)
        except (PermissionError, ValueError):
            pass
    folder = work / f"scratch-{os.getpid()}"
    folder.mkdir(parents=True, exist_ok=True)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


class Study:
    def __init__(self, program, results, work, jobs=1, minutes=None, small=False, limits=None, say=print):
        self.program, self.results, self.work, self.jobs, self.say = program, results, work, jobs, say
        self.end = None if minutes is None else time.monotonic() + 60 * minutes
        self.small, self.limits = small, limits or {}
        self.out_of_time = False
        self.also = {}  # candidates that were named: getter -> options
        self.scratch = scratch_folder(work)

    # What to run

    def conditions(self, stage):
        """In a small study the coarse conditions of 2.5 mm, and for the last stage the small presets of 2 mm, too."""
        if not self.small:
            return design.stage_conditions(stage)
        pairs = design.COARSE_PAIRS[:1] if stage != "final" else design.COARSE_PAIRS
        chosen = design.conditions_of(pairs)
        return [condition if condition.preset != "brain" else
                dataclasses.replace(condition, select=design.KEPT_IN_BRAIN_OF_SMALL_STUDY)
                for condition in chosen if condition.preset != "brain" or condition.voxel_mm == 2.5]

    def first_candidates(self, getter):
        return [options for options in design.first_candidates(getter, 8 if self.small else None)
                if design.is_within(options, self.limits)]

    def best(self, getter, stage, count, among):
        """The best of these candidates in the conditions of a stage."""
        options = {design.candidate_name(options): options for options in among}
        rows = [row for row in self.results.good(self.program.version) if row["candidate"] in options]
        found = comparison(rows, getter, [condition.name for condition in self.conditions(stage)])
        return [options[name] for name in found.ranked()[:count]]

    def run_getter(self, getter):
        """All stages of one getter, as far as the time reaches. Each chooses among the candidates of those before it, never
        among all that the file holds: a study that is resumed would otherwise look at more than one that runs through."""
        survivors, centres, rounds = design.SURVIVORS, design.CENTRES, design.NEIGHBOURHOODS
        if self.small:
            survivors, centres, rounds = {"middle": 4, "final": 4}, 1, 1
        first = self.first_candidates(getter)
        self.run_all("coarse", getter, first)
        known = [] if self.is_late() else self.best(getter, "coarse", survivors["middle"], first)
        self.run_all("middle", getter, known)
        for _ in range(rounds):
            around = [] if self.is_late() else [
                other for options in self.best(getter, "middle", centres, known)
                for other in design.neighbours(getter, options) if design.is_within(other, self.limits)]
            self.run_all("middle", getter, design.unique(around))
            known = design.unique(known + around)
        if not self.is_late():
            final = self.best(getter, "middle", survivors["final"], known)
            self.run_all("final", getter, design.unique(final + list(design.ANCHORS[getter]) +
                                                        list(design.REFERENCES[getter]) + self.also.get(getter, [])))

    # Running

    def run_all(self, stage, getter, candidates):
        """What is not there of every candidate in every condition of the stage."""
        if self.is_late():
            return
        pending = []
        for condition in self.conditions(stage):
            for options in candidates:
                key = key_of(condition.name, getter, options, self.program.version)
                if not self.results.is_done(key):
                    pending.append((condition, options, key))
        total = len(self.conditions(stage)) * len(candidates)
        self.say(f"{getter} {stage}: {len(candidates)} candidates in {len(self.conditions(stage))} conditions, "
                 f"{total - len(pending)} of {total} runs are there")
        if not pending:
            return
        self.make_conditions(condition for condition, _, _ in pending)
        pending.sort(key=lambda item: (item[0].preset != "brain", item[0].voxel_mm))
        began = time.monotonic()
        for count, row in enumerate(self.in_parallel(functools.partial(self.one_run, stage, getter), pending), 1):
            self.results.add(row)
            if "error" in row:
                self.say(f"  {row['condition']}: {row['candidate']}: {row['error']}")
            if count % 50 == 0 or count == len(pending):
                self.say(f"  {count} of {len(pending)} runs, {time.monotonic() - began:.0f} s")

    def make_conditions(self, conditions):
        """Each once, before the runs that share it."""
        missing = [condition for condition in dict.fromkeys(conditions)
                   if not self.program.has_folder_of(condition, self.work)]
        # The largest first, so that the last job to end is a small one.
        missing.sort(key=lambda condition: (condition.preset != "brain", condition.voxel_mm))
        for condition in self.in_parallel(self.make_condition, missing):
            self.say(f"  made {condition.name}")

    def make_condition(self, condition):
        self.program.folder_of(condition, self.work)
        return condition

    def one_run(self, stage, getter, item):
        condition, options, key = item
        row = {"key": key, "stage": stage, "getter": getter, "condition": condition.name, "group": condition.group,
               "candidate": design.candidate_name(options), "options": options, "select": condition.select,
               "program": self.program.version}
        try:
            return {**row, **scored_run(self.program, condition, getter, options, self.work, self.scratch)}
        except TooLong as slow:
            return {**row, "error": str(slow), "too_long": True}
        except Failed as failed:
            return {**row, "error": str(failed)}

    def is_late(self):
        if self.end is not None and time.monotonic() >= self.end:
            self.out_of_time = True
        return self.out_of_time

    def in_parallel(self, body, items):
        """Results as they come; no item begins after the time is over, those that run are waited for."""
        items = iter(items)
        running = set()
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            while True:
                while len(running) < self.jobs and not self.is_late():
                    item = next(items, None)
                    if item is None:
                        break
                    running.add(pool.submit(body, item))
                if not running:
                    return
                done, running = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
                for future in done:
                    yield future.result()

    def run(self, getters):
        for getter in getters:
            if not self.is_late():
                self.run_getter(getter)
        if self.out_of_time:
            print("the minutes are over; the same command goes on from here", file=sys.stderr)
        return not self.out_of_time
