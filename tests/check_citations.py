#!/usr/bin/env python3
"""Checks that every file and section which a comment or a page cites is in the clone.

Read are the pages (*.md) and the comments of src, tests, bench, tools, fuzz, examples and cmake. Cited are
1. names of files: `thing.hpp`, `base/result.hpp`, `docs/devices.md`, `tracking_plan.*`, `lanes_{avx2,avx512}.hpp`. A name
   with folders must be the end of a path in the clone, or stand beside the file that cites it;
2. sections: "contract, section 4" and "docs/contract.md, section 4" need a heading with that number;
3. links of Markdown, with the heading that an #anchor names;
4. docs/... in any text, strings that a user sees included.
NAME stands for any name. Exits with 1 and the lines that cite what is not there; before that it
proves on a small clone of its own that each kind of broken citation is found.
"""
import argparse
import ast
import fnmatch
import io
import pathlib
import posixpath
import re
import subprocess
import sys
import tempfile
import tokenize

FOLDERS = ("src", "tests", "bench", "tools", "fuzz", "examples", "cmake", "docs")
SLASHED = {".hpp", ".cpp", ".cu", ".cuh", ".wgsl", ".js", ".mjs", ".in"}
# Kinds of files that are cited as a part of this project; others (.trx, .json, .nii.gz) are mostly a user's. Of those, only
# what begins with a folder of the clone is looked up.
OWN = r"hpp\.in|test\.cpp|hpp|cpp|cuh|cu|wgsl|md|py|cmake"
NAME = re.compile(
    r"(?<![\w./~$%<>{}*-])(?P<path>(?:[\w.{},*-]+/)*[\w{},*-]+(?:\.[\w{},*-]+)*\.(?:" + OWN + r"|\*(?!\*)|\{[\w.,]+\}))(?![\w/-]|\.\w)")
BELOW = re.compile(r"(?<![\w./~$%<>{}*-])(?P<path>(?:" + "|".join(FOLDERS) + r")/[\w.{},*/-]*[\w*}])")
DOCUMENT_IN_TEXT = re.compile(r"(?<![\w./-])docs/[\w/-]+\.md")
SECTION = re.compile(r"(?:(?P<document>[\w./-]+\.md|\b[Ss]pec)`?,?(?:\s+section)?|(?P<contract>\b[Cc]ontract),?\s+section)"
                     r"\s+(?P<number>\d+)")
# Documents that earlier comments named without an ending; none of them is in the clone.
UNKNOWN = re.compile(r"\bgpu-reach\b|\([Ss]pec\b|\b[Ii]ssue #?\d+\b(?! %)")
LINK = re.compile(r"!?\[[^\]]*\]\((?P<target>[^)\s]+)\)")
# Names that no file of the clone has, and why.
ELSEWHERE = {
    "thing.test.cpp": "the example of a name in CONTRIBUTING.md",
    "folder/test_thing.py": "the example of a name in tests/CMakeLists.txt",
    "first_actor.cu": "a user's file in docs/ring-gpu.md",
    "streamlines.cpp": "a user's file in docs/cpp.md",
    "name.cu": "how NVRTC calls a text in its messages",
    "cingulum_build_info.hpp": "written by the build from src/base/build_info.hpp.in",
}


def files_of(clone: pathlib.Path) -> set[str]:
    """The paths of the clone: what git tracks or would track; without git everything but hidden folders and build/."""
    if (clone / ".git").exists():
        listed = subprocess.run(["git", "-C", str(clone), "ls-files", "--cached", "--others", "--exclude-standard"],
                                capture_output=True, text=True)
        if listed.returncode == 0:
            return {name for name in listed.stdout.splitlines() if (clone / name).exists()}
    inside = (path.relative_to(clone) for path in clone.rglob("*") if path.is_file())
    return {str(path) for path in inside if path.parts[0] != "build" and not path.parts[0].startswith(".")}


def braces(pattern: str) -> list[str]:
    found = re.search(r"\{([^{}]*)\}", pattern)
    if not found:
        return [pattern]
    return [name for choice in found.group(1).split(",")
            for name in braces(pattern[:found.start()] + choice + pattern[found.end():])]


