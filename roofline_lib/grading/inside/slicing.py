"""What a notebook holds: its code cells, and of those the statements that one function leans on.
Used inside the sandbox, stands alone.

A function is judged by these statements and not by running the notebook from the top, so that a
loop, an exit or a patch elsewhere in it cannot reach the function. Where that raises an error, the
grader asks again with the whole notebook.
"""

import __future__

import ast
import builtins
import dis
import json
import math
import re
import types
from typing import NamedTuple

CELL, SOURCE = 100_000, 1_000_000  # characters of one cell, and of all that are read
STATEMENTS = 1000  # of one cell
MAGICS = 30  # lines of a cell that are looked at one by one
# a line that begins with the first shows that the second are prompts
PROMPTS = (
    (re.compile(r">>>( |$)"), re.compile(r"^(>>>|\.\.\.)( |$)")),
    (re.compile(r"In \[\d+\]: ?"), re.compile(r"^(In \[\d+\]: ?|\s*\.{3,}: ?)")),
)
FUNCTIONS = ast.FunctionDef, ast.AsyncFunctionDef
DEFINITIONS = *FUNCTIONS, ast.ClassDef


class Compiled(NamedTuple):
    """A top-level statement of a notebook."""

    node: ast.stmt
    code: types.CodeType
    cell: int  # counted from 1


class Statement(NamedTuple):
    """A top-level statement of a notebook, and what it does to the notebook's names."""

    node: ast.stmt
    code: types.CodeType
    cell: int
    reads: set  # names that it looks up
    binds: set  # names that it gives an object, or takes away
    changes: set  # names whose object it changes in place, or may: see changed_by

    @property
    def imports(self):
        return isinstance(self.node, ast.Import | ast.ImportFrom)

    @property
    def imports_all(self):
        return self.imports and self.node.names[0].name == "*"

    @property
    def defines(self):
        return isinstance(self.node, DEFINITIONS)

    @property
    def defines_function(self):
        return isinstance(self.node, FUNCTIONS)


class Reading(NamedTuple):
    """What could be read of a notebook's cells."""

    statements: list  # of Compiled, in order
    skipped: dict  # number of a cell that cannot be read: why
    untouched: bool  # a stub of the function asked for was there, and left out


def code_cells(data):
    """The sources of a notebook's code cells (formats 3 and 4); a ValueError where it is none."""
    try:
        book = json.loads(data.decode("utf-8-sig"))
        if "cells" in book:
            cells = book["cells"]
        else:
            cells = [cell for sheet in book["worksheets"] for cell in sheet["cells"]]
        if not isinstance(cells, list):
            raise TypeError("cells that are no list")
        return [
            source_of(cell)
            for cell in cells
            if isinstance(cell, dict) and cell.get("cell_type") == "code"
        ]
    except (ValueError, KeyError, TypeError, RecursionError, MemoryError) as error:
        raise ValueError(f"this is no notebook ({type(error).__name__})") from None


def source_of(cell):
    """The text of a code cell, which is a text or a list of lines; format 3 calls it its input."""
    source = cell.get("source", cell.get("input", ""))
    if not isinstance(source, list):
        return str(source)
    if len(source) > SOURCE:
        raise ValueError("a cell of too many lines")
    return "".join(map(str, source))


def parse(source):
    """A cell's statements. Magics and shell lines become `pass`; a cell in another language has
    none. SyntaxError where that fails, even without the indent or prompts that Jupyter drops."""
    text = source.replace("\r\n", "\n")
    lines = text.strip().split("\n")
    try:
        return parse_lines([*lines])
    except SyntaxError as error:
        cleared = without_prompts(without_indent(text.strip("\n").split("\n")))
        if cleared == lines:
            raise
        try:
            return parse_lines(cleared)
        except SyntaxError:
            raise error from None


def parse_lines(lines):
    """The statements of these lines, which it changes."""
    for _ in range(MAGICS):
        try:
            return ast.parse("\n".join(lines)).body
        # a line is a magic only where Python stumbles over it: `% n` may go on with the line before
        except SyntaxError as error:
            at = (error.lineno or 1) - 1
            if lines[0].startswith("%%"):
                if lines[0].split()[0] not in ("%%time", "%%timeit", "%%capture", "%%prun"):
                    return []
                lines[0] = ""
            elif at >= len(lines) or without_magic(lines[at]) == lines[at]:
                raise
            else:
                take_magic_out(lines, at)
    for at in range(len(lines)):
        take_magic_out(lines, at)
    return ast.parse("\n".join(lines)).body


