"""What a mutant is: a place in a source file, what stands there and what would stand there instead. Also how a mutated
file is written: all of its mutants at once, each behind its number of the switch (switch.hpp)."""
import dataclasses
import hashlib
import re

OPERATORS = ("comparison", "sign", "constant", "boolean", "removed call", "off by one", "swapped arguments")


@dataclasses.dataclass
class Mutant:
    file: str          # from the root of the project
    begin: int         # bytes of the file that are replaced
    end: int
    operator: str      # one of OPERATORS
    change: str        # "< becomes <="
    mutated: str       # what stands there instead, on one line; empty: nothing
    form: str          # "expression", "condition", "statement" or "text" (of a shader): how it is switched
    line: int = 0      # from 1
    before: str = ""   # the line, and what it would be
    after: str = ""
    key: str = ""      # the same for the same change in the same line, wherever the line has moved to
    content: str = ""  # hash of the file
    number: int = 0    # of the switch, in the present build

    @property
    def id(self):
        return f"{self.key}-{self.content}"

    def overlaps(self, other):
        return self.begin < other.end and other.begin < self.end

    def to_json(self):
        return dataclasses.asdict(self)


def from_json(data):
    return Mutant(**data)


def content_hash(data):
    return hashlib.sha256(data).hexdigest()[:12]


def one_line(text):
    """C++ without comments and line ends; strings stay as they are."""
    pattern = r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|//[^\n]*|/\*.*?\*/|\s+'
    return re.sub(pattern, lambda m: m.group() if m.group()[0] in "\"'" else " ", text, flags=re.S).strip()


def describe(mutants, file, data):
    """Fills in line, before, after, key and content."""
    content = content_hash(data)
    starts = [0]
    for match in re.finditer(b"\n", data):
        starts.append(match.end())
    seen = {}
    line_of = lambda offset: next_line(starts, offset)
    lines = data.split(b"\n")
    # How often the same text stood in earlier lines tells equal lines apart.
    counts = {}
    occurrence = []
    for text in lines:
        stripped = text.strip()
        occurrence.append(counts.get(stripped, 0))
        counts[stripped] = occurrence[-1] + 1
    for mutant in mutants:
        first, last = line_of(mutant.begin), line_of(max(mutant.begin, mutant.end - 1))
        whole = data[starts[first]:starts[last + 1] - 1 if last + 1 < len(starts) else len(data)]
        prefix = data[starts[first]:mutant.begin].decode(errors="replace")
        suffix = data[mutant.end:starts[first] + len(whole)].decode(errors="replace")
        mutant.file = file
        mutant.line = first + 1
        mutant.content = content
        mutant.before = one_line(whole.decode(errors="replace"))
        mutant.after = one_line(f"{prefix}{mutant.mutated}{suffix}")
        indent = len(prefix) - len(prefix.lstrip())
        facts = (file, lines[first].strip().decode(errors="replace"), str(occurrence[first]), str(len(prefix) - indent),
                 str(mutant.end - mutant.begin), mutant.operator, mutant.change, mutant.mutated)
        mutant.key = hashlib.sha256("\0".join(facts).encode()).hexdigest()[:16]
        seen[mutant.key] = mutant
    return list(seen.values())


def next_line(starts, offset):
    low, high = 0, len(starts)
    while high - low > 1:
        middle = (low + high) // 2
        if starts[middle] <= offset:
            low = middle
        else:
            high = middle
    return low


def switched(mutant, original):
    """The text that holds both; it has the line ends of the original, so that the compiler's line numbers stay."""
    if mutant.form == "text":  # resolved by cingulum_chosen_text (switch.cpp)
        return f"\x01{mutant.number}\x02{mutant.mutated}\x03{original}\x04"
    switch = f"CGL_MUTANT({mutant.number})"
    if mutant.form == "statement":
        return f"{{ if (!{switch}) {{ {original} }} }}"
    if mutant.form == "condition":
        return f"({switch} != static_cast<bool>({original}))"
    return f"({switch} ? ({mutant.mutated}) : ({original}))"


def write_switched(data, mutants):
    """`data` with all mutants in it; they do not overlap."""
    parts = []
    position = 0
    for mutant in sorted(mutants, key=lambda m: m.begin):
        assert mutant.begin >= position, "mutants overlap"
        parts.append(data[position:mutant.begin])
        parts.append(switched(mutant, data[mutant.begin:mutant.end].decode()).encode())
        position = mutant.end
    parts.append(data[position:])
    return b"".join(parts)