class Clone:
    def __init__(self, root: pathlib.Path):
        self.root = root
        self.files = files_of(root)
        self.folders = {str(parent) for name in self.files for parent in pathlib.PurePosixPath(name).parents}
        self.ends: dict[str, set[str]] = {}  # last component -> paths
        for name in self.files:
            self.ends.setdefault(name.rsplit("/", 1)[-1], set()).add(name)
        self.texts: dict[str, str] = {}

    def text(self, name: str) -> str:
        if name not in self.texts:
            self.texts[name] = (self.root / name).read_text(encoding="utf-8")
        return self.texts[name]

    def headings(self, name: str) -> list[str]:
        plain = re.sub(r"^```.*?^```", "", self.text(name), flags=re.M | re.S)
        return re.findall(r"^#+ +(.+?)\s*$", plain, flags=re.M)

    def anchors(self, name: str) -> set[str]:
        return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in self.headings(name)}

    def holds(self, cited: str, citing: str) -> bool:
        """Whether each name that `cited` stands for is the end of a path, or lies beside the file that cites it."""
        return all(self._one(name, citing) for name in braces(cited))

    def _one(self, cited: str, citing: str) -> bool:
        if cited in ELSEWHERE:
            return True
        cited = cited.replace("NAME", "*")
        beside = posixpath.normpath(posixpath.join(posixpath.dirname(citing), cited))
        whole = cited.split("/")[0] in FOLDERS
        for wanted in [cited] + ([] if whole else [beside]):
            if wanted in self.files or wanted.rstrip("/") in self.folders:
                return True
        if "*" in cited:
            return any(fnmatch.fnmatch(name, cited if whole else "*/" + cited) for name in self.files | self.folders)
        if whole:
            return False
        last = cited.rsplit("/", 1)[-1]
        return any(("/" + name).endswith("/" + cited) for name in self.ends.get(last, ()))


def slashed_comments(text: str) -> list[tuple[int, str]]:
    """Comments of C++, CUDA, WGSL and JavaScript; lines of // that follow each other are one comment."""
    pattern = re.compile(r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/', re.S)
    found: list[tuple[int, str]] = []
    last_end = -1
    for match in pattern.finditer(text):
        piece = match.group(0)
        if not piece.startswith(("//", "/*")):
            continue
        if piece.startswith("//") and found and text[last_end:match.start()].strip() == "" \
                and text[last_end:match.start()].count("\n") == 1:
            found[-1] = (found[-1][0], found[-1][1] + "\n" + piece[2:])
        else:
            found.append((text.count("\n", 0, match.start()) + 1, piece[2:]))
        last_end = match.end()
    return found


def hashed_comments(text: str) -> list[tuple[int, str]]:
    """Comments of shell, CMake and make; lines that follow each other are one comment."""
    found: list[tuple[int, str]] = []
    last = -1
    for number, line in enumerate(text.splitlines(), 1):
        match = re.search(r"(?:^|\s)#(?!!)(.*)", line)
        if not match:
            continue
        if number == last + 1 and line.lstrip().startswith("#"):
            found[-1] = (found[-1][0], found[-1][1] + "\n" + match.group(1))
        else:
            found.append((number, match.group(1)))
        last = number
    return found


def python_comments(text: str) -> list[tuple[int, str]]:
    found = []
    last = -1
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT:
            continue
        if token.start[0] == last + 1 and token.line.lstrip().startswith("#"):
            found[-1] = (found[-1][0], found[-1][1] + "\n" + token.string[1:])
        else:
            found.append((token.start[0], token.string[1:]))
        last = token.start[0]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node, clean=False):
            found.append((node.body[0].lineno, ast.get_docstring(node, clean=False)))
    return found


def comments_of(name: str, text: str) -> list[tuple[int, str]]:
    suffix = pathlib.PurePosixPath(name).suffix
    if suffix == ".md":
        return [(1, text)]
    if suffix in SLASHED:
        return slashed_comments(text)
    first = text.split("\n", 1)[0]
    if suffix == ".py" or ("python" in first and first.startswith("#!")):
        return python_comments(text)
    if suffix in {".cmake", ".sh"} or name.endswith(("CMakeLists.txt", "Makefile")) or first.startswith("#!"):
        return hashed_comments(text)
    return []


def is_read(name: str) -> bool:
    if name.startswith(("bench/results/", "fuzz/corpus/")) or name == "tests/check_citations.py":
        return False
    return name.endswith(".md") or name in {"Makefile", "CMakeLists.txt"} or name.split("/")[0] in FOLDERS


def section_problem(clone: Clone, of: str, number: str) -> str:
    documents = sorted(name for name in clone.ends.get(of.rsplit("/", 1)[-1], ()) if ("/" + name).endswith("/" + of))
    if not documents:
        return f"'{of}, section {number}': there is no such document in the clone"
    if not any(heading.startswith(f"{number}. ") for heading in clone.headings(documents[0])):
        return f"{documents[0]} has no section {number}"
    return ""


def link_problem(clone: Clone, name: str, target: str) -> str:
    if "://" in target or target.startswith("mailto:"):
        return ""
    path, _, anchor = target.partition("#")
    folder = clone.root / pathlib.PurePosixPath(name).parent
    linked = str((folder / path).resolve().relative_to(clone.root.resolve())) if path else name
    if linked not in clone.files and linked not in clone.folders:
        return f"the link to '{target}' leads nowhere"
    if anchor and (not linked.endswith(".md") or anchor not in clone.anchors(linked)):
        return f"the link to '{target}': {linked} has no such heading"
    return ""