def take_magic_out(lines, at):
    """Put `without_magic` in the place of a line, and nothing in that of those that a backslash
    makes part of a magic."""
    plain = without_magic(lines[at])
    if plain == lines[at]:
        return
    end = at
    while lines[end].endswith("\\") and end + 1 < len(lines):
        end += 1
    lines[at : end + 1] = [plain, *[""] * (end - at)]


def without_indent(lines):
    """Lines without the indent that the first of them has."""
    indent = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
    return [line.removeprefix(indent) for line in lines]


def without_prompts(lines):
    """Lines without the prompts of a session that was pasted: `>>>` and `...`, or `In [3]:`."""
    for first, prompt in PROMPTS:
        if any(first.match(line) for line in lines):
            return [prompt.sub("", line, count=1) for line in lines]
    return lines


def without_magic(line):
    """A line with `pass` for a magic or shell command, and None for what one would give."""
    indent, text = line[: len(line) - len(line.lstrip())], line.strip()
    name, _, value = text.partition("=")
    if text.startswith(("%", "!", "?", "/", ";", ",")) or text.endswith("?"):
        return f"{indent}pass"
    return f"{indent}{name}= None" if value.strip().startswith(("!", "%")) else line


def is_stub(node):
    """Whether a statement defines an untouched function: nothing in it but words, `...`, `pass`,
    None and NotImplementedError."""
    return isinstance(node, ast.FunctionDef) and all(map(does_nothing, node.body))


def does_nothing(line):
    """Whether a line of a function is as empty as a stub's: see `is_stub`."""
    if isinstance(line, ast.Raise):
        return "NotImplementedError" in ast.dump(line)
    if not isinstance(line, ast.Pass | ast.Expr | ast.Return):
        return False
    value = getattr(line, "value", None)
    if isinstance(value, ast.Constant):
        return value.value in (..., None) or isinstance(line, ast.Expr)
    return value is None


def read_statements(cells, name):
    """The Reading of a notebook's cells, with untouched stubs of the function `name` left out."""
    found, skipped, total, untouched = [], {}, 0, False
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    for number, source in enumerate(cells, 1):
        try:
            if len(source) > CELL or total + len(source) > SOURCE:
                raise ValueError("too long")
            total += len(source)
            nodes = parse(source)
            if len(nodes) > STATEMENTS:
                raise ValueError("too many statements")
            flags |= future_flags(nodes)  # these hold from here on, as in Jupyter
            touched = [node for node in nodes if not (is_stub(node) and node.name == name)]
            untouched |= len(touched) < len(nodes)
            found += [Compiled(node, compiled(node, number, flags), number) for node in touched]
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            skipped[number] = reason(error)[:100]
    return Reading(found, skipped, untouched)


def future_flags(nodes):
    """The compiler's flags for what a cell imports from __future__."""
    flags = 0
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            for imported in node.names:
                feature = getattr(__future__, imported.name, None)
                flags |= getattr(feature, "compiler_flag", 0)
    return flags


def compiled(node, cell, flags):
    module = ast.Module([node], [])
    return compile(module, f"<cell {cell}>", "exec", flags, dont_inherit=True)


def reason(error):
    """Why a cell cannot be read."""
    if isinstance(error, SyntaxError) and error.lineno:
        return f"{error.msg}, line {error.lineno}"
    return f"{getattr(error, 'msg', error)}"


def names_of(code, top=True):
    """(names that a code object reads, names that it binds in the notebook's namespace)."""
    reads, binds = set(), set()
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS"):
            reads.add(step.argval)
        elif step.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
            binds.add(step.argval)
        elif top and step.opname in ("STORE_NAME", "DELETE_NAME"):
            binds.add(step.argval)
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            more_reads, more_binds = names_of(inner, top=False)
            reads, binds = reads | more_reads, binds | more_binds
    return reads, binds


