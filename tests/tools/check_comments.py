#!/usr/bin/env python3
"""Checks that the files and names mentioned in comments and documents exist.

A path exists if it is the end of the path of a file or folder (`gemm.h`, `simd/math_f32.h`), or if
code spells it out: a header of the system, a file that a program writes. A name exists if it occurs
in code, outside comments. The check reads only what is clearly a name: words in backticks, calls
with empty parentheses, qualified names, words with an underscore or an inner capital letter.
"""

import ast
import fnmatch
import io
import pathlib
import re
import sys
import tokenize

from repo_files import ROOT, list_files

CPP_SUFFIXES = (".h", ".cpp", ".def", ".inc", ".cu")
HASH_SUFFIXES = (".sh", ".cmake", ".toml", ".in", "CMakeLists.txt", "Makefile", "Dockerfile", ".pat", ".ci/run",
                 ".clang-format", ".clang-tidy", ".gitignore", ".dockerignore")
# These files hold invented names in strings.
SELF = {"tests/tools/check_comments.py", "tests/tools/test_repo_checks.py"}
# Pages that the lab writes, and the text that an example learns from.
EXEMPT = re.compile(r"docs/lab/.*|examples/python/text/.*")

# Names of other projects that our code does not use: what PyTorch has and this package has not, functions that are
# avoided on purpose, parts of file formats.
FOREIGN_NAMES = {
    "DevTools", "PySequence_Fast_ITEMS", "TensorFlow", "dim_t", "gemm_batch_strided", "type_info",
    "amsgrad", "collate_fn", "fft", "fsencode", "index_add_", "mark_dirty", "padding_mode", "proj_size", "scatter_",
    "set_materialize_grads", "vmap",
    "PFM_OS_PERF_EVENT", "PFM_PLM3", "pfm_os_t", "pfm_perf_encode_arg_t",
    "SessionLog", "TensorProto", "TensorShapeProto", "file_version", "session_log", "simple_value", "tensor_shape",
}
FOREIGN_SCOPE = re.compile(r"(?:torch|np|numpy|std|Eigen|nb|hwy|hn|mlx)\b(?:::|\.)")

# Raw strings, strings, characters and numbers come first: they may contain comment marks.
CPP_TOKEN = re.compile(
    r'R"(?P<tag>[^()\\\s]*)\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"|\b\d[\w\']*|\'(?:\\.|[^\'\\\n])+\''
    r"|(?P<comment>//(?:\\\n|[^\n])*|/\*.*?\*/)",
    re.DOTALL,
)
# The name of a parameter beside its argument.
ARGUMENT = re.compile(r"/\*\w+=?\*/")
HASH_COMMENT = re.compile(r"(?:^|(?<=\s))#(?!!).*", re.MULTILINE)
WORD = re.compile(r"[A-Za-z_]\w*")

SUFFIX = r"\.(?:h|cpp|def|inc|pyi?|sh|cmake|md|jsonl?|html|toml|svg|txt|yml|pat|\{[\w,]+\})"
PART = r"[\w.+{},*-]*[\w}*+]"
PATH = re.compile(
    rf"(?<![\w/$~.<>%:-])(?:\.\.?/)*(?P<path>{PART}(?:/{PART})+/?|{PART}{SUFFIX})(?![\w/:(*<\[])"
)
URL = re.compile(r"\w+://[^\s)>\]]+")
# Names to be filled in (DIR/NAME.jsonl, exp_NAME.cpp), and files made by a build.
PLACEHOLDER = re.compile(r"(?<![A-Za-z])[A-Z]{2,}(?![a-z])|\bbuild\b|\.\.\.")

QUOTED_PATH = re.compile(r"(?<!`)`(?P<path>\w[\w.-]*/[\w./-]*)`(?!`)")
QUOTED = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
# In this order: calls, qualified names, words with an underscore, words with inner capital letters.
# A star after an underscore stands for any end.
NAMES = (
    re.compile(r"(?<![\w/.-])((?:\w+(?:::|\.|->))*[A-Za-z_]\w*)\(\)"),
    re.compile(r"(?<![\w/.:-])([A-Za-z_]\w*(?:::~?[A-Za-z_]\w*)+)"),
    re.compile(r"(?<![\w/.:$<-])(_{0,2}[A-Za-z]\w*_(?:\w+|\*))(?![\w/-]|\.\w)"),
    re.compile(r"(?<![\w/.:$<`-])((?:[A-Z][a-z]\w*[A-Z]|k[A-Z])\w+)"),
)
# w_i, x_1: mathematical subscripts. OUT_FILE: to be filled in, unless it is one of our macros or
# variables.
NO_NAME = re.compile(r"[A-Za-z]_\w|(?!BG_|BAREGRAD_)[A-Z_]*[A-Z]{2,}[A-Z_]*|\w*NAME\w*")


def cpp_comments(text: str):
    for token in CPP_TOKEN.finditer(text):
        if token["comment"]:
            if not ARGUMENT.fullmatch(token["comment"]):
                yield token.start(), token.end()


def python_comments(text: str):
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            begin = starts[token.start[0] - 1] + token.start[1]
            yield begin, begin + len(token.string)
    lines = text.splitlines(keepends=True)
    holders = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, holders) and ast.get_docstring(node, clean=False) is not None:
            string = node.body[0].value
            # Columns of ast count bytes.
            ends = [starts[row - 1] + len(lines[row - 1].encode()[:column].decode())
                    for row, column in ((string.lineno, string.col_offset),
                                        (string.end_lineno, string.end_col_offset))]
            yield ends[0], ends[1]


