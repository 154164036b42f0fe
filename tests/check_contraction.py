#!/usr/bin/env python3
"""Checks that nothing that computes by the bit contract is contracted: no product and sum rounded once.

1. Every compile command of src/ and of the parity tests carries the contract's flags, and none that loosens them.
2. No host object of theirs holds a fused multiply-add instruction; of tests those are looked at that are compiled for
   a processor which has one.
3. The PTX in every CUDA object has only operations that round to nearest, no fma, no flushing of subnormals, no
   approximate division or root.
4. In its machine code fused instructions stand only in functions that divide or take roots: exact division and root are
   themselves made of them.
5. Every file of src/ that is not a test is in an object that was looked at; a file of several (cmake/Unity.cmake) counts
   for all that it includes.
The detectors are first tried on code that is contracted on purpose: a check that cannot fail proves nothing.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

HOST_FUSED = r"\b(vfn?m(add|sub)(addsub|subadd)?[0-9]*[ps][sdh]|vfmaddsub\w*|vfmsubadd\w*|fmadd|fmsub|fnmadd|fnmsub|fmla|fmls)\b"
PTX_FORBIDDEN = (r"\b(fma\.|mad\.(rn|rz|rm|rp)\.f|[a-z0-9.]+\.ftz\b|div\.(approx|full)|sqrt\.approx|rsqrt|rcp\.approx|sin\.|cos\.|"
                 r"lg2\.|ex2\.)")
PTX_SAYS_NOTHING = r"^\s*(//|\.loc|\.file)"
UNITY_SOURCE = re.compile(r"/Unity/unity_\w+\.cxx$")
UNITY_INCLUDE = re.compile(r'^#include "(.+)"$', re.MULTILINE)
SASS_FUNCTION = re.compile(r"^\s*Function : (\S+)")
SASS_TOLD = r"Function : .*|\b(FFMA|DFMA)\b|\bMUFU\.(RCP|RSQ)"  # the last: the start of every division and root
CXX_NEEDED = ["-ffp-contract=off", "-fno-tree-slp-vectorize"]
CUDA_NEEDED = ["-fmad=false", "-prec-div=true", "-prec-sqrt=true", "-ftz=false"]
FORBIDDEN = re.compile(r"-ffast-math|-Ofast|-funsafe|-fassociative|use_fast_math|-ffp-contract=(fast|on)|-fmad=true|-prec-\w+=false|-ftz=true")

CONTRACTED_CPP = "float f(float a, float b, float c) { return a * b + c; }\n"
CONTRACTED_CU = "__global__ void f(float* x) { x[0] = x[1] * x[2] + x[3]; }\n"
DIVIDING_CU = "__global__ void f(float* x) { x[0] = x[1] * x[2] + x[3]; x[4] = x[5] / sqrtf(x[6]); }\n"


def run(command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def grep(command, *searches):
    """What a command prints, through these searches, as lines. The code of an object is millions of them."""
    environment = dict(os.environ, LC_ALL="C")
    programs = [subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)]
    for search in searches:
        programs.append(subprocess.Popen(["grep", "-a", *search], stdin=programs[-1].stdout, stdout=subprocess.PIPE, env=environment))
        programs[-2].stdout.close()
    found = programs[-1].communicate()[0].decode()
    # grep's 1: nothing was found.
    if programs[0].wait() != 0 or any(program.wait() > 1 for program in programs[1:]):
        raise RuntimeError(f"{shlex.join(command)} or its search failed")
    return found.splitlines()


def host_fused(path):
    return sorted(set(grep(["objdump", "-d", "--no-show-raw-insn", str(path)], ["-oE", HOST_FUSED])))


def ptx_in(cuobjdump, path):
    """The command that prints the PTX which an object carries for GPUs to come: nothing where it has machine code alone."""
    return [cuobjdump, "-ptx", str(path)]


def is_ptx(command):
    return bool(grep(command, ["-F", ".target"]))


def ptx_forbidden(command):
    return sorted(set(grep(command, ["-vE", PTX_SAYS_NOTHING], ["-oE", PTX_FORBIDDEN])))


def ptx_of(nvcc, arguments, source, folder):
    """The command that prints the PTX which a compile command makes, by running it again for one virtual architecture: for
    builds whose objects carry none."""
    out = pathlib.Path(folder) / "out.ptx"
    run([nvcc, *arguments, "-arch=compute_75", "-ptx", "-o", str(out), str(source)])
    return ["cat", str(out)]


def sass_fused(cuobjdump, path):
    """Functions of an object that hold fused instructions without dividing or taking roots."""
    functions = {}
    name = None
    for line in grep([cuobjdump, "-sass", str(path)], ["-oE", SASS_TOLD]):
        if match := SASS_FUNCTION.match(line):
            name = match.group(1)
            functions[name] = [False, False]
        elif name:
            functions[name][0 if "FMA" in line else 1] = True
    return functions, sorted(name for name, (fused, divides) in functions.items() if fused and not divides)


def cuda_object(nvcc, arguments, source, folder):
    """An object with PTX and machine code, as the build makes them."""
    out = folder / "out.o"
    run([nvcc, *arguments, "-gencode=arch=compute_75,code=compute_75", "-gencode=arch=compute_90,code=sm_90", "-c", "-o",
         str(out), str(source)])
    return out


def strip_for_ptx(words):
    """The options of a compile command without output, input and code generation."""
    kept, skip = [], False
    for word in words[1:]:
        if skip:
            skip = False
            continue
        if word in ("-o", "-MF", "-MT", "-x", "-c"):
            skip = word != "-c"
            continue
        if word.startswith(("--generate-code", "-gencode", "-MD")) or word.endswith((".cu", ".o")):
            continue
        kept.append(word)
    return kept


def prove_the_detectors(compiler, nvcc, cuobjdump):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "f.cpp").write_text(CONTRACTED_CPP)
        flags = ["-mfma"] if "x86_64" in run([compiler, "-dumpmachine"]) else []
        run([compiler, "-O2", *flags, "-ffp-contract=fast", "-c", str(folder / "f.cpp"), "-o", str(folder / "f.o")])
        if not host_fused(folder / "f.o"):
            return "the host detector does not see a contraction that is there"
        run([compiler, "-O2", *flags, "-ffp-contract=off", "-c", str(folder / "f.cpp"), "-o", str(folder / "f.o")])
        if host_fused(folder / "f.o"):
            return "-ffp-contract=off does not stop the compiler"
        if nvcc:
            (folder / "f.cu").write_text(CONTRACTED_CU)
            contracted = ptx_in(cuobjdump, cuda_object(nvcc, ["-use_fast_math"], folder / "f.cu", folder))
            if not any(found.startswith("fma.") for found in ptx_forbidden(contracted)):
                return "the PTX detector does not see a contraction that is there"
            if not sass_fused(cuobjdump, cuda_object(nvcc, [], folder / "f.cu", folder))[1]:
                return "the detector of machine code does not see a contraction that is there"
            (folder / "f.cu").write_text(DIVIDING_CU)
            compiled = cuda_object(nvcc, CUDA_NEEDED, folder / "f.cu", folder)
            if not grep(ptx_in(cuobjdump, compiled), ["-F", "div.rn"]):
                return "the PTX of an object is not seen"
            if found := ptx_forbidden(ptx_in(cuobjdump, compiled)):
                return f"the contract's flags leave {found} in PTX"
            if found := sass_fused(cuobjdump, compiled)[1]:
                return f"the contract's flags leave fused instructions in {found}"
    return None


class Looked:
    """What one compile command was found to be."""

    def __init__(self):
        self.problems, self.kernels = [], 0


def sources_of(entry):
    """The files of a compile command: one, or those that a file of several includes."""
    path = pathlib.Path(entry["file"])
    if UNITY_SOURCE.search(path.as_posix()):
        return [pathlib.Path(name).resolve() for name in UNITY_INCLUDE.findall(path.read_text())]
    return [path.resolve()]


def is_test(entry):
    return all(path.name.endswith(".test.cpp") for path in sources_of(entry))


def look(entry, name, cuobjdump):
    """Looks at the command and the object of one entry."""
    looked = Looked()
    words = shlex.split(entry["command"])
    is_cuda = entry["file"].endswith(".cu")
    output = pathlib.Path(entry["directory"]) / words[words.index("-o") + 1]
    for needed in CUDA_NEEDED if is_cuda else CXX_NEEDED:
        if needed not in words:
            looked.problems.append(f"{name}: compiled without {needed}")
    if loosening := FORBIDDEN.search(entry["command"]):
        looked.problems.append(f"{name}: compiled with {loosening.group(0)}")
    if is_cuda:
        with tempfile.TemporaryDirectory() as folder:
            ptx = ptx_in(cuobjdump, output)
            if not is_ptx(ptx):
                ptx = ptx_of(words[0], strip_for_ptx(words), entry["file"], folder)
            if found := ptx_forbidden(ptx):
                looked.problems.append(f"{name}: its PTX has {', '.join(found)}")
        functions, found = sass_fused(cuobjdump, output)
        looked.kernels = len(functions)
        if found:
            looked.problems.append(f"{name}: fused instructions without a division in {', '.join(found)}")
    elif (not is_test(entry) or any(word.startswith("-m") for word in words)) and (found := host_fused(output)):
        looked.problems.append(f"{name}: its object has {', '.join(found)}")
    return looked


def not_covered(source, covered):
    """Files of src/ that are no tests, belong to the build, and were in no object. Of a backend either the files are
    built or, in its place, those named not_compiled.cpp."""
    backend_of = lambda path: next((part for part in path.parts if part in ("cuda", "webgpu", "beast")), None)
    compiled = {backend_of(path.relative_to(source)) for path in covered if path.stem != "not_compiled"}
    missing = []
    for path in sorted([*(source / "src").rglob("*.cpp"), *(source / "src").rglob("*.cu")]):
        backend = backend_of(path.relative_to(source))
        left_out = backend is not None and (path.stem == "not_compiled") == (backend in compiled)
        if not (path in covered or path.name.endswith(".test.cpp") or left_out):
            missing.append(path.relative_to(source))
    return missing


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, help="the build folder")
    parser.add_argument("source", type=pathlib.Path, help="the repository")
    parser.add_argument("--cxx", required=True)
    parser.add_argument("--nvcc", default="", help="empty in builds without CUDA")
    arguments = parser.parse_args()

    problems = []
    cuobjdump = str(pathlib.Path(arguments.nvcc).parent / "cuobjdump") if arguments.nvcc else ""
    if problem := prove_the_detectors(arguments.cxx, arguments.nvcc, cuobjdump):
        problems.append(problem)
    source = arguments.source.resolve()
    looked_for = lambda path: path.is_relative_to(source / "src") or path.is_relative_to(source / "tests" / "parity")
    covered = set()
    jobs = []
    for entry in json.loads((arguments.build / "compile_commands.json").read_text()):
        paths = sources_of(entry)
        if any(looked_for(path) for path in paths):
            covered.update(paths)
            name = paths[0].relative_to(source) if len(paths) == 1 else pathlib.Path(entry["file"]).name
            jobs.append((entry, name))
    # Two at a time: the tools that they wait for are programs of their own.
    with concurrent.futures.ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        results = list(pool.map(lambda job: look(*job, cuobjdump), jobs))
    for result in results:
        problems += result.problems
    problems += [f"{path}: in no object that was looked at" for path in not_covered(source, covered)]
    cuda_objects = sum(entry["file"].endswith(".cu") for entry, _ in jobs)
    host_objects = len(jobs) - cuda_objects
    kernels = sum(result.kernels for result in results)
    if host_objects == 0 or (arguments.nvcc and (cuda_objects == 0 or kernels == 0)):
        problems.append(f"nothing was looked at: {host_objects} host objects, {cuda_objects} CUDA objects, {kernels} kernels")
    success = (f"no contraction in {host_objects} host and {cuda_objects} CUDA objects of {len(covered)} files with "
               f"{kernels} kernels")
    print("\n".join(problems) if problems else success)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