def changed_by(node):
    """Names whose objects a statement changes in place: `table[k] = v`, `table.update(...)`,
    `fill(table)`; of a definition also those that its decorators and defaults name, which are
    evaluated where it stands: `@f.register`, `key=table.setdefault("a", 1)`."""
    defines = isinstance(node, DEFINITIONS)
    targets = [inner for inner in ast.walk(node) if is_assigned_part(inner)]
    targets += names_evaluated_by(node) if defines else []
    for inner in ast.walk(node) if defines else (node,):
        if isinstance(inner, ast.Expr) and isinstance(inner.value, ast.Call):
            call = inner.value
            targets.append(call.func)
            if defines or isinstance(call.func, ast.Name):
                targets += call.args
    return {root_name(target) for target in targets}


def names_evaluated_by(definition):
    """What the decorators and the calls in the defaults of a definition name."""
    defaults = []
    if isinstance(definition, FUNCTIONS):
        given = [*definition.args.defaults, *filter(None, definition.args.kw_defaults)]
        defaults = [one for value in given for one in ast.walk(value) if isinstance(one, ast.Call)]
    evaluated = [*definition.decorator_list, *defaults]
    return [inner for one in evaluated for inner in ast.walk(one) if isinstance(inner, ast.Name)]


def is_assigned_part(node):
    """Whether this is the `x.y` or `x[y]` of an assignment or a `del`."""
    is_part = isinstance(node, ast.Attribute | ast.Subscript)
    return is_part and isinstance(node.ctx, ast.Store | ast.Del)


def root_name(node):
    """The `x` of `x.y[z](...)`; None where it begins with no name."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return getattr(node, "id", None)


def slice_for(name, found, known=()):
    """Of a notebook's statements, the codes of those that the function `name` leans on, in order.

    They end with the last cell that defines the function or adds to it (`@name.register`), so that
    a name used again further down changes nothing; or, where it needs something that is not `known`
    and not there yet, with the first cell that has it.
    """
    statements = [
        Statement(node, code, cell, *names_of(code), changed_by(node)) for node, code, cell in found
    ]
    given = {*known, *dir(builtins)}
    defining = [one.cell for one in statements if name in one.binds or adds_to(name, one.node)]
    end = max(defining, default=math.inf)
    while True:
        taken, needed = closure(name, [one for one in statements if one.cell <= end])
        missing = needed - given - names_bound_by(taken)
        later = [one.cell for one in statements if one.cell > end and one.binds & missing]
        if not later:
            return [statement.code for statement in taken]
        end = min(later)


def adds_to(name, node):
    """Whether a statement is a definition that a method of `name` decorates."""
    decorators = node.decorator_list if isinstance(node, DEFINITIONS) else []
    called = [one.func if isinstance(one, ast.Call) else one for one in decorators]
    return any(isinstance(one, ast.Attribute) and root_name(one) == name for one in called)


def closure(name, statements):
    """(the statements that `name` leans on, the names that these read or bind).

    A statement belongs there if it binds a name that is needed, changes its object, or reads it,
    unless that is a plain function or the statement a definition. Changes to imported modules do
    not: `np.log = ...` may be a joke, an accident or an attack, never an answer.
    """
    imported = names_bound_by(one for one in statements if one.imports) | {"__builtins__"}
    own = names_bound_by(one for one in statements if not one.imports) - imported
    objects = changeable_names(statements, own) - {name}
    touched = [
        one.binds | (one.changes & own) | (set() if one.defines else one.reads & objects)
        for one in statements
    ]
    taken = {i for i, one in enumerate(statements) if one.imports_all}
    needed = {name}
    while more := {i for i, names in enumerate(touched) if i not in taken and names & needed}:
        taken |= more
        for i in more:
            needed |= statements[i].reads | statements[i].binds
    return [statements[i] for i in sorted(taken)], needed


def names_bound_by(statements):
    return {name for statement in statements for name in statement.binds}


def changeable_names(statements, own):
    """Those of the `own` names whose object a statement may change by merely reading the name: all
    but plain functions."""
    found = set()
    for one in statements:
        is_plain_function = one.defines_function and len(one.binds) <= 1 and not one.changes & own
        if not is_plain_function:
            found |= one.binds & own
    return found
