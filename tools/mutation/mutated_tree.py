"""The mutated tree: a copy of the project's files with all drawn mutants in them, and its build. A file is written only
where its text changes, so that ninja compiles only what is touched."""
import concurrent.futures
import json
import os
import re
import shutil
import struct
import subprocess

from . import mutants as mutation

EMBEDDER = "tools/embed_text.py"
HERE = os.path.dirname(os.path.abspath(__file__))


class BuildFailed(Exception):
    pass


def numbers(bad):
    return " ".join(str(number) for number in sorted(bad))


_includes = {}


def included_by(command, sources):
    """The files of src/ that a unit includes, as their text says."""
    found, waiting = set(), [os.path.join(command["directory"], command["file"])]
    while waiting:
        path = waiting.pop()
        if path not in _includes:
            try:
                with open(path, errors="replace") as file:
                    names = re.findall(r'^\s*#\s*include\s*"([^"]+)"', file.read(), flags=re.M)
            except OSError:
                names = []
            _includes[path] = [os.path.join(sources, "src", name) if not os.path.isabs(name) else name for name in names]
        for name in _includes[path]:
            if name not in found and os.path.exists(name):
                found.add(name)
                waiting.append(name)
    return found


def project_files(root):
    """What git knows of or would add; every file where there is no git."""
    answer = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard", "-z"], capture_output=True)
    if answer.returncode == 0:
        return [name for name in answer.stdout.decode().split("\0") if name and os.path.isfile(os.path.join(root, name))]
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith((".", "build"))]
        found += [os.path.relpath(os.path.join(folder, name), root) for name in names]
    return found


def write_if_changed(path, data):
    try:
        with open(path, "rb") as file:
            if file.read() == data:
                return False
    except OSError:
        pass
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)
    return True


def with_choice(embedder):
    """tools/embed_text.py whose look-up hands out shaders with the mutant that is on (switch.cpp)."""
    changed = embedder.replace(b"return {literal};", b"return cingulum_chosen_text({literal});")
    changed = changed.replace(b'"#include <string_view>"', b'"#include <string_view>", \'extern "C" const char* cingulum_chosen_text(const char*);\'')
    assert changed.count(b"cingulum_chosen_text") == 2, f"{EMBEDDER} writes its look-up in another way"
    return changed


