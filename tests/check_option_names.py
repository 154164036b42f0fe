#!/usr/bin/env python3
"""Checks that no text below cli/ spells an option of the command line.

A function of the library is called by the command line, by Python and by other programs: it names an argument with
argument_name("max_angle") (base/argument_name.hpp), and the edge that shows the text spells it. String literals of
src/**, except src/cli and tests, hold no `--name`. Exits with 1 and the offending lines otherwise.
"""
import argparse
import pathlib
import re
import sys

# Options of other programs: nvrtc's, those of `cingulum fit` and `cingulum track` that are run as children, and the commands
# that a page shows beside its answer and a table of failures has for each of its lines. The help of a table is written for the command line; other edges put their names there.
EXEMPT = {"device/cuda/nvrtc_library.cpp", "measure/tracking_peers.cpp", "measure/typed_runs.cpp", "view/page_request.cpp",
          "view/exported_tracks.cpp", "runs/batch/batch_run.cpp"}
TABLES = re.compile(r"^runs/.*_(fields|parameters)\.cpp$")

STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
OPTION = re.compile(r"(?<![\w-])--[a-z{]")


def without_comment(line: str) -> str:
    """Cuts a // comment off that does not stand inside a string."""
    position = 0
    while (slashes := line.find("//", position)) >= 0:
        around = next((m for m in STRING.finditer(line) if m.start() < slashes < m.end()), None)
        if around is None:
            return line[:slashes]
        position = around.end()
    return line


def check(source: pathlib.Path) -> list[str]:
    problems = []
    looked_at = 0
    for path in sorted(source.rglob("*")):
        relative = path.relative_to(source)
        if path.suffix not in {".hpp", ".cpp", ".cu", ".cuh"} or path.name.endswith(".test.cpp"):
            continue
        if relative.parts[0] == "cli" or relative.as_posix() in EXEMPT or TABLES.match(relative.as_posix()):
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for text in STRING.findall(without_comment(line)):
                looked_at += 1
                if OPTION.search(text):
                    problems.append(f"{relative}:{number}: {text} spells an option; use argument_name(\"...\")")
    if looked_at < 1000:
        problems.append(f"only {looked_at} texts were looked at: is {source} the folder src/?")
    return problems


def selfcheck() -> list[str]:
    """The check finds what it is for, and nothing else."""
    found = {'fail("use --force")': 1, 'fail("--{} {}", x)': 1, '// "use --force"': 0, 'f("a--b", "x -- y", i--)': 0,
             'f("http://x --force")': 1}
    return [line for line, count in found.items()
            if sum(bool(OPTION.search(t)) for t in STRING.findall(without_comment(line))) != count]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=pathlib.Path, help="the folder src/")
    source = parser.parse_args().source
    problems = [f"the check itself fails on: {line}" for line in selfcheck()] + check(source)
    print("\n".join(problems) if problems else "no text below cli/ spells an option")
    sys.exit(1 if problems else 0)
