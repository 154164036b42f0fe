"""What the pages say of Python works: every block of code is run, and what is generated is current."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tomllib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def blocks(page):
    return re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.M | re.S)


@pytest.mark.parametrize("page", ["docs/python.md", "README.md"])
def test_blocks_of_code_run(tmp_path, page, phantom):
    found = blocks(page)
    assert found, page
    os.symlink(phantom / "dwi.nii.gz", tmp_path / "dwi.nii.gz")
    for name in ("dwi.bval", "dwi.bvec", "mask.nii.gz"):
        os.symlink(phantom / name, tmp_path / name)
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(found)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_every_page_with_python_is_run():
    pages = {str(path.relative_to(ROOT)) for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")] if blocks(path.relative_to(ROOT))}
    assert pages == {"docs/python.md", "README.md"}


def test_the_reference_is_current(tmp_path):
    tool = ROOT / "tools/python-reference"
    done = subprocess.run([sys.executable, tool, tmp_path / "made.md"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    ours = (ROOT / "docs/python-reference.md").read_text(encoding="utf-8")
    assert (tmp_path / "made.md").read_text(encoding="utf-8") == ours, "run tools/python-reference"


TUTORIALS = sorted((ROOT / "docs/tutorials").glob("*.py"))


@pytest.mark.parametrize("script", TUTORIALS, ids=lambda path: path.stem)
def test_tutorials_run(tmp_path, script):
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_tutorials_are_listed_and_made_of_cells():
    page = (ROOT / "docs/tutorials/README.md").read_text(encoding="utf-8")
    for script in TUTORIALS:
        assert f"]({script.name})" in page
        assert script.read_text(encoding="utf-8").startswith("# %% [markdown]\n# # ")


def test_types_are_current(tmp_path):
    done = subprocess.run(
        [sys.executable, ROOT / "tools/python-stubs", tmp_path / "made.pyi"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    ours = (ROOT / "python/cingulum/__init__.pyi").read_text(encoding="utf-8")
    assert (tmp_path / "made.pyi").read_text(encoding="utf-8") == ours, "run tools/python-stubs"
    compile(ours, "__init__.pyi", "exec")


def test_versions_stand_once():
    """Those of pyproject.toml are those of tools/versions.txt and of the build."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    pinned = set((ROOT / "tools/versions.txt").read_text(encoding="utf-8").split())
    for requirement in project["build-system"]["requires"]:
        assert requirement in pinned, requirement
    import cingulum

    build = re.search(r"project\(cingulum VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")).group(1)
    assert project["project"]["version"] == cingulum.__version__ == build


def test_everything_public_is_described_as_numpydoc_asks():
    import cingulum
    import cingulum.dipy
    import cingulum.oct
    import cingulum.zarr

    for module in (cingulum, cingulum.dipy, cingulum.oct, cingulum.zarr):
        for name in module.__all__:
            value = getattr(module, name)
            if name.startswith("__"):
                continue
            text = value.__doc__
            assert text and text[0].isupper(), f"{module.__name__}.{name}"
            assert not re.search(r"--[a-z]", text.replace("``--json``", "")), f"{module.__name__}.{name}"
            if callable(value) and not isinstance(value, type) and name != "devices":
                assert "Parameters\n" in text and "Returns\n" in text, f"{module.__name__}.{name}"
