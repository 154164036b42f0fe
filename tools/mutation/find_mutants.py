"""Finds every mutant of the given C++ files with libclang. Files are parsed inside the translation units of the build
(compile_commands.json); a header by the first unit that includes it. What comes out of a macro that is defined elsewhere
is left alone: an operator counts only where the source text shows it between its two operands."""
import ctypes
import json
import os
import re
import shlex
import subprocess

import clang.cindex as cindex
from clang.cindex import CursorKind as Kind, TypeKind

from .mutated_tree import included_by
from .mutants import Mutant, describe, one_line

COMPARISONS = {"<": ("<=", ">"), "<=": ("<", ">="), ">": (">=", "<"), ">=": (">", "<="), "==": ("!=",), "!=": ("==",)}
SIGNS = {"+": "-", "-": "+", "*": "/", "/": "*", "+=": "-=", "-=": "+=", "*=": "/=", "/=": "*="}
BOOLEANS = {"&&": "||", "||": "&&"}
INTEGERS = {TypeKind.CHAR_U, TypeKind.UCHAR, TypeKind.USHORT, TypeKind.UINT, TypeKind.ULONG, TypeKind.ULONGLONG,
            TypeKind.CHAR_S, TypeKind.SCHAR, TypeKind.SHORT, TypeKind.INT, TypeKind.LONG, TypeKind.LONGLONG}
FLOATS = {TypeKind.FLOAT, TypeKind.DOUBLE}
# Removing these changes how quick a program is, not what it does.
CALLS_WITHOUT_EFFECT = {"reserve", "shrink_to_fit", "yield", "madvise", "posix_madvise", "__builtin_prefetch"}
COMMUTATIVE = {"min", "max", "minmax", "swap", "iter_swap", "dot", "hypot", "lcm", "gcd", "add", "multiply", "equal", "minimum",
               "maximum", "equal_ignoring_case", "bit_and", "bit_or", "bit_xor", "logical_and", "logical_or", "is_same",
               "distance", "both", "either", "bits_and", "bits_or", "bits_xor", "high_product", "greater_integer"}
# Two words of a text for people that change places are left alone; what is computed for the text is not.
MESSAGES = {"fail", "fail_argument", "fail_file", "corrupt", "format", "add_context", "add_file_context", "info", "warn",
            "debug", "print", "format_to"}
TAKE_A_BOUND = {"subspan", "first", "last", "substr", "resize", "at", "remove_prefix", "remove_suffix"}
LITERAL = re.compile(r"(0x[0-9a-fA-F']+|[0-9][0-9']*)([uUlLzZ]*)$|([0-9']*\.?[0-9']*(?:[eE][+-]?[0-9]+)?)([fF]?)$")
NEVER_AT_RUN_TIME = {Kind.STATIC_ASSERT, Kind.ENUM_DECL, Kind.TYPEDEF_DECL, Kind.TYPE_ALIAS_DECL, Kind.USING_DECLARATION,
                     Kind.ALIGNED_ATTR, Kind.TEMPLATE_NON_TYPE_PARAMETER, Kind.TEMPLATE_TYPE_PARAMETER, Kind.PARM_DECL,
                     Kind.TYPE_REF, Kind.TEMPLATE_REF, Kind.NAMESPACE_REF, Kind.CXX_UNARY_EXPR}
STATEMENT_PARENTS = {Kind.COMPOUND_STMT, Kind.IF_STMT, Kind.FOR_STMT, Kind.WHILE_STMT, Kind.CXX_FOR_RANGE_STMT,
                     Kind.DO_STMT, Kind.CASE_STMT, Kind.DEFAULT_STMT}


def compiler_includes(compiler):
    """The folders in which the compiler looks by itself, in order."""
    text = subprocess.run([compiler, "-E", "-x", "c++", "-", "-v"], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True).stderr
    listed = text.split("#include <...> search starts here:")[-1].split("End of search list.")[0]
    return [line.strip() for line in listed.splitlines() if line.strip()]


