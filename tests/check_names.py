#!/usr/bin/env python3
"""Checks that one name in one namespace is one type: no second struct, class, enum, union or alias of it in src/.

Two types of one name are one symbol to the linker, which keeps one of their functions for both: a program that uses both
breaks, at times only without optimisation. Each file is read as a list of tokens, braces are followed through namespaces
and types, and every type that is defined at namespace scope is noted with its namespace. Aliases of one meaning are one
type. Not counted are declarations without a body, types in unnamed namespaces, types inside types and functions,
specialisations of templates, and definitions of nested types (struct Outer::Inner). Exits with 1 and the places; before
that it proves itself on samples.
"""
import argparse
import pathlib
import re
import sys
import tempfile

SUFFIXES = {".hpp", ".cpp", ".cu", ".cuh", ".inc"}
TOKEN = re.compile(r"[A-Za-z_]\w*|::|<<=?|>>=?|->|[{}()\[\]<>;=:,&*]|\S")
NOISE = re.compile(r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'|//[^\n]*|/\*.*?\*/', re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\[^\n]|\\\n)*", re.M)


def blank(match: re.Match) -> str:
    return re.sub(r"[^\n]", " ", match.group(0))


def tokens_of(text: str) -> list[tuple[str, int]]:
    text = DIRECTIVE.sub(blank, NOISE.sub(blank, text))
    found = []
    line = 1
    last = 0
    for match in TOKEN.finditer(text):
        line += text.count("\n", last, match.start())
        last = match.start()
        found.append((match.group(0), line))
    return found


def skip_balanced(tokens: list[tuple[str, int]], at: int, opening: str, closing: str) -> int:
    """The index behind the bracket that closes the one at `at`."""
    depth = 0
    while at < len(tokens):
        token = tokens[at][0]
        if token == opening:
            depth += 1
        elif token == closing or (closing == ">" and token == ">>"):
            depth -= 2 if token == ">>" else 1
            if depth <= 0:
                return at + 1
        at += 1
    return at


def types_of(text: str) -> list[tuple[str, str, int, str]]:
    """(namespace, name, line, what an alias stands for) of every type that `text` defines at namespace scope."""
    tokens = tokens_of(text)
    found = []
    scopes: list[str | None] = []  # names of open namespaces; None: something in which nothing is counted
    at = 0
    is_specialised = False
    while at < len(tokens):
        token, line = tokens[at]
        at_namespace_scope = all(scope is not None for scope in scopes)
        if token == "template":
            is_specialised = at + 2 < len(tokens) and tokens[at + 1][0] == "<" and tokens[at + 2][0] == ">"
            at = skip_balanced(tokens, at + 1, "<", ">") if at + 1 < len(tokens) and tokens[at + 1][0] == "<" else at + 1
        elif token == "namespace" and at_namespace_scope:
            name = ""
            at += 1
            while at < len(tokens) and tokens[at][0] not in "{;=":
                name += tokens[at][0] if tokens[at][0] != "inline" else ""
                at += 1
            if at < len(tokens) and tokens[at][0] == "{":
                scopes.append(name or None)
            at += 1
        elif token in {"struct", "class", "union", "enum"} and at_namespace_scope:
            at += 1
            if at < len(tokens) and token == "enum" and tokens[at][0] in {"class", "struct"}:
                at += 1
            name = ""
            is_nested = False
            is_variable = False
            while at < len(tokens) and tokens[at][0] not in {"{", ";", ":", "=", "(", ")", ",", ">", "&", "*"}:
                word = tokens[at][0]
                if word == "[":  # an attribute
                    at = skip_balanced(tokens, at, "[", "]")
                    continue
                if word in {"alignas", "__align__"}:
                    at = skip_balanced(tokens, at + 1, "(", ")")
                    continue
                if word == "<":  # arguments of a specialisation
                    is_specialised = True
                    at = skip_balanced(tokens, at, "<", ">")
                    continue
                is_nested = is_nested or word == "::"
                if re.match(r"[A-Za-z_]", word) and word != "final":
                    is_variable = name != "" and not is_nested and not name.startswith("CGL_")  # struct T t{1}
                    name = word
                at += 1
            if at < len(tokens) and tokens[at][0] == ":":  # bases, or the type of an enum
                while at < len(tokens) and tokens[at][0] not in {"{", ";"}:
                    at += 1
            if at < len(tokens) and tokens[at][0] == "{":
                if name and not is_nested and not is_specialised and not is_variable:
                    found.append(("::".join(filter(None, scopes)), name, line, ""))
                scopes.append(None)
                at += 1
            is_specialised = False
        elif token == "using" and at_namespace_scope:
            end = at
            while end < len(tokens) and tokens[end][0] != ";":
                end += 1
            if at + 2 < end and tokens[at + 2][0] == "=":
                meaning = "".join(token for token, _ in tokens[at + 3:end])
                found.append(("::".join(filter(None, scopes)), tokens[at + 1][0], line, meaning))
            at = end
        elif token == "extern" and at_namespace_scope and at + 1 < len(tokens) and tokens[at + 1][0] == "{":
            scopes.append("")  # extern "C": the string is blanked
            at += 2
        elif token == "{":
            scopes.append(None)
            is_specialised = False
            at += 1
        elif token == "}":
            if scopes:
                scopes.pop()
            at += 1
        else:
            if token == ";":
                is_specialised = False
            at += 1
    return found


