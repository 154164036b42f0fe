"""Results, one JSON line for each mutant, so that a run that is killed goes on where it was; survivors that were judged
equivalent or accepted, with a reason (explained.json); and the tables."""
import json
import os
import re

FOLDERS = ("formats", "base", "numerics", "tract", "dmri", "ring")


def folder_of(file):
    parts = file.split("/")
    return "/".join(parts[:2]) if len(parts) > 2 else parts[0]


def rows_by(path, key):
    """The rows of a file with one JSON line each, the last of each key; none where there is no file."""
    rows = {}
    try:
        with open(path) as file:
            for line in file:
                try:
                    row = json.loads(line)
                except ValueError:
                    continue  # cut short by a kill
                rows[row[key]] = row
    except OSError:
        pass
    return rows


class Results:
    def __init__(self, path):
        self.path = path
        self.rows = rows_by(path, "id")

    def add(self, mutant, result):
        row = {"id": mutant.id, "key": mutant.key, "file": mutant.file, "line": mutant.line, "operator": mutant.operator,
               "change": mutant.change, "before": mutant.before, "after": mutant.after, **result}
        self.rows[mutant.id] = row
        with open(self.path, "a") as file:
            file.write(json.dumps(row) + "\n")
        return row


class Explained:
    """Entries are found by file, line and change as text, since line numbers move: {"file", "line", "change", "reason"}.
    "change" may be left out: the reason then holds for every mutant of the line."""

    def __init__(self, path):
        self.entries = []
        if os.path.exists(path):
            with open(path) as file:
                self.entries = json.load(file)

    def reason(self, row):
        for entry in self.entries:
            if entry["file"] == row["file"] and squeezed(entry["line"]) == squeezed(row["before"]):
                if entry.get("change") in (None, row["change"]):
                    return entry["reason"]
        return None


def squeezed(text):
    return re.sub(r"\s+", " ", text).strip()


def is_survivor(row):
    return row["status"] in ("survived", "not covered")


def table(rows, explained):
    """By folder: mutants, killed, survived, not covered, explained, percent that survive without a reason."""
    lines = ["| folder | mutants | killed | survived | not covered | of these explained | unexplained |", "|---|---|---|---|---|---|---|"]
    groups = {}
    for row in rows:
        groups.setdefault(folder_of(row["file"]), []).append(row)
    for name, group in [*sorted(groups.items()), ("all", rows)]:
        killed = sum(row["status"] == "killed" for row in group)
        survived = sum(row["status"] == "survived" for row in group)
        absent = sum(row["status"] == "not covered" for row in group)
        known = sum(is_survivor(row) and explained.reason(row) is not None for row in group)
        percent = 100 * (survived + absent - known) / max(1, len(group))
        lines.append(f"| {name} | {len(group)} | {killed} | {survived} | {absent} | {known} | {percent:.1f} % |")
    return "\n".join(lines)


def unexplained_share(rows, explained):
    open_ones = sum(is_survivor(row) and explained.reason(row) is None for row in rows)
    return open_ones / max(1, len(rows))


def tell(row, explained):
    reason = explained.reason(row)
    lines = [f"{row['file']}:{row['line']}: {row['operator']}: {row['change']} ({row['status']})",
             f"  - {row['before']}", f"  + {row['after']}"]
    if row.get("tests"):
        more = f" and {row['covering'] - len(row['tests'])} more" if row["covering"] > len(row["tests"]) else ""
        lines.append(f"  covered by {', '.join(row['tests'][:6])}{more}")
    if reason is not None:
        lines.append(f"  explained: {reason}")
    return "\n".join(lines)
