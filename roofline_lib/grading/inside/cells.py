"""What a notebook holds: its code cells, and of those the statements that one function leans on. Used inside the sandbox, stands alone.

A function is judged by these statements and not by running the notebook from the top, so that a loop, an exit or a patch elsewhere in
it cannot reach the function. Where that raises an error, the grader asks again with the whole notebook.
"""

import ast
import dis
import json
import types

CELL, SOURCE, STATEMENTS = 100_000, 1_000_000, 1000  # characters of one cell and of all that are read; statements of a cell


def code_cells(data):
    """The sources of a notebook's code cells (formats 3 and 4); a ValueError where it is none."""
    try:
        book = json.loads(data.decode("utf-8-sig"))
        cells = book["cells"] if "cells" in book else [cell for sheet in book["worksheets"] for cell in sheet["cells"]]
        cells = [cell for cell in cells if isinstance(cell, dict) and cell.get("cell_type") == "code"]
        sources = [cell.get("source", cell.get("input", "")) for cell in cells]
    except (ValueError, KeyError, TypeError, RecursionError, MemoryError) as error:
        raise ValueError(f"this is no notebook ({type(error).__name__})") from None
    return ["".join(map(str, source)) if isinstance(source, list) else str(source) for source in sources]


def parse(source):
    """A cell's statements. Magics and shell lines become `pass`; a cell in another language has none. SyntaxError where that fails."""
    try:
        return ast.parse(source).body
    except SyntaxError:
        lines = source.strip().splitlines()
        if lines and lines[0].startswith("%%"):
            if lines.pop(0).split()[0] not in ("%%time", "%%timeit", "%%capture", "%%prun"):
                return []
        for i, line in enumerate(lines):
            indent, text = line[: len(line) - len(line.lstrip())], line.strip()
            name, _, value = text.partition("=")
            if text.startswith(("%", "!", "?")) or text.endswith("?"):
                lines[i] = f"{indent}pass"
            elif value.strip().startswith(("!", "%")):
                lines[i] = f"{indent}{name}= None"
        return ast.parse("\n".join(lines)).body


def is_stub(node):
    """Whether a statement defines an untouched function: nothing in it but words, `...`, `pass`, None and NotImplementedError."""
    def empty(line):
        value = getattr(line, "value", None)
        blank = value is None or isinstance(value, ast.Constant) and (value.value in (..., None) or isinstance(line, ast.Expr))
        return (isinstance(line, ast.Pass | ast.Expr | ast.Return) and blank
                or isinstance(line, ast.Raise) and "NotImplementedError" in ast.dump(line))
    return isinstance(node, ast.FunctionDef) and all(map(empty, node.body))


def statements(cells, name):
    """([(statement, its code)], [numbers of the cells that cannot be read], whether untouched definitions of `name` were left out)."""
    found, skipped, total, untouched = [], [], 0, False
    for number, source in enumerate(cells, 1):
        total += len(source)
        try:
            if len(source) > CELL or total > SOURCE:
                raise ValueError
            nodes = parse(source)
            if len(nodes) > STATEMENTS:
                raise ValueError
            touched = [node for node in nodes if not (is_stub(node) and node.name == name)]
            untouched |= len(touched) < len(nodes)
            found += [(node, compile(ast.Module([node], []), f"<cell {number}>", "exec", dont_inherit=True)) for node in touched]
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            skipped.append(number)
    return found, skipped, untouched


def names_of(code, top=True):
    """(names that a code object reads, names that it binds in the notebook's namespace)."""
    reads, binds = set(), set()
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS"):
            reads.add(step.argval)
        elif step.opname in ("STORE_GLOBAL", "DELETE_GLOBAL") or top and step.opname in ("STORE_NAME", "DELETE_NAME"):
            binds.add(step.argval)
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            more_reads, more_binds = names_of(inner, top=False)
            reads, binds = reads | more_reads, binds | more_binds
    return reads, binds


def changed_by(node):
    """Names whose objects a statement changes in place: `table[k] = v`, `table.update(...)`, `fill(table)`."""
    targets = [inner for inner in ast.walk(node)
               if isinstance(inner, ast.Attribute | ast.Subscript) and isinstance(inner.ctx, ast.Store | ast.Del)]
    if isinstance(node, ast.Expr) and isinstance(call := node.value, ast.Call):
        targets += [call.func, *(call.args if isinstance(call.func, ast.Name) else ())]
    roots = set()
    for target in targets:
        while isinstance(target, ast.Attribute | ast.Subscript | ast.Call):
            target = target.func if isinstance(target, ast.Call) else target.value
        roots.add(getattr(target, "id", None))
    return roots


def slice_for(name, nodes):
    """Of a notebook's statements, the codes of those that the function `name` leans on, in order.

    Changes to imported modules are no part of it: `np.log = ...` may be a joke, an accident or an attack, never an answer.
    """
    facts = [(node, code, *names_of(code), changed_by(node)) for node, code in nodes]
    imports = {i for i, fact in enumerate(facts) if isinstance(fact[0], ast.Import | ast.ImportFrom)}
    imported = {bound for i in imports for bound in facts[i][3]} | {"__builtins__"}
    own = {bound for i, fact in enumerate(facts) if i not in imports for bound in fact[3]} - imported
    taken = {i for i in imports if facts[i][0].names[0].name == "*"}
    needed = {name}
    while more := {i for i, (*_, binds, changed) in enumerate(facts) if i not in taken and (binds | changed & own) & needed}:
        taken |= more
        needed |= {word for i in more for word in facts[i][2] | facts[i][3]}
    return [facts[i][1] for i in sorted(taken)]
