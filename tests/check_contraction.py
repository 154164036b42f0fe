#!/usr/bin/env python3
"""Checks that nothing that computes by the bit contract is contracted: no product and sum rounded once.

1. Every compile command of src/ and of the parity tests carries the contract's flags, and none that loosens them.
2. No host object of theirs holds a fused multiply-add instruction.
3. The PTX of every CUDA object has only operations that round to nearest, no fma, no flushing of subnormals, no
   approximate division or root. (Machine code of exactly rounded division and root uses fused instructions inside;
   PTX does not, and ptxas keeps the roundings that PTX names.)
The detectors are first tried on code that is contracted on purpose: a check that cannot fail proves nothing.
"""
import argparse
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

HOST_FUSED = re.compile(r"\b(vfn?m(add|sub)(addsub|subadd)?\d*[ps][sdh]|vfmaddsub\w*|vfmsubadd\w*|fmadd|fmsub|fnmadd|fnmsub|fmla|fmls)\b")
PTX_FORBIDDEN = re.compile(
    r"\b(fma\.|mad\.(rn|rz|rm|rp)\.f|[a-z0-9.]+\.ftz\b|div\.(approx|full)|sqrt\.approx|rsqrt|rcp\.approx|sin\.|cos\.|lg2\.|ex2\.)"
)
CXX_NEEDED = ["-ffp-contract=off"]
CUDA_NEEDED = ["-fmad=false", "-prec-div=true", "-prec-sqrt=true", "-ftz=false"]
FORBIDDEN = re.compile(r"-ffast-math|-Ofast|-funsafe|-fassociative|use_fast_math|-ffp-contract=(fast|on)|-fmad=true|-prec-\w+=false|-ftz=true")

CONTRACTED_CPP = "float f(float a, float b, float c) { return a * b + c; }\n"
CONTRACTED_CU = "__global__ void f(float* x) { x[0] = x[1] * x[2] + x[3]; x[4] = x[5] / x[6]; }\n"


def run(command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def host_fused(path):
    return sorted(set(match.group(0) for match in HOST_FUSED.finditer(run(["objdump", "-d", "--no-show-raw-insn", str(path)]))))


def ptx_of(nvcc, arguments, source):
    """The PTX that a compile command makes, by running it again for one virtual architecture."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out.ptx"
        run([nvcc, *arguments, "-arch=compute_75", "-ptx", "-o", str(out), str(source)])
        return out.read_text()


def ptx_forbidden(text):
    lines = (line for line in text.splitlines() if not line.lstrip().startswith(("//", ".loc", ".file")))
    return sorted(set(match.group(0) for line in lines for match in PTX_FORBIDDEN.finditer(line)))


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


def prove_the_detectors(compiler, nvcc):
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
            if "fma." not in ptx_forbidden(ptx_of(nvcc, ["-use_fast_math"], folder / "f.cu")):
                return "the PTX detector does not see a contraction that is there"
            if found := ptx_forbidden(ptx_of(nvcc, CUDA_NEEDED, folder / "f.cu")):
                return f"the contract's flags leave {found} in PTX"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, help="the build folder")
    parser.add_argument("source", type=pathlib.Path, help="the repository")
    parser.add_argument("--cxx", required=True)
    parser.add_argument("--nvcc", default="", help="empty in builds without CUDA")
    arguments = parser.parse_args()

    problems = []
    if problem := prove_the_detectors(arguments.cxx, arguments.nvcc):
        problems.append(problem)
    host_objects = cuda_objects = 0
    source = arguments.source.resolve()
    for entry in json.loads((arguments.build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["file"]).resolve()
        if not (path.is_relative_to(source / "src") or path.is_relative_to(source / "tests" / "parity")):
            continue
        words = shlex.split(entry["command"])
        name = path.relative_to(source)
        is_cuda = path.suffix == ".cu"
        for needed in CUDA_NEEDED if is_cuda else CXX_NEEDED:
            if needed not in words:
                problems.append(f"{name}: compiled without {needed}")
        if loosening := FORBIDDEN.search(entry["command"]):
            problems.append(f"{name}: compiled with {loosening.group(0)}")
        if is_cuda:
            cuda_objects += 1
            if found := ptx_forbidden(ptx_of(words[0], strip_for_ptx(words), path)):
                problems.append(f"{name}: its PTX has {', '.join(found)}")
        else:
            output = pathlib.Path(entry["directory"]) / words[words.index("-o") + 1]
            host_objects += 1
            if found := host_fused(output):
                problems.append(f"{name}: its object has {', '.join(found)}")
    if host_objects == 0 or (arguments.nvcc and cuda_objects == 0):
        problems.append(f"nothing was looked at: {host_objects} host objects, {cuda_objects} CUDA objects")
    print("\n".join(problems) if problems else f"no contraction in {host_objects} host and {cuda_objects} CUDA objects")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