def check(root: pathlib.Path) -> list[str]:
    clone = Clone(root)
    problems = []
    for name in sorted(filter(is_read, clone.files)):
        try:
            text = clone.text(name)
        except UnicodeDecodeError:
            continue

        def complain(line: int, comment: str, at: int, what: str) -> None:
            problems.append(f"{name}:{line + comment.count(chr(10), 0, at)}: {what}")

        for line, comment in comments_of(name, text):
            cited = {match.span("path"): match.group("path") for match in NAME.finditer(comment)}
            for match in BELOW.finditer(comment):
                if not any(start <= match.start("path") < end for start, end in cited):
                    cited[match.span("path")] = match.group("path")
            for (start, _), path in cited.items():
                if not clone.holds(path, name):
                    complain(line, comment, start, f"'{path}' is not in the clone")
            for match in SECTION.finditer(comment):
                wrong = section_problem(clone, match.group("document") or "docs/contract.md", match.group("number"))
                if wrong:
                    complain(line, comment, match.start(), wrong)
            for match in UNKNOWN.finditer(comment):
                complain(line, comment, match.start(), f"'{match.group(0)}' is no document of the clone")
            if name.endswith(".md"):
                for match in LINK.finditer(comment):
                    wrong = link_problem(clone, name, match.group("target"))
                    if wrong:
                        complain(line, comment, match.start(), wrong)
        for match in DOCUMENT_IN_TEXT.finditer(text):
            if match.group(0) not in clone.files:
                complain(1, text, match.start(), f"'{match.group(0)}' is not in the clone")
    return sorted(set(problems))


def self_test() -> str:
    """What is wrong with this check: it must accept a small clone as it is, and find each citation that is broken in it."""
    whole = {
        "docs/contract.md": "# Contract\n## 1. Sums\n[back](../README.md#where-to-read-on)\n",
        "docs/models.md": "See `src/base/a.hpp`, `a.*`, base/a.{hpp,cpp}, src/base/NAME.cpp and https://x.org/docs/y.html.\n",
        "README.md": "## Where to read on\n[the contract](docs/contract.md#1-sums), [docs](docs)\n",
        "src/base/a.hpp": "// As a.cpp says (contract,\n// section 1); user data: a.trx.json.\n",
        "src/base/a.cpp": 'auto url = "// no_comment.hpp"; // tests/run.py\nauto help = "see docs/models.md";\n',
        "tests/run.py": '"""As docs/contract.md, section 1, says."""\n# beside src/base/a.cpp\n',
        "tests/CMakeLists.txt": "# run.py\n",
    }
    broken = [
        ("docs/models.md", "`src/base/b.hpp`"), ("docs/models.md", "b.*"), ("docs/models.md", "a.{hpp,cu}"),
        ("docs/models.md", "[x](contract.md#2-sums)"), ("README.md", "tests/base"), ("README.md", "[x](#nowhere)"),
        ("README.md", "[x](docs/a.png)"), ("src/base/a.hpp", "// conventions.md"),
        ("src/base/a.hpp", "// contract,\n// section 2"), ("src/base/a.hpp", "// spec section 1"), ("src/base/a.hpp", "// (spec 3.1)"), ("src/base/a.hpp", "// contract.md 3.1"),
        ("src/base/a.hpp", "// as gpu-reach says"),
        ("src/base/a.hpp", "/* numerics/a.hpp */"), ("src/base/a.hpp", "// spec/a.md"),
        ("src/base/a.cpp", 'auto more = "see docs/more.md";'), ("tests/run.py", "# run2.py"),
        ("tests/run.py", "def f():\n    'As docs/contract.md, section 3.'"), ("tests/CMakeLists.txt", "# check.py, of old"),
    ]
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in whole.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding="utf-8")
        found = check(root)
        if found:
            return f"a sound clone is blamed: {found}"
        for name, text in broken:
            (root / name).write_text(whole[name] + text + "\n", encoding="utf-8")
            found = check(root)
            if not found or not all(problem.startswith(name) for problem in found):
                return f"'{text}' in {name} should be the one broken citation, found was {found}"
            (root / name).write_text(whole[name], encoding="utf-8")
    return ""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clone", type=pathlib.Path, help="the root of the clone")
    arguments = parser.parse_args()
    wrong = self_test()
    if wrong:
        sys.exit(f"this check does not work: {wrong}")
    found = check(arguments.clone)
    print("\n".join(found) if found else "everything cited is in the clone")
    sys.exit(1 if found else 0)