class Tree:
    """root: the project. work: the folder of everything that is made: tree/ (sources), build/, and the tables."""

    def __init__(self, root, work, venv, jobs, options=(), say=print):
        self.root, self.work, self.venv, self.jobs = root, work, venv, jobs
        self.sources = os.path.join(work, "tree")
        self.build = os.path.join(work, "build")
        self.options = list(options)
        self.say = say

    def write(self, drawn):
        """Copies the project and puts the drawn mutants in. Files that are gone in the project go here, too."""
        by_file = {}
        for mutant in drawn:
            by_file.setdefault(mutant.file, []).append(mutant)
        shaders = any(name.endswith(".wgsl") for name in by_file)
        names = project_files(self.root)
        for name in names:
            path = os.path.join(self.root, name)
            with open(path, "rb") as file:
                data = file.read()
            if name in by_file:
                data = mutation.write_switched(data, by_file[name])
            elif name == EMBEDDER and shaders:
                data = with_choice(data)
            target = os.path.join(self.sources, name)
            write_if_changed(target, data)
            if os.access(path, os.X_OK) != os.access(target, os.X_OK):
                shutil.copymode(path, target)
        kept = set(names)
        for folder, _, files in os.walk(self.sources):
            for file in files:
                path = os.path.join(folder, file)
                if os.path.relpath(path, self.sources) not in kept:
                    os.remove(path)

    def tool(self, name):
        inside = os.path.join(self.venv, "bin", name)
        return inside if os.path.exists(inside) else name

    def configure(self):
        library = os.path.join(self.build, "lib", "libcingulum_mutant.so")
        os.makedirs(os.path.dirname(library), exist_ok=True)
        source = os.path.join(HERE, "switch.cpp")
        if not os.path.exists(library) or os.path.getmtime(library) < os.path.getmtime(source):
            subprocess.run(["c++", "-std=c++20", "-O1", "-shared", "-fPIC", "-Wl,-soname,libcingulum_mutant.so", "-o",
                            library, source], check=True)
        # A copy beside the build: the header of another checkout must not make all objects stale.
        header = os.path.join(self.work, "switch.hpp")
        with open(os.path.join(HERE, "switch.hpp"), "rb") as file:
            write_if_changed(header, file.read())
        # A constant of a conditional expression is none: without -Wno-narrowing `{5}` would be refused. -O2 compiles quicker
        # than -O3, and the bits are the same. The checks of the standard library are on: an index out of range would be found by
        # the sanitizers of `make dev`, and without them it may read a zero that harms nobody.
        command = [self.tool("cmake"), "-G", "Ninja", "-S", self.sources, "-B", self.build, "-DCMAKE_BUILD_TYPE=Release",
                   "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG", f"-DCMAKE_CXX_FLAGS=-w -Wno-narrowing -D_GLIBCXX_ASSERTIONS -include {header}", f"-DCMAKE_CXX_STANDARD_LIBRARIES={library} -Wl,-rpath,{os.path.dirname(library)}",
                   "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", "-DCINGULUM_CUDA=OFF", "-DCINGULUM_BENCH=OFF",
                   f"-DCINGULUM_VENV={self.venv}", *self.options]
        answer = subprocess.run(command, capture_output=True, text=True)
        if answer.returncode:
            raise BuildFailed(answer.stdout[-2000:] + answer.stderr[-4000:])

    def compile(self, drawn, targets, checked, keep):
        """Builds; mutants that do not compile are left out. Answers those that are in the build. keep(drawn, checked) is told
        each time, so that a build that is interrupted does not begin with them again."""
        if not checked:
            drawn = self.check_headers(drawn)
            keep(drawn, True)
        while True:
            self.write(drawn)
            output, code = self.ninja(drawn, targets)
            if code == 0:
                return drawn
            bad = self.at_fault(drawn, output)
            if not bad:
                raise BuildFailed(output[-6000:])
            self.say(f"{len(bad)} mutants do not compile and are left out: {numbers(bad)}")
            drawn = [mutant for mutant in drawn if mutant.number not in bad]
            keep(drawn, True)

    def ninja(self, drawn, targets):
        """Goes on after a failure, so that one round finds many, but not after one in a header: every object that was
        compiled since would be compiled again."""
        headers = {mutant.number for mutant in drawn if mutant.file.endswith(".hpp")}
        command = ["ninja", "-C", self.build, f"-j{self.jobs}", "-k", "0", *targets]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                                   env={**os.environ, "LC_ALL": "C"})
        output, block = [], []
        with open(os.path.join(self.work, "build.log"), "w") as log:
            for line in process.stdout:
                log.write(line)
                log.flush()
                output.append(line)
                if line.startswith("["):
                    if block and self.at_fault(drawn, "".join(block)) & headers:
                        process.terminate()
                    block = []
                elif block or line.startswith("FAILED: "):
                    block.append(line)
        return "".join(output), process.wait()

    def check_headers(self, drawn):
        """Compiles, without making code, as few units as hold all mutated headers."""
        wanted = {os.path.join(self.sources, mutant.file) for mutant in drawn if mutant.file.endswith(".hpp")}
        with open(os.path.join(self.build, "compile_commands.json")) as file:
            commands = json.load(file)
        held = [(command, included_by(command, self.sources)) for command in commands]
        chosen = []
        while wanted:
            command, files = max(held, key=lambda row: len(row[1] & wanted), default=(None, set()))
            if not files & wanted:
                break
            chosen.append(command)
            wanted -= files

        def check(command):
            words = re.sub(r" -o \S+", " ", command["command"]) + " -fsyntax-only"
            answer = subprocess.run(words, shell=True, cwd=command["directory"], capture_output=True, text=True,
                                    errors="replace", env={**os.environ, "LC_ALL": "C"})
            return "FAILED: check\n" + answer.stderr if answer.returncode else ""

        while chosen:
            self.write(drawn)
            with concurrent.futures.ThreadPoolExecutor(max_workers=self.jobs) as pool:
                answers = list(pool.map(check, chosen))
            bad = self.at_fault(drawn, "\n".join(answers))
            chosen = [command for command, answer in zip(chosen, answers) if answer] if bad else []
            if bad:
                self.say(f"{len(bad)} mutants of headers do not compile and are left out: {numbers(bad)}")
            drawn = [mutant for mutant in drawn if mutant.number not in bad]
        return drawn

    def at_fault(self, drawn, output):
        """Numbers of the mutants at the lines that the compiler names; where it names none, of the file's."""
        by_file = {}
        for mutant in drawn:
            with open(os.path.join(self.root, mutant.file), "rb") as file:
                lines = file.read()[mutant.begin:mutant.end].count(b"\n")
            by_file.setdefault(os.path.join(self.sources, mutant.file), []).append((mutant.line, mutant.line + lines, mutant.number))
        bad = set()
        for block in re.split(r"^FAILED: ", output, flags=re.M)[1:]:
            here = set()
            for pattern in (r"^(\S+?):(\d+):\d+: (?:fatal )?error:", r"^(\S+?):(\d+):\d+:"):
                for path, line in re.findall(pattern, block, flags=re.M):
                    path = os.path.realpath(os.path.join(self.build, path))
                    here |= {number for first, last, number in by_file.get(path, ()) if first <= int(line) <= last}
                if here:
                    break
            if not here:
                for path in set(re.findall(r"[\w./-]+\.[ch]pp", block)):
                    path = os.path.realpath(os.path.join(self.build, path))
                    here |= {number for _, _, number in by_file.get(path, ())}
            bad |= here
        return bad

    def numbers_in_code(self):
        """The numbers of the mutants that the compiler left in some program or library."""
        numbers = set()
        for folder in ("bin", "lib"):
            where = os.path.join(self.build, folder)
            for name in sorted(os.listdir(where)) if os.path.isdir(where) else ():
                path = os.path.join(where, name)
                if os.path.islink(path) or open(path, "rb").read(4) != b"\x7fELF":
                    continue
                out = os.path.join(self.work, "section")
                subprocess.run(["objcopy", "-O", "binary", "--only-section=.cgl_mutants",
                                "--set-section-flags", ".cgl_mutants=alloc", path, out], capture_output=True)
                if os.path.exists(out):
                    data = open(out, "rb").read()
                    numbers |= {number for (number,) in struct.iter_unpack("<I", data[:len(data) // 4 * 4])}
                    os.remove(out)
        return numbers

    def tests(self):
        """What ctest would run, as ctest tells it."""
        answer = subprocess.run([self.tool("ctest"), "--test-dir", self.build, "--show-only=json-v1"], capture_output=True,
                                text=True, check=True)
        return json.loads(answer.stdout)["tests"]
