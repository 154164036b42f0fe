"""A number that C++ and WGSL share is written in C++ and given to the text (wgsl_constant), never copied by hand.

Fails on a constant that a .wgsl file defines although a header has one of that name at namespace scope, or the text is
given one.
Usage: check_shared_constants.py SRC
"""

import pathlib
import re
import sys


def main() -> int:
    source = pathlib.Path(sys.argv[1])
    in_headers: dict[str, pathlib.Path] = {}
    given: dict[str, pathlib.Path] = {}
    for path in sorted(source.rglob("*.[hc]pp")):
        text = path.read_text()
        if path.suffix == ".hpp":
            # Not indented: at namespace scope.
            for name in re.findall(r"^(?:inline )?constexpr \S+(?: \S+)? (\w+) =", text, re.M):
                in_headers[name] = path
        if "wgsl_constant(" in text:
            for name in re.findall(r'\badd\("(\w+)"', text):
                given[name] = path
    shaders = sorted(source.rglob("*.wgsl"))
    failures = []
    for shader in shaders:
        for name in re.findall(r"^\s*(?:const|override)\s+(\w+)", shader.read_text(), re.M):
            for where in {in_headers.get(name), given.get(name)} - {None}:
                failures.append(f"{shader}: {name} is defined in {where}, too; give it to the text by wgsl_constant()")
    # A check that looks at nothing would pass.
    if len(shaders) < 40 or len(in_headers) < 50 or len(given) < 60:
        failures.append(f"found only {len(shaders)} shaders, {len(in_headers)} constants, {len(given)} given to texts")
    print("\n".join(failures) or f"{len(given)} constants are given to {len(shaders)} shaders")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