def comments(path: str, text: str) -> list[tuple[int, int]]:
    """Where comments begin and end in a file; all of a document is one."""
    if path.endswith(".md"):
        return [(0, len(text))]
    if path.endswith(CPP_SUFFIXES):
        return list(cpp_comments(text))
    if path.endswith(".py"):
        return sorted(python_comments(text))
    if path.endswith(HASH_SUFFIXES):
        return [found.span() for found in HASH_COMMENT.finditer(text)]
    return []


class Tree:
    """The existing paths, and the words and text of all code."""

    def __init__(self, texts: dict[str, str]):
        self.spans = {path: comments(path, text) for path, text in texts.items()}
        folders = {parent.as_posix() for path in texts for parent in pathlib.PurePosixPath(path).parents}
        self.folder_names = {path.split("/")[-1] for path in folders}
        self.tails = set()
        for path in (*texts, *folders):
            parts = path.split("/")
            self.tails |= {"/".join(parts[first:]) for first in range(len(parts))}
        code = []
        for path, text in texts.items():
            if path.endswith(".md") or path in SELF or EXEMPT.fullmatch(path):
                continue
            end = 0
            for begin, stop in self.spans[path]:
                code.append(text[end:begin])
                end = stop
            code.append(text[end:])
        self.code = "\n".join(code)
        self.words = set(WORD.findall(self.code)) | set(WORD.findall(" ".join(texts)))

    def has_path(self, tail: str) -> bool:
        if tail in self.tails or ("*" in tail and fnmatch.filter(self.tails, tail)):
            return True
        if "." not in tail and any(tail + suffix in self.tails for suffix in (".h", ".cpp", ".py")):
            return True
        return re.search(rf"(?<!\w){re.escape(tail)}(?!\w)", self.code) is not None

    def has_word(self, word: str) -> bool:
        """Members end in an underscore, and so do in-place functions whose names macros make."""
        return len(word) < 3 or bool({word, word.rstrip("_"), word + "_"} & self.words)

    def has_start(self, start: str) -> bool:
        return any(word.startswith(start) for word in self.words)


def without_braces(path: str) -> list[str]:
    """reduce.{h,cpp} -> reduce.h, reduce.cpp."""
    found = re.search(r"\{([^{}]*)\}", path)
    if found is None:
        return [path]
    before, after = path[: found.start()], path[found.end():]
    return [way for choice in found[1].split(",") for way in without_braces(before + choice + after)]


def looks_like_a_path(tree: Tree, path: str) -> bool:
    """read/write, km/h and nn/optim do not: without a suffix, a path goes from a folder to something else."""
    if re.search(rf"{SUFFIX}$", path):
        return True
    parts = path.strip("/").split("/")
    if parts[0] in ("src", "tests", "docs", "scripts"):
        return True
    return parts[0] in tree.folder_names and (path.endswith("/") or "_" in path)


def missing_paths(tree: Tree, text: str):
    """(offset, path) of each path that does not exist."""
    for found in (*PATH.finditer(text), *QUOTED_PATH.finditer(text)):
        path = found["path"]
        if path.count("{") != path.count("}") or PLACEHOLDER.search(path):
            continue
        if found.re is PATH and not looks_like_a_path(tree, path):
            continue
        if not all(tree.has_path(way.strip("/")) for way in without_braces(path)):
            yield found.start(), path


def names_in(text: str):
    """(offset, name) of what is clearly a name."""
    for found in QUOTED.finditer(text):
        inside = found[1]
        if re.search(r"[/$]|--|^-|\bbuild\b", inside) or FOREIGN_SCOPE.search(inside):
            continue
        for name in re.finditer(r"^[A-Za-z_][\w.:]*$|[A-Za-z_][\w.:]*(?=\()", inside):
            yield found.start() + 1 + name.start(), name[0]
    for pattern in NAMES:
        for found in pattern.finditer(text):
            yield found.start(), found[1]


def missing_names(tree: Tree, text: str):
    """(offset, name) of each name that does not occur in code."""
    introduced = set(WORD.findall(" ".join(FENCE.findall(text))))
    for offset, name in names_in(text):
        if FOREIGN_SCOPE.match(name) or re.search(rf"{SUFFIX}$", name) or NO_NAME.fullmatch(name):
            continue
        if name.endswith("*"):
            missing = not tree.has_start(name[:-1])
        else:
            missing = not all(tree.has_word(word) or word in FOREIGN_NAMES or word.rstrip("_") in introduced
                              for word in WORD.findall(name))
        if missing:
            yield offset, name


def check(texts: dict[str, str]) -> list[str]:
    """The problems, as `path:line: message`."""
    tree = Tree(texts)
    problems = set()
    for path, text in texts.items():
        if EXEMPT.fullmatch(path):
            continue
        for begin, end in tree.spans[path]:
            comment = URL.sub(lambda found: " " * len(found[0]), text[begin:end])
            for find, message in ((missing_paths, "no such file or folder"), (missing_names, "no such name in code")):
                for offset, name in find(tree, comment):
                    problems.add((path, text.count("\n", 0, begin + offset) + 1, f"{name}: {message}"))
    return [f"{path}:{line}: {message}" for path, line, message in sorted(problems)]


def read_texts(root: pathlib.Path, files: list[str]) -> dict[str, str]:
    texts = {}
    for path in files:
        data = (root / path).read_bytes()
        if b"\0" not in data:
            texts[path] = data.decode("utf-8", errors="replace")
    return texts


def main() -> int:
    texts = read_texts(ROOT, list_files())
    problems = check(texts)
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        print(f"check_comments: {len(problems)} problems", file=sys.stderr)
        return 1
    print(f"check_comments: all that {len(texts)} files mention exists")
    return 0


if __name__ == "__main__":
    sys.exit(main())