def arguments_of(command, directory):
    """What libclang needs of a compile command: folders, definitions, the language."""
    words = shlex.split(command)
    kept = []
    compiler = next(word for word in words if os.path.basename(word) not in ("ccache",))
    index = 0
    while index < len(words):
        word = words[index]
        if word in ("-I", "-isystem", "-D", "-include"):
            kept += [word, words[index + 1]]
            index += 1
        elif word.startswith(("-I", "-D", "-std=", "-isystem")):
            kept.append(word)
        index += 1
    for folder in compiler_includes(compiler):
        kept += ["-isystem", folder]
    return kept + ["-nostdinc", "-nostdinc++", "-ferror-limit=0", f"-working-directory={directory}", "-Wno-everything"]


def file_location(location):
    """Name and offset in the file where the text stands: of an argument of a macro the argument's own place."""
    file, line, column, offset = ctypes.c_void_p(), ctypes.c_uint(), ctypes.c_uint(), ctypes.c_uint()
    function = cindex.conf.lib.clang_getFileLocation
    function.argtypes = [cindex.SourceLocation] + [ctypes.c_void_p] * 4
    function(location, ctypes.byref(file), ctypes.byref(line), ctypes.byref(column), ctypes.byref(offset))
    return file.value, offset.value


class Finder:
    """Walks over one translation unit and collects the mutants of the wanted files in it."""

    def __init__(self, unit, wanted):
        self.unit = unit
        self.wanted = wanted          # real path -> bytes
        self.handles = {}             # libclang's handle of a file -> real path, or None if it is not wanted
        self.found = {path: [] for path in wanted}
        self.reached = set()

    def path_of(self, location):
        handle, offset = file_location(location)
        if handle not in self.handles:
            name = location.file.name if location.file else None
            path = os.path.realpath(name) if name else None
            self.handles[handle] = path if path in self.wanted else None
        return self.handles[handle], offset

    def extent(self, cursor):
        """(path, begin, end) of a cursor in a wanted file, or None."""
        path, begin = self.path_of(cursor.extent.start)
        if path is None:
            return None
        other, end = self.path_of(cursor.extent.end)
        if other != path or end <= begin:
            return None
        return path, begin, end

    def text(self, place):
        path, begin, end = place
        return self.wanted[path][begin:end].decode(errors="replace")

    def add(self, place, operator, change, mutated, form="expression"):
        path, begin, end = place
        text = self.text(place)
        if "\n#" in text or "\\\n" in text or re.search(r"\bco_|\b__LINE__\b", text):
            return
        self.found[path].append(Mutant(path, begin, end, operator, change, one_line(mutated), form))

    # --- the walk ---------------------------------------------------------------------------------------------------

    def run(self):
        for cursor in self.unit.cursor.get_children():
            self.declaration(cursor)
        return self.found

    def declaration(self, cursor):
        path, _ = self.path_of(cursor.location)
        if path is None:
            return
        self.reached.add(path)
        if cursor.kind in NEVER_AT_RUN_TIME:
            return
        for child in cursor.get_children():
            if child.kind == Kind.COMPOUND_STMT:
                self.walk(child, cursor)
            elif child.kind.is_declaration():
                if child.kind in (Kind.VAR_DECL, Kind.FIELD_DECL):
                    self.variable(child)
                else:
                    self.declaration(child)
            elif cursor.kind == Kind.CONSTRUCTOR and child.kind.is_expression():
                self.walk(child, cursor)

    def variable(self, cursor):
        """Only its initial value, and only where the program computes it when it runs."""
        place = self.extent(cursor)
        if place is None:
            return
        _, name_at = self.path_of(cursor.location)
        head = self.wanted[place[0]][place[1]:name_at].decode(errors="replace")
        if re.search(r"\b(constexpr|constinit)\b", head):
            return
        for child in cursor.get_children():
            inside = self.extent(child)
            if inside is None or inside[1] <= name_at:
                continue
            if self.wanted[place[0]][name_at:inside[1]].rstrip().endswith(b"["):
                continue
            self.walk(child, cursor)

    def walk(self, cursor, parent):
        kind = cursor.kind
        if kind in NEVER_AT_RUN_TIME:
            return
        if kind in (Kind.VAR_DECL, Kind.FIELD_DECL):
            self.variable(cursor)
            return
        if kind in (Kind.STRUCT_DECL, Kind.CLASS_DECL):
            self.declaration(cursor)
            return
        children = list(cursor.get_children())
        place = self.extent(cursor)
        if place is not None:
            self.visit(cursor, parent, children, place)
        if kind == Kind.CASE_STMT:
            children = children[1:]
        if kind == Kind.IF_STMT and place is not None and re.match(r"if\s+constexpr\b", self.text(place)):
            children = [child for child in children if not child.kind.is_expression()]
        for child in children:
            self.walk(child, cursor)

    def visit(self, cursor, parent, children, place):
        kind = cursor.kind
        if parent.kind in STATEMENT_PARENTS:
            self.statement(cursor, parent, place)
        if kind in (Kind.BINARY_OPERATOR, Kind.COMPOUND_ASSIGNMENT_OPERATOR) and len(children) == 2:
            self.binary(cursor, children[0], children[1], place)
        elif kind == Kind.UNARY_OPERATOR and children:
            self.unary(children[0], place)
        elif kind == Kind.CALL_EXPR:
            self.call(cursor, parent, place)
        elif kind in (Kind.INTEGER_LITERAL, Kind.FLOATING_LITERAL):
            if self.computes(parent):
                self.literal(place)
        elif kind == Kind.CXX_BOOL_LITERAL_EXPR:
            text = self.text(place)
            if text in ("true", "false") and self.computes(parent):
                other = "false" if text == "true" else "true"
                self.add(place, "boolean", f"{text} becomes {other}", other)
        elif kind == Kind.DECL_REF_EXPR:
            self.named_constant(cursor, place)
        elif kind == Kind.ARRAY_SUBSCRIPT_EXPR and len(children) == 2:
            self.bound(children[1])
        if kind in (Kind.IF_STMT, Kind.WHILE_STMT, Kind.CONDITIONAL_OPERATOR):
            self.condition(cursor, children, place)

    @staticmethod
    def computes(parent):
        """Whether a literal below `parent` is part of a computation, not of a type."""
        return parent.kind in (Kind.BINARY_OPERATOR, Kind.COMPOUND_ASSIGNMENT_OPERATOR, Kind.UNARY_OPERATOR,
                               Kind.PAREN_EXPR, Kind.CALL_EXPR, Kind.RETURN_STMT, Kind.VAR_DECL, Kind.FIELD_DECL,
                               Kind.CONDITIONAL_OPERATOR, Kind.INIT_LIST_EXPR, Kind.ARRAY_SUBSCRIPT_EXPR,
                               Kind.UNEXPOSED_EXPR, Kind.CXX_STATIC_CAST_EXPR, Kind.CXX_FUNCTIONAL_CAST_EXPR)

    # --- operators --------------------------------------------------------------------------------------------------

    def binary(self, cursor, left, right, place):
        first, second = self.extent(left), self.extent(right)
        if first is None or second is None or first[1] != place[1] or second[2] != place[2] or first[2] > second[1]:
            return
        operator = one_line(self.wanted[place[0]][first[2]:second[1]].decode(errors="replace"))
        a, b = self.text(first), self.text(second)
        for other in COMPARISONS.get(operator, ()):
            self.add(place, "comparison", f"{operator} becomes {other}", f"{a} {other} {b}")
        if operator in COMPARISONS and operator not in ("==", "!=") and second[0] == place[0]:
            self.bound(right, first=True)
        if operator in SIGNS and "string" not in cursor.type.get_canonical().spelling and "path" not in cursor.type.spelling:
            other = SIGNS[operator]
            if not (operator in ("*", "/") and b in ("1", "1.0", "1.0F", "1.0f")):
                self.add(place, "sign", f"{operator} becomes {other}", f"{a} {other} {b}")
        if operator in BOOLEANS:
            other = BOOLEANS[operator]
            self.add(place, "boolean", f"{operator} becomes {other}", f"({a}) {other} ({b})")

    def unary(self, operand, place):
        inside = self.extent(operand)
        if inside is None or inside[2] != place[2]:
            return
        operator = one_line(self.wanted[place[0]][place[1]:inside[1]].decode(errors="replace"))
        if operator == "-":
            self.add(place, "sign", "unary - is gone", self.text(inside))
        elif operator == "!":
            self.add(place, "boolean", "! is gone", f"static_cast<bool>({self.text(inside)})")

    def condition(self, cursor, children, place):
        head = self.text(place)
        if re.match(r"if\s+constexpr\b", head):
            return
        for child in children:
            if not child.kind.is_expression():
                if child.kind == Kind.DECL_STMT:
                    continue  # if (auto x = f(); x)
                return
            inside = self.extent(child)
            before = None if inside is None else one_line(head[:inside[1] - place[1]])
            # Comparisons and && have mutants of their own, which say more.
            if inside is not None and child.kind != Kind.BINARY_OPERATOR and not child.spelling.startswith("operator") and not self.text(inside).startswith("!"):
                if before is not None and (cursor.kind == Kind.CONDITIONAL_OPERATOR and not before or before.endswith(("(", ";"))):
                    self.add(inside, "boolean", "condition negated", f"!({self.text(inside)})", "condition")
            return

    def literal(self, place):
        text = self.text(place)
        match = LITERAL.match(text)
        if match is None:
            return
        if match.group(1):
            digits, suffix = match.group(1).replace("'", ""), match.group(2)
            value = int(digits, 16 if digits.lower().startswith("0x") else 8 if re.match("0[0-7]", digits) else 10)
            others = {0: [1], 1: [0, 2]}.get(value, [value + 1, 2 * value, 0])
            for other in others:
                self.add(place, "constant", f"{text} becomes {other}{suffix}", f"{other}{suffix}")
        elif "." in text or "e" in text.lower():
            suffix = match.group(4)
            value = float(match.group(3).replace("'", ""))
            others = {0.0: [1.0], 1.0: [0.0, 2.0]}.get(value, [2 * value, value + 1, 0.0])
            for other in others:
                if other != value and other != float("inf"):
                    self.add(place, "constant", f"{text} becomes {other!r}{suffix}", f"{other!r}{suffix}")

    def named_constant(self, cursor, place):
        """A use of a constexpr number: its definition is evaluated by the compiler, where no switch reaches."""
        declared = cursor.referenced
        if declared is None or declared.kind != Kind.VAR_DECL:
            return
        type_ = declared.type.get_canonical()
        if not type_.is_const_qualified() or type_.kind not in INTEGERS | FLOATS:
            return
        head = " ".join(token.spelling for token in list(declared.get_tokens())[:6])
        name = self.text(place)
        if "constexpr" not in head or name.startswith("std::") or not re.fullmatch(r"[A-Za-z_:][A-Za-z_0-9:]*", name):
            return
        cast = f"static_cast<std::remove_const_t<decltype({name})>>"
        for change in ("+ 1", "* 2"):
            self.add(place, "constant", f"{name} becomes {name} {change}", f"{cast}({name} {change})")

    def bound(self, cursor, first=False):
        """An index or a bound, one further and one nearer."""
        place = self.extent(cursor)
        type_ = cursor.type.get_canonical()
        if place is None or type_.kind not in INTEGERS:
            return
        text = self.text(place)
        if LITERAL.match(text):
            return
        for sign in ("-",) if first else ("+", "-"):
            self.add(place, "off by one", f"{one_line(text)} {sign} 1", f"({text}) {sign} 1")

    def call(self, cursor, parent, place):
        arguments = list(cursor.get_arguments())
        name = cursor.spelling or self.name_in_text(place)
        if name.startswith("operator") and len(arguments) == 2:
            if name == "operator[]":
                self.bound(arguments[1])
            elif name != "operator()":
                self.binary(cursor, arguments[0], arguments[1], place)
            return
        if name in TAKE_A_BOUND:
            for argument in arguments:
                if argument is not None:
                    self.bound(argument)
        if len(arguments) < 2 or name in COMMUTATIVE | MESSAGES or name.startswith("operator"):
            return
        if parent.kind in (Kind.VAR_DECL, Kind.FIELD_DECL, Kind.CONSTRUCTOR):
            _, name_at = self.path_of(parent.location)
            if place[1] <= name_at or parent.kind == Kind.CONSTRUCTOR:
                return
        for first, second in zip(arguments, arguments[1:]):
            a, b = self.extent(first), self.extent(second)
            if a is None or b is None or a[1] < place[1] or b[2] > place[2] or a[2] >= b[1]:
                continue
            text_a, text_b = self.text(a), self.text(b)
            if first.type.get_canonical().spelling.removeprefix("const ") != second.type.get_canonical().spelling.removeprefix("const "):
                continue
            if one_line(text_a) == one_line(text_b) or "[" in text_a + text_b and "{" in text_a + text_b:
                continue
            if first.type.kind in (TypeKind.DEPENDENT, TypeKind.UNEXPOSED) or self.between(a, b) != ",":
                continue
            head = self.wanted[place[0]][place[1]:a[1]].decode(errors="replace")
            tail = self.wanted[place[0]][b[2]:place[2]].decode(errors="replace")
            self.add(place, "swapped arguments", f"{one_line(text_a)} and {one_line(text_b)} exchanged",
                     f"{head}{text_b}, {text_a}{tail}")

    def name_in_text(self, place):
        """A function that a template's argument chooses, which libclang does not name: "multiply" of Lanes::multiply(a, b)."""
        match = re.match(r"(?:[\w]+::)+(?:template\s+)?(\w+)\(", self.text(place))
        return match.group(1) if match else ""

    def between(self, a, b):
        return one_line(self.wanted[a[0]][a[2]:b[1]].decode(errors="replace"))

    def statement(self, cursor, parent, place):
        """A call whose value nobody uses."""
        if cursor.kind not in (Kind.CALL_EXPR, Kind.CXX_STATIC_CAST_EXPR, Kind.UNEXPOSED_EXPR):
            return
        path, begin, end = place
        data = self.wanted[path]
        text = self.text(place)
        if cursor.kind != Kind.CALL_EXPR and not re.match(r"static_cast<void>\(.*\(|[\w:.>()-]+\(", text, re.S):
            return
        # In a template libclang knows no name: "numbers.reserve" is taken from the text.
        called = cursor.spelling or re.match(r"(?:static_cast<void>\()?([\w:.>-]*)", text).group(1) or "call"
        if called.startswith("operator") or re.split(r"\W+", called)[-1] in CALLS_WITHOUT_EFFECT or not text.endswith(")"):
            return
        semicolon = re.match(rb"\s*;", data[end:end + 40])
        if semicolon is None or re.search(rb"[;{})]\s*$|else\s*$|:\s*$|\*/\s*$|//[^\n]*\s*$", data[max(0, begin - 200):begin]) is None:
            return
        before = data[max(0, begin - 200):begin].rstrip()
        if before.endswith(b";") and parent.kind == Kind.FOR_STMT or before.endswith(b"("):
            return
        end += semicolon.end()
        self.add((path, begin, end), "removed call", f"{called}() is not called", ";", "statement")


