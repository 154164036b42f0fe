"""The types of the package: mypy --strict and pyright find nothing, in the package and in the code of the pages."""

import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(*words: str, cwd: pathlib.Path) -> None:
    done = subprocess.run([str(word) for word in words], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def samples(tmp_path):
    """The code of each page as a file."""
    files = []
    for page in ("README.md", "docs/python.md"):
        blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.M | re.S)
        files.append(tmp_path / f"{pathlib.Path(page).stem.lower()}_sample.py")
        files[-1].write_text("\n".join(blocks), encoding="utf-8")
    return files


def mypy(*words, cwd):
    run(sys.executable, "-m", "mypy", "--config-file", ROOT / "pyproject.toml", "--python-executable", sys.executable,
        "--cache-dir", cwd / ".mypy", *words, cwd=ROOT / "python")


def test_mypy_finds_nothing(tmp_path, samples):
    mypy("-p", "cingulum", cwd=tmp_path)
    mypy(*samples, cwd=tmp_path)


def test_mypy_finds_what_is_wrong(tmp_path):
    wrong = tmp_path / "wrong.py"
    wrong.write_text("import cingulum\ncingulum.track(nseeds='many', no_such_option=3)\n")
    with pytest.raises(AssertionError, match="no_such_option"):
        mypy(wrong, cwd=tmp_path)


def test_pyright_finds_nothing(tmp_path, samples):
    pyright = pathlib.Path(sys.executable).with_name("basedpyright")
    run(pyright, "--pythonpath", sys.executable, "-p", ROOT / "pyproject.toml", cwd=ROOT)
    (tmp_path / "pyrightconfig.json").write_text(
        f'{{"typeCheckingMode": "standard", "reportMissingModuleSource": false, "extraPaths": ["{ROOT}/python"]}}'
    )
    run(pyright, "--pythonpath", sys.executable, "-p", tmp_path, cwd=tmp_path)
