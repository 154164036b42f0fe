"""The files that a page of docs/ shows whole: fenced blocks whose first line is a comment with the file's name alone.

    page_files.py docs/ring-gpu.md FOLDER     writes them to FOLDER
"""
import pathlib
import re
import sys

BLOCK = re.compile(r"^```[a-z]*\n(?://|#) ([\w.]+\.\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def files_of(page):
    """Text by name, without the line that names the file."""
    return {match[1]: match[2] for match in BLOCK.finditer(pathlib.Path(page).read_text())}


def write_files(page, folder):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    files = files_of(page)
    for name, text in files.items():
        path = folder / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
    return files


if __name__ == "__main__":
    write_files(sys.argv[1], sys.argv[2])