def check(source: pathlib.Path, at_least: int = 0) -> list[str]:
    places: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for path in sorted(source.rglob("*")):
        if path.suffix not in SUFFIXES or not path.is_file():
            continue
        for namespace, name, line, meaning in types_of(path.read_text(encoding="utf-8")):
            places.setdefault((namespace, name), []).append((meaning, f"{path.relative_to(source)}:{line}"))
    if len(places) < at_least:
        return [f"only {len(places)} types were found: is {source} the folder src/?"]
    return [f"{namespace}::{name} is defined in {', '.join(place for _, place in where)}"
            for (namespace, name), where in sorted(places.items())
            if len(where) > 1 and (where[0][0] == "" or len({meaning for meaning, _ in where}) > 1)]


# What a sample holds, and the types that must be found in it.
SAMPLES = [
    ("namespace a { struct S; class C; enum class E : int; using std::min; void f(struct T* t); }", []),
    ("namespace a { struct S { struct Inner {}; }; }\nnamespace b { struct S final : public a::S {}; }", [("a", "S"), ("b", "S")]),
    ("namespace a::b { class [[nodiscard]] alignas(16) C {}; enum class E : int { x }; union U { int i; }; }",
     [("a::b", "C"), ("a::b", "E"), ("a::b", "U")]),
    ("namespace a { namespace { struct S {}; } struct T::Impl {}; void f() { struct Local {}; } }", []),
    ("template <class T, class = std::vector<std::vector<int>>> struct V {};\ntemplate <> struct V<int> {};", [("", "V")]),
    ("template <class T> struct V<T*> {}; template <class T> using W = T; using N = int;", [("", "W"), ("", "N")]),
    ('// struct A {};\n/* struct B {}; */ const char* t = "struct C {};"; auto r = R"(struct D { )"; char c = \'{\'; struct E {};',
     [("", "E")]),
    ("#define X struct M {\nnamespace a { inline namespace v { struct S { int f() { return 1; } }; } }", [("a::v", "S")]),
    ('extern "C" { struct S { int big = 1\'000\'000; }; }\nstruct T {};', [("", "S"), ("", "T")]),
    ("namespace a { struct S s() { return {}; } struct T t{1}; enum { x, y }; struct { int i; } k; }", []),
]


def self_test() -> str:
    for text, expected in SAMPLES:
        found = [(namespace, name) for namespace, name, *_ in types_of(text)]
        if found != expected:
            return f"in '{text}' it finds {found} instead of {expected}"
    with tempfile.TemporaryDirectory() as folder:
        for second, is_wrong in [("namespace a { class S {}; }", True), ("namespace a { using S = int; }", True),
                                 ("namespace a { using T = short; }", True), ("namespace a { using T = int; }", False),
                                 ("namespace a { struct S; namespace { struct S {}; } }", False)]:
            (pathlib.Path(folder) / "one.hpp").write_text("namespace a { struct S {}; using T = int; }", encoding="utf-8")
            (pathlib.Path(folder) / "two.cpp").write_text(second, encoding="utf-8")
            if bool(check(pathlib.Path(folder))) != is_wrong:
                return f"'{second}' is {'no' if is_wrong else 'a'} second type to it"
        if not check(pathlib.Path(folder), 10):
            return "a check that looks at nearly nothing passes"
    return ""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=pathlib.Path, help="the folder src/")
    arguments = parser.parse_args()
    wrong = self_test()
    if wrong:
        sys.exit(f"this check does not work: {wrong}")
    found = check(arguments.source, 400)
    print("\n".join(found) if found else "every name is one type")
    sys.exit(1 if found else 0)