def tried_calls(path, data):
    """CGL_TRY(f()); is a macro, found as text."""
    text = data.decode(errors="replace")
    if len(text.encode()) != len(data) or len(text) != len(data):
        text = data.decode("latin-1")
    for match in re.finditer(r"\bCGL_TRY\(", text):
        line = text[text.rfind("\n", 0, match.start()) + 1:match.start()]
        if "//" in line or line.lstrip().startswith("#"):
            continue
        depth, position = 1, match.end()
        while position < len(text) and depth:
            depth += {"(": 1, ")": -1}.get(text[position], 0)
            position += 1
        end = re.match(r"\s*;", text[position:])
        if end is not None and "\\\n" not in text[match.start():position]:
            called = re.match(r"[\w:.>\-]+", text[match.end():])
            yield Mutant(path, match.start(), position + end.end(), "removed call",
                         f"{called.group() if called else 'call'}() is not called", ";", "statement")


def sources_of(command):
    """The file of a command, and where it is a group (cmake/Unity.cmake) the files in it."""
    path = os.path.join(command["directory"], command["file"])
    yield os.path.realpath(path)
    if "unity_" in command["file"]:
        with open(path) as file:
            yield from (os.path.realpath(name) for name in re.findall(r'#include "([^"]+)"', file.read()))


