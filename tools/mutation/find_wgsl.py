"""Mutants of shaders, found in their text: WGSL is plain enough for that. A shader is text at run time, too, so the switch
is in the function that hands it out (mutated_tree.py writes it): no shader is compiled with another's mutant."""
import re

from .mutants import Mutant, describe

COMPARISONS = {"<": ("<=", ">"), "<=": ("<",), ">": (">=", "<"), ">=": (">",), "==": ("!=",), "!=": ("==",)}
TOKEN = re.compile(r"//[^\n]*|/\*.*?\*/|@\w+(?:\([^)]*\))?|->|[A-Za-z_]\w*|0x[0-9a-fA-F.]+(?:p[+-]?[0-9]+)?[fhiu]?|[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?[fhiu]?"
                   r"|<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||\+\+|--|[-+*/%&|^]=|[^\s]", re.S)
SIGNS = {"+": "-", "-": "+", "*": "/", "/": "*", "+=": "-=", "-=": "+=", "*=": "/="}
# After these names < opens a list of types.
TYPES = re.compile(r"^(array|vec[234]|mat\dx\d|ptr|atomic|var|bitcast|texture\w*)$")


def is_operand_end(word):
    return bool(re.match(r"[\w)\]]", word)) and word not in ("return", "if", "while", "case")


def find(root, files):
    mutants = []
    for name in files:
        with open(f"{root}/{name}", "rb") as file:
            data = file.read()
        mutants += describe(list(of_text(name, data.decode("latin-1"))), name, data)
    return mutants


def of_text(name, text):
    words = [(match.group(), match.start()) for match in TOKEN.finditer(text) if not match.group().startswith(("//", "/*", "@"))]
    depth, types, brackets, constant = 0, 0, [], False
    for index, (word, at) in enumerate(words):
        before = words[index - 1][0] if index else ""
        after = words[index + 1][0] if index + 1 < len(words) else ""
        change = lambda operator, other, end=at + len(word): Mutant(name, at, end, operator, f"{word} becomes {other}", other, "text")
        if word in "{}":
            depth += 1 if word == "{" else -1
        if word in "[(":
            brackets.append(word)
        elif word in "])" and brackets:
            brackets.pop()
        if word in ("const", "override", "struct", "enable", "alias"):
            constant = True
        elif word in ";{}":
            constant = False
        if word == "<" and TYPES.match(before):
            types += 1
            continue
        if types:
            types -= {">": 1, ">>": 2, ">=": 1}.get(word, 0)
            continue
        if depth == 0 or constant:
            continue
        for other in COMPARISONS.get(word, ()):
            yield change("comparison", other)
        if word in SIGNS and is_operand_end(before):
            yield change("sign", SIGNS[word])
        elif word == "-" and not is_operand_end(before):
            yield Mutant(name, at, at + 1, "sign", "unary - is gone", " ", "text")
        if word in ("&&", "||"):
            yield change("boolean", "||" if word == "&&" else "&&")
        if word in ("true", "false"):
            yield change("boolean", "false" if word == "true" else "true")
        if match := re.fullmatch(r"(\d+)([iu]?)", word):
            value = int(match.group(1))
            for other in {0: (1,), 1: (0, 2)}.get(value, (value + 1, 0)):
                yield change("constant", f"{other}{match.group(2)}")
        elif match := re.fullmatch(r"(\d*\.\d+(?:[eE][+-]?\d+)?)([fh]?)", word):
            value = float(match.group(1))
            for other in {0.0: (1.0,), 1.0: (0.0, 2.0)}.get(value, (2 * value, 0.0)):
                yield change("constant", f"{other!r}{match.group(2)}")
        if word == "]" and before.isidentifier() and index >= 2 and words[index - 2][0] == "[":
            for sign in "+-":
                where = words[index - 1][1]
                yield Mutant(name, where, where + len(before), "off by one", f"{before} {sign} 1", f"{before} {sign} 1", "text")
        # A call that is a statement: name(...);
        if word.isidentifier() and after == "(" and before in (";", "{", "}") and word not in ("if", "for", "while", "switch", "return", "loop"):
            level, position = 0, index + 1
            while position < len(words):
                level += {"(": 1, ")": -1}.get(words[position][0], 0)
                position += 1
                if level == 0:
                    break
            if position < len(words) and words[position][0] == ";":
                yield Mutant(name, at, words[position][1], "removed call", f"{word}() is not called", "", "text")
