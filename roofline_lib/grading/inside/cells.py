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
import types

# characters of one cell and of all that are read; statements of a cell
CELL, SOURCE, STATEMENTS = 100_000, 1_000_000, 1000
DEFINITIONS = ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef
MAGICS = 30  # lines of a cell that are looked at one by one


def code_cells(data):
    """The sources of a notebook's code cells (formats 3 and 4); a ValueError where it is none."""
    try:
        book = json.loads(data.decode("utf-8-sig"))
        cells = (
            book["cells"]
            if "cells" in book
            else [cell for sheet in book["worksheets"] for cell in sheet["cells"]]
        )
        cells = [
            cell for cell in cells if isinstance(cell, dict) and cell.get("cell_type") == "code"
        ]
        sources = [cell.get("source", cell.get("input", "")) for cell in cells]
        if any(isinstance(source, list) and len(source) > SOURCE for source in sources):
            raise ValueError("a cell of too many lines")
        return [
            "".join(map(str, source)) if isinstance(source, list) else str(source)
            for source in sources
        ]
    except (ValueError, KeyError, TypeError, RecursionError, MemoryError) as error:
        raise ValueError(f"this is no notebook ({type(error).__name__})") from None


def parse(source):
    """A cell's statements. Magics and shell lines become `pass`; a cell in another language has
    none. SyntaxError where that fails."""
    lines = source.replace("\r\n", "\n").strip().split("\n")
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
            elif at >= len(lines) or (plain := without_magic(lines[at])) == lines[at]:
                raise
            else:
                lines[at] = plain
    return ast.parse("\n".join(map(without_magic, lines))).body


def without_magic(line):
    """A line with `pass` for a magic or shell command, and None for what one would give."""
    indent, text = line[: len(line) - len(line.lstrip())], line.strip()
    name, _, value = text.partition("=")
    if text.startswith(("%", "!", "?")) or text.endswith("?"):
        return f"{indent}pass"
    return f"{indent}{name}= None" if value.strip().startswith(("!", "%")) else line


def is_stub(node):
    """Whether a statement defines an untouched function: nothing in it but words, `...`, `pass`,
    None and NotImplementedError."""

    def empty(line):
        value = getattr(line, "value", None)
        blank = (
            value is None
            or isinstance(value, ast.Constant)
            and (value.value in (..., None) or isinstance(line, ast.Expr))
        )
        return (
            isinstance(line, ast.Pass | ast.Expr | ast.Return)
            and blank
            or isinstance(line, ast.Raise)
            and "NotImplementedError" in ast.dump(line)
        )

    return isinstance(node, ast.FunctionDef) and all(map(empty, node.body))


def statements(cells, name):
    """([(statement, its code, number of its cell)], {number of a cell that cannot be read: why},
    whether a stub of `name` was left out)."""
    found, skipped, total, untouched, flags = [], {}, 0, False, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    for number, source in enumerate(cells, 1):
        total += len(source)
        try:
            if len(source) > CELL or total > SOURCE:
                raise ValueError("too long")
            nodes = parse(source)
            if len(nodes) > STATEMENTS:
                raise ValueError("too many statements")
            for word in (
                word.name
                for node in nodes
                if getattr(node, "module", None) == "__future__"
                for word in node.names
            ):
                # holds from here on, as in Jupyter
                flags |= getattr(getattr(__future__, word, None), "compiler_flag", 0)
            touched = [node for node in nodes if not (is_stub(node) and node.name == name)]
            untouched |= len(touched) < len(nodes)
            found += [
                (
                    node,
                    compile(
                        ast.Module([node], []), f"<cell {number}>", "exec", flags, dont_inherit=True
                    ),
                    number,
                )
                for node in touched
            ]
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            where = (
                f", line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
            )
            skipped[number] = f"{getattr(error, 'msg', error)}{where}"[:100]
    return found, skipped, untouched


def names_of(code, top=True):
    """(names that a code object reads, names that it binds in the notebook's namespace)."""
    reads, binds = set(), set()
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS"):
            reads.add(step.argval)
        elif (
            step.opname in ("STORE_GLOBAL", "DELETE_GLOBAL")
            or top
            and step.opname in ("STORE_NAME", "DELETE_NAME")
        ):
            binds.add(step.argval)
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            more_reads, more_binds = names_of(inner, top=False)
            reads, binds = reads | more_reads, binds | more_binds
    return reads, binds


def changed_by(node):
    """Names whose objects a statement changes in place: `table[k] = v`, `table.update(...)`,
    `fill(table)`."""
    targets = [
        inner
        for inner in ast.walk(node)
        if isinstance(inner, ast.Attribute | ast.Subscript)
        and isinstance(inner.ctx, ast.Store | ast.Del)
    ]
    defines = isinstance(node, DEFINITIONS)
    for inner in ast.walk(node) if defines else (node,):
        if isinstance(inner, ast.Expr) and isinstance(call := inner.value, ast.Call):
            targets += [
                call.func,
                *(call.args if defines or isinstance(call.func, ast.Name) else ()),
            ]
    roots = set()
    for target in targets:
        while isinstance(target, ast.Attribute | ast.Subscript | ast.Call):
            target = target.func if isinstance(target, ast.Call) else target.value
        roots.add(getattr(target, "id", None))
    return roots


def slice_for(name, nodes, known=()):
    """Of a notebook's statements, the codes of those that the function `name` leans on, in order.

    They end with the last cell that defines the function, so that a name used again further down
    changes nothing; or, where it needs something that is not `known` and not there yet, with the
    first cell that has it.
    """
    facts = [(node, code, cell, *names_of(code), changed_by(node)) for node, code, cell in nodes]
    given, end = (
        {*known, *dir(builtins)},
        max((cell for _, _, cell, _, binds, _ in facts if name in binds), default=math.inf),
    )
    while True:
        taken, needed = closure(name, [fact for fact in facts if fact[2] <= end])
        missing = needed - given - {bound for fact in taken for bound in fact[4]}
        later = [cell for _, _, cell, _, binds, _ in facts if cell > end and binds & missing]
        if not later:
            return [fact[1] for fact in taken]
        end = min(later)


def closure(name, facts):
    """(the facts of the statements that `name` leans on, the names that these read or bind).

    A statement belongs there if it binds a name that is needed, changes its object, or reads it,
    unless that is a plain function or the statement a definition. Changes to imported modules do
    not: `np.log = ...` may be a joke, an accident or an attack, never an answer.
    """
    imports = {
        i for i, fact in enumerate(facts) if isinstance(fact[0], ast.Import | ast.ImportFrom)
    }
    imported = {bound for i in imports for bound in facts[i][4]} | {"__builtins__"}
    own = {
        bound for i, fact in enumerate(facts) if i not in imports for bound in fact[4]
    } - imported
    objects = {
        bound
        for node, *_, binds, changed in facts
        for bound in binds & own - {name}
        if not isinstance(node, DEFINITIONS[:2]) or len(binds) > 1 or changed & own
    }
    taken, needed = {i for i in imports if facts[i][0].names[0].name == "*"}, {name}
    touches = [
        binds | changed & own | (set() if isinstance(node, DEFINITIONS) else reads & objects)
        for node, _, _, reads, binds, changed in facts
    ]
    while more := {i for i, touched in enumerate(touches) if i not in taken and touched & needed}:
        taken |= more
        needed |= {word for i in more for word in facts[i][3] | facts[i][4]}
    return [facts[i] for i in sorted(taken)], needed