def in_order(commands, wanted):
    """Units that hold a wanted file come first: a header is found early so."""
    ranks = []
    for position, command in enumerate(commands):
        if re.search(r"\.(cxx|cpp|cc)$", command["file"]) and "/generated/" not in command["file"]:
            sources = list(sources_of(command))
            ranks.append((not any(path in wanted for path in sources), position, command, sources))
    return [(command, sources) for _, _, command, sources in sorted(ranks, key=lambda row: row[:2])]


def parsed(index, command, sources, say):
    """The units of a command: one, or where libclang fails on a group one for each file of it."""
    words = arguments_of(command["command"], command["directory"])
    paths = [sources[0]]
    while paths:
        path = paths.pop(0)
        try:
            yield index.parse(path, words)
        except cindex.TranslationUnitLoadError:
            if path == sources[0] and len(sources) > 1:
                paths += sources[1:]
            elif (unit := parsed_in_part(index, path, words, say)) is not None:
                yield unit


def parsed_in_part(index, path, words, say):
    """libclang 18 crashes on some generic lambdas: the functions at fault are blanked, and the rest is parsed."""
    with open(path, encoding="latin-1") as file:
        text = file.read()
    ends = [match.end() for match in re.finditer(r"^}.*\n", text, flags=re.M)]

    def attempt(content):
        try:
            return index.parse(path, words, unsaved_files=[(path, content)])
        except cindex.TranslationUnitLoadError:
            return None

    for _ in range(3):
        low, high = -1, len(ends) - 1
        while high - low > 1:
            middle = (low + high) // 2
            if attempt(text[:ends[middle]]) is None:
                high = middle
            else:
                low = middle
        begin = ends[high - 1] if high > 0 else 0
        if not ends or begin == 0:
            break
        text = text[:begin] + re.sub(r"[^\n]", " ", text[begin:ends[high]]) + text[ends[high]:]
        if (unit := attempt(text)) is not None:
            say(f"{path}: libclang cannot parse a function that ends at line {text.count(chr(10), 0, ends[high])}; it has no mutants")
            return unit
    say(f"libclang cannot parse {path}")
    return None


def find(root, build, files, say=lambda text: None):
    """All mutants of `files` (from `root`), which the build folder `build` compiles from there."""
    root = os.path.realpath(root)
    wanted = {}
    for name in files:
        with open(os.path.join(root, name), "rb") as file:
            wanted[os.path.join(root, name)] = file.read()
    with open(os.path.join(build, "compile_commands.json")) as file:
        commands = json.load(file)
    index = cindex.Index.create()
    found, missing = {}, set(wanted)
    for command, sources in in_order(commands, wanted):
        if not missing & (included_by(command, root) | set(sources)):
            continue
        for unit in parsed(index, command, sources, say):
            finder = Finder(unit, {path: wanted[path] for path in missing})
            results = finder.run()
            for path in finder.reached:
                found[path] = results[path]
                missing.discard(path)
    if missing:
        say(f"not compiled here: {', '.join(sorted(os.path.relpath(path, root) for path in missing))}")
    mutants = []
    for path, data in wanted.items():
        here = found.get(path, []) + (list(tried_calls(path, data)) if path in found else [])
        mutants += describe(here, os.path.relpath(path, root), data)
    return mutants
