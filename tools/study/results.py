"""The file of results: one JSON object per line and run, found again by a key. A process that is killed while it writes
leaves at most one torn line, which the next one removes."""
import hashlib
import json
import os


def key_of(condition_name, getter, options, program):
    """`program` tells one build from another: results of two never mix."""
    text = json.dumps([condition_name, getter, sorted(options.items()), program])
    return hashlib.sha256(text.encode()).hexdigest()[:24]


class Results:
    def __init__(self, path):
        self.path = path
        self.rows = {}
        self._file = None
        if path.exists():
            data = path.read_bytes()
            self._whole = data.rfind(b"\n") + 1
            for line in data[:self._whole].splitlines():
                row = json.loads(line)
                self.rows[row["key"]] = row
        else:
            self._whole = 0

    def is_done(self, key):
        """A run that failed is tried again; one that took too long is not."""
        row = self.rows.get(key)
        return row is not None and ("error" not in row or row.get("too_long", False))

    def add(self, row):
        if self._file is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open(self.path, "ab", buffering=0)
            # Only who adds a line removes a torn one: whoever reads may look at a file that another process writes.
            os.truncate(self.path, self._whole)
        self._file.write(json.dumps(row).encode() + b"\n")
        self.rows[row["key"]] = row

    def good(self, program=None):
        """Rows with a score; of one program where it is named."""
        return [row for row in self.rows.values()
                if "error" not in row and (program is None or row["program"] == program)]
