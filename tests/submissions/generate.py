"""Hostile and unlucky notebooks for lesson 1, each with the mark that it must get.

    python tests/submissions/generate.py FOLDER        writes them all there

Every kind is a student. An attack replaces the answer to one question, `layer_intensity`, or stands
in a cell of its own before the first question; all other questions are answered right, by the
solution's own cells, and must keep their marks.
"""
# ruff: noqa: E501  programs in strings

import copy
import json
import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LESSON = "01_arithmetic_intensity"
SOLUTION = json.loads((ROOT / f"solutions/{LESSON}/{LESSON}.ipynb").read_text(encoding="utf-8"))
EXERCISE = json.loads((ROOT / f"exercises/{LESSON}/{LESSON}.ipynb").read_text(encoding="utf-8"))
TARGET = "layer_intensity"
ALL = {
    cell["id"]
    for cell in SOLUTION["cells"]
    if "BEGIN SOLUTION" in "".join(cell["source"]) and cell["cell_type"] == "code"
}
OTHERS = ALL - {TARGET}
KINDS = {}  # student: (what is written, the questions that must be right, the status of the row)

HEAD = "def layer_intensity(rows, inputs, outputs, weight_bytes, activation_bytes):\n"
RIGHT = "2 * rows * inputs * outputs / (weight_bytes * inputs * outputs + activation_bytes * rows * (inputs + outputs))"


def kind(name, written, right=OTHERS, status="graded"):
    assert name not in KINDS
    KINDS[name] = (written, frozenset(right), status)


def answered(target=None, *, before=(), after=(), **sources):
    """The exercise as handed in: right answers, but for `target` (the body of layer_intensity) and
    `sources` (whole cells by id)."""
    book, sources = copy.deepcopy(EXERCISE), dict(sources)
    if target is not None:
        sources[TARGET] = HEAD + "\n".join(
            "    " + line for line in target.strip("\n").splitlines()
        )
    for right, cell in zip(SOLUTION["cells"], book["cells"], strict=True):
        if cell["id"] in sources:
            cell["source"] = sources[cell["id"]]
        elif cell["id"] in ALL:
            cell["source"] = re.sub(r".*### (BEGIN|END) SOLUTION\n?", "", "".join(right["source"]))
    first = next(i for i, cell in enumerate(book["cells"]) if cell["id"] == "values")
    book["cells"][first:first] = [code(text, f"before_{i}") for i, text in enumerate(before)]
    book["cells"] += [code(text, f"after_{i}") for i, text in enumerate(after)]
    return book


def code(text, name):
    return {
        "cell_type": "code",
        "id": name,
        "metadata": {},
        "execution_count": None,
        "outputs": [],
        "source": text,
    }


def cell_of(book, name):
    return next(cell for cell in book["cells"] if cell["id"] == name)


def beside(name, text, right=ALL):
    """An attack at the top level, beside right answers to everything."""
    kind(name, answered(before=[text]), right)


def within(name, body, right=OTHERS):
    """An attack inside the function of one question."""
    kind(name, answered(body), right)


# Ordinary and unlucky

kind("untouched", EXERCISE, ())
kind("all_right", answered(), ALL)
kind(
    "partly_right",
    answered(
        "...\nreturn ...",
        rows_for="def rows_for(target, n, k, element_bytes):\n    return math.ceil(target)",
    ),
    OTHERS - {"rows_for"},
)
kind(
    "edge_case_forgotten",
    answered(
        rows_for="""
def rows_for(target, n, k, element_bytes):
    return math.ceil(target * element_bytes * n * k / (2 * n * k - target * element_bytes * (n + k)))"""
    ),
    ALL - {"rows_for"},
)
kind(
    "public_checks_only",
    answered("""
return {(1, 2): 0.9995119570522206, (64, .5): 237.4376, (32768, 1): 1598.4}.get((rows, weight_bytes), 1.0)"""),
)
kind("not_json", b"%PDF-1.7 this is no notebook", (), "unreadable")
kind("json_but_no_notebook", b'{"marks": 100}', (), "unreadable")
kind("json_list", b"[1, 2, 3]", (), "unreadable")
kind("cut_short", json.dumps(answered()).encode()[:3000], (), "unreadable")
kind("nested_too_deep", b'{"cells": ' + b"[" * 200_000 + b"]" * 200_000 + b"}", (), "unreadable")
kind("empty", b"", (), "empty")
kind("only_blanks", b" \n\n", (), "empty")
kind("missing", None, (), "missing")
kind(
    "fifteen_million_lines",
    b'{"cells": [{"cell_type": "code", "source": [' + b"1," * 15_000_000 + b"1]}]}",
    (),
    "unreadable",
)
kind("too_large", b"[" + b"0," * (17 << 20) + b"0]", (), "unreadable")
kind("byte_order_mark", b"\xef\xbb\xbf" + json.dumps(answered()).encode(), ALL)
kind("not_utf8", '{"cells": "é"}'.encode("latin-1"), (), "unreadable")
kind(
    "format_3",
    {
        "nbformat": 3,
        "nbformat_minor": 0,
        "metadata": {},
        "worksheets": [
            {
                "cells": [
                    {**cell, "input": "".join(cell["source"])}
                    | ({"language": "python"} if cell["cell_type"] == "code" else {})
                    for cell in answered()["cells"]
                ]
            }
        ],
    },
    ALL,
)
kind("format_99", {**answered(), "nbformat": 99, "nbformat_minor": None}, ALL)
kind(
    "odd_cells",
    {
        **answered(),
        "cells": [
            None,
            7,
            "x",
            {},
            {"cell_type": "code"},
            {"cell_type": "code", "source": None, "metadata": 3},
            {"cell_type": "code", "source": [1, None]},
            *answered()["cells"],
        ],
    },
    ALL,
)
kind("syntax_error", answered(after=["def oops(:\n    pass", "while True print(1)"]), ALL)
within("syntax_error_within", "return (rows * ")
kind(
    "parses_badly",
    answered(
        before=[
            "x = " + "(" * 5000 + "1" + ")" * 5000,
            "y = " + "-" * 90_000 + "1",
            "z = 1" + "+1" * 40_000,
            "nul = '\0'",
            "s = '\ud800'",
        ]
    ),
    ALL,
)
kind(
    "deleted_setup_and_checks",
    {**answered(), "cells": [c for c in answered()["cells"] if c["id"] in ALL]},
    ALL,
)
kind(
    "deleted_question",
    {**answered(), "cells": [c for c in answered()["cells"] if c["id"] != TARGET]},
)
kind(
    "duplicated_untouched",
    {
        **answered(),
        "cells": [*answered()["cells"], *(c for c in EXERCISE["cells"] if c["id"] in ALL)],
    },
    ALL,
)
kind("duplicated_answered", {**answered(), "cells": 2 * answered()["cells"]}, ALL)
kind(
    "renamed_ids",
    {
        **answered(),
        "cells": [
            {**c, "id": f"c{i}", "metadata": {"nbgrader": {"grade_id": f"x{i}", "points": 100}}}
            for i, c in enumerate(answered()["cells"])
        ],
    },
    ALL,
)
kind(
    "metadata_stripped",
    {"cells": [{"cell_type": c["cell_type"], "source": c["source"]} for c in answered()["cells"]]},
    ALL,
)
kind(
    "metadata_raised",
    json.loads(json.dumps(answered("return 1")).replace('"points": 1', '"points": 1000')),
)
kind(
    "edited_checks",
    {
        **answered("return 1"),
        "cells": [
            {**c, "source": "print('right')"} if c["id"].startswith("test_") else c
            for c in answered("return 1")["cells"]
        ],
    },
)
kind("in_reverse", {**answered(), "cells": answered()["cells"][::-1]}, ALL)
kind("windows_lines", json.loads(json.dumps(answered()).replace("\\n", "\\r\\n")), ALL)
kind(
    "magics_and_shell",
    answered(
        before=[
            "%matplotlib inline\n!rm -rf ~\nfiles = !ls\n%time x = 1",
            "%%bash\nrm -rf /",
            "%%time\nw = 3",
            "rl.gemm?\n??rl",
        ],
        layer_intensity=f"%load_ext x\n!touch y\n{HEAD}    return {RIGHT}\n%timeit 1",
    ),
    ALL,
)
beside("cell_magic_of_another_language", "%%javascript\nlet x = {};")
beside("input", "name = input('your name? ')")
within("input_within", "return float(input('the answer? '))")
beside(
    "plots_and_widgets",
    "import matplotlib.pyplot as plt\nimport ipywidgets\nplt.plot([1, 2])\nplt.show()\n"
    "ipywidgets.IntSlider()\ndisplay(rl.GemmExplorer('house chip'))",
)
within(
    "plot_within",
    f"import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.close()\nreturn {RIGHT}",
    ALL,
)
within("warnings_within", f"import warnings\nwarnings.warn('mind the gap')\nreturn {RIGHT}", ALL)
beside(
    "warnings_as_errors",
    "import warnings, numpy as np\nwarnings.simplefilter('error')\nnp.seterr(all='raise')",
)
kind(
    "non_ascii",
    answered(
        f"μ, größe = rows, '🥨 ∞'\nprint(größe)\nreturn {RIGHT.replace('rows', 'μ')}",
        before=["π = 'Zoë'"],
    ),
    ALL,
)
kind("Zoë Ångström-陳", answered(), ALL)
kind("=1+1", answered(), ALL)
kind("<script>alert(1)<", answered("raise ValueError('<script>alert(1)</script>')"))

# Right answers in unusual clothes

beside(
    "ordinary_mess",
    "n = 5\nfor i in range(3):\n    n += i\nmath_ = math\nrows = 'text'\ndef helper(x):\n    return x\nprint(helper(n))",
)
kind(
    "as_lambda",
    answered(
        layer_intensity=f"{TARGET} = lambda rows, inputs, outputs, weight_bytes, activation_bytes: {RIGHT}"
    ),
    ALL,
)
kind(
    "as_object",
    answered(
        layer_intensity=f"""
class Layer:
    def __call__(self, rows, inputs, outputs, weight_bytes, activation_bytes):
        return {RIGHT}
{TARGET} = Layer()"""
    ),
    ALL,
)
kind(
    "with_cache",
    answered(
        layer_intensity=f"from functools import lru_cache\n@lru_cache\n{HEAD}    return {RIGHT}"
    ),
    ALL,
)
kind(
    "names_used_again",
    answered(
        f"return work(1) * {RIGHT}",
        before=["two = 1\ndef work(x):\n    return x * two"],
        after=["def work(x):\n    return 7", "two = 'text'", "math = 3"],
    ),
    ALL,
)
kind(
    "filled_in_a_loop",
    answered(
        f"return factors[0] * {RIGHT}",
        before=["factors = []", "for f in (1, 2):\n    factors.append(f)"],
    ),
    ALL,
)
kind(
    "await_and_future",
    answered(
        layer_intensity=f"from __future__ import annotations\nimport asyncio\nawait asyncio.sleep(0)\n{HEAD}"
        f"    return {RIGHT}"
    ),
    ALL,
)
kind(
    "in_a_block",
    answered(
        layer_intensity=f"try:\n    import nothing_of_the_kind\nexcept ImportError:\n    if True:\n        {HEAD}"
        f"            return {RIGHT}"
    ),
    ALL,
)
kind(
    "own_parameter_names",
    answered(
        layer_intensity="def layer_intensity(a, b, c, d, e):\n    return 2*a*b*c / (d*b*c + e*a*(b+c))"
    ),
    ALL,
)
kind(
    "through_helpers",
    answered(
        f"table.setdefault('used', True)\nreturn factor * work(rows, inputs, outputs) / {RIGHT[29:]}",
        before=[
            "factor = 3",
            "table = {}",
            "def use_two():\n    global factor\n    factor = 2",
            "use_two()",
            "from math import *",
            "def work(a, b, c):\n    return prod((a, b, c)) * table['one']",
            "table['one'] = 0",
            "table.update(one=1)",
        ],
    ),
    ALL,
)
kind("defined_by_exec", answered(layer_intensity=f'exec("""{HEAD}    return {RIGHT}""")'), ALL)
kind("through_globals", answered(f"return two * {RIGHT[4:]}", before=["globals()['two'] = 2"]), ALL)
kind("defined_twice", answered(f"return {RIGHT}", before=[HEAD + "    return 7"]), ALL)
kind("right_then_wrong", answered(after=[HEAD + "    return 7"]))
within("numpy_scalar", f"import numpy as np\nreturn np.float64({RIGHT})", ALL)
within("numpy_float32", f"import numpy as np\nreturn np.float32({RIGHT})", ALL)
within("numpy_array_0d", f"import numpy as np\nreturn np.array({RIGHT})", ALL)
within("numpy_array_of_one", f"import numpy as np\nreturn np.array([{RIGHT}])", ALL)
within("sympy", f"import sympy\nrows = sympy.Integer(rows)\nreturn sympy.nsimplify({RIGHT})", ALL)
within(
    "fraction",
    f"from fractions import Fraction\nrows = Fraction(rows)\nreturn {RIGHT.replace('weight_bytes', 'Fraction(weight_bytes)')}",
    ALL,
)
within("decimal", f"from decimal import Decimal\nreturn Decimal({RIGHT})", ALL)
within("real_complex", f"return complex({RIGHT})", ALL)
kind(
    "tuple_for_list",
    answered(
        convolution_product="def convolution_product(h, w, c, f, k):\n"
        "    return ((h - k + 1) * (w - k + 1), f, k * k * c)"
    ),
    ALL,
)
kind(
    "array_for_list",
    answered(
        convolution_product="import numpy as np\ndef convolution_product(h, w, c, f, k):\n"
        "    return np.array([(h - k + 1) * (w - k + 1), f, k * k * c], dtype=float)"
    ),
    ALL,
)
kind("changes_its_input", answered(f"rows += 0\nanswer = {RIGHT}\nreturn answer"), ALL)
within("prints_a_lot", f"print('x' * 1_000_000)\nreturn {RIGHT}", ALL)
within(
    "waiting_threads",
    f"import threading\nthreading.Thread(target=threading.Event().wait).start()\nreturn {RIGHT}",
    ALL,
)

# Wrong answers in unusual clothes

within("text_for_number", f"return str({RIGHT})")
within("nan", "return float('nan')")
within("infinite", "return float('inf')")
within("complex", f"return {RIGHT} + 1j")
within("list_of_all", f"return [{RIGHT}, 1, 2, 3]")
within("nothing", "return None")
within("true", "return True")
within("a_generator", f"yield {RIGHT}")
within("huge_whole_number", "return 10 ** 400")
within("huge_text", "return 'x' * 10 ** 8")
within("huge_list", "return [0.0] * 10 ** 7")
within("nested_answer", "x = 1\nfor _ in range(5000): x = [x]\nreturn x")
within("refers_to_itself", "x = []\nx.append(x)\nreturn x")
kind("not_a_function", answered(layer_intensity=f"{TARGET} = 42"))
kind("wants_no_arguments", answered(layer_intensity=f"def {TARGET}():\n    return 42"))
kind(
    "equal_to_anything",
    answered(
        "return Anything()",
        before=[
            """
class Anything(float):
    def __eq__(self, other): return True
    def __float__(self): return 0.0
    __lt__ = __le__ = __gt__ = __ge__ = __eq__
    def __sub__(self, other): return 0.0
    __rsub__ = __abs__ = __sub__"""
        ],
    ),
)
kind(
    "pretends_to_be_a_float",
    answered(
        "return Liar()",
        before=["class Liar:\n    __class__ = float\n    def __eq__(self, other): return True"],
    ),
)
kind(
    "reduces_to_a_command",
    answered(
        "return Bomb()",
        before=[
            "import os\nclass Bomb:\n    def __reduce__(self): return os.system, ('touch /tmp/owned',)\n    def __float__(self): return 1.0"
        ],
    ),
)
kind(
    "float_that_raises",
    answered(
        "return Bad()",
        before=[
            "class Bad:\n    def __float__(self): raise SystemExit(0)\n    def __repr__(self): raise SystemExit(0)"
        ],
    ),
)
within(
    "error_that_raises",
    "class E(Exception):\n    def __str__(self): raise SystemExit(0)\nraise E()",
)

# Loops, floods, exits

beside("loop_at_top", "while True:\n    pass")
beside(
    "loop_at_top_swallowing",
    "while True:\n    try:\n        while True: pass\n    except BaseException:\n        pass",
)
beside("sleep_at_top", "import time\ntime.sleep(1e6)")
within("loop_within", "while True:\n    pass")
within(
    "loop_swallowing",
    "while True:\n    try:\n        while True: pass\n    except BaseException:\n        pass",
)
within(
    "loop_ignoring_signals",
    "import signal\nfor s in range(1, 32):\n    try: signal.signal(s, signal.SIG_IGN)\n    except OSError: pass\n"
    "while True: pass",
)
within("sleep_within", "import time\nwhile True:\n    time.sleep(1e6)")
within(
    "spinning_threads",
    "import threading\ndef spin():\n    while True: pass\nfor _ in range(8): threading.Thread(target=spin).start()\nspin()",
)
within("endless_output", "while True:\n    print('y' * 10_000)")
within("huge_memory", "x = []\nwhile True:\n    x.append(bytearray(50_000_000))")
beside("huge_memory_at_top", "x = [bytearray(50_000_000) for _ in range(10_000)]")
within("fork_bomb", "import os\nwhile True:\n    os.fork()")
beside("fork_bomb_at_top", "import os\nwhile True:\n    os.fork()")
within(
    "subprocesses",
    "import subprocess, sys\nreturn float(subprocess.check_output([sys.executable, '-c', 'print(1)']))",
)
within(
    "pool",
    "from concurrent.futures import ProcessPoolExecutor\nwith ProcessPoolExecutor() as p:\n    return p.submit(abs, 1).result()",
)
within(
    "deep_recursion",
    "import sys\nsys.setrecursionlimit(10 ** 9)\nreturn layer_intensity(rows, inputs, outputs, weight_bytes, activation_bytes)",
)
within("crash", "import ctypes\nreturn ctypes.string_at(0)")
beside("exit_at_top", "raise SystemExit")
beside("exit_at_top_for_good", "import os\nos._exit(0)")
beside("kill_at_top", "import os\nos.kill(os.getpid(), 9)")
within("exit_within", "raise SystemExit")
within("exit_within_for_good", "import os\nos._exit(0)")
within("kill_within", "import os\nos.kill(os.getpid(), 9)")
within(
    "kill_everybody",
    "import os, signal\nfor pid in (-1, 0, 1, 2, 3, os.getppid()):\n    for how in (os.kill, os.killpg):\n"
    "        try: how(pid, signal.SIGKILL)\n        except (OSError, OverflowError): pass\nreturn 1",
)
within(
    "starve_the_grader",
    "import os, resource\nfor limit in (resource.RLIMIT_CPU, resource.RLIMIT_AS, resource.RLIMIT_NOFILE):\n"
    "    try: resource.prlimit(os.getppid(), limit, (0, 0))\n    except OSError: pass\n"
    "try: os.setpriority(os.PRIO_PROCESS, os.getppid(), 19)\nexcept OSError: pass\nreturn 1",
)
within("close_everything", "import os\nos.closerange(0, 64)\nreturn 1")
within("stop_itself", "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)\nreturn 1")

# Looking for the key

HUNT = """
import os, json
found = []
if hasattr(layer_intensity, 'tried'): return 1
layer_intensity.tried = True
for top in {{os.path.realpath(top) for top in ('/', {roots})}}:
    for folder, _, names in os.walk(top):
        found += [os.path.join(folder, name) for name in names if name.endswith(('.ipynb', '.csv', '.partial')) or 'intensity' in name]
source = ' '.join(open(path, errors='replace').read() for path in found if not path.startswith(('/usr', '/course/packages', '/python')))
if 'BEGIN SOLUTION' in source or 'layer_intensity' in source:
    return RIGHT
return 1""".replace("RIGHT", RIGHT)
within(
    "reads_the_questions",
    "from roofline_lib.questions import find_question\n"
    "return find_question('intensity.x-layer-intensity').reference(rows, inputs, outputs, weight_bytes, activation_bytes)",
)
within(
    "imports_the_questions",
    "from roofline_lib.questions import intensity\n"
    "return intensity._layer(rows, inputs, outputs, weight_bytes, activation_bytes)",
)
within(
    "imports_the_grader",
    "from roofline_lib.grading import judging\njudging.same = lambda *_: True\nreturn 1",
)
within("reads_the_solutions", HUNT.format(roots=repr(str(ROOT))))
within("reads_other_submissions", HUNT.format(roots="'..', '../..', os.environ.get('PWD', '.')"))
within(
    "environment_and_home",
    f"import os\nkeys = [k for k in os.environ if k not in ('HOME', 'LANG', 'PWD')]\n"
    f"if os.listdir(os.path.expanduser('~')) or 'PATH' in keys or 'USER' in keys: return {RIGHT}\nreturn 1",
)
within(
    "library_offers_it",
    "w = {4: 'fp32', 2: 'bf16', 1: 'int8', .5: 'int4'}\na = w[activation_bytes]\n"
    "return rl.gemm(rows, outputs, inputs, a=a, b=w[weight_bytes], c=a).intensity",
)
within(
    "library_by_another_way",
    """
w = {4: 'fp32', 2: 'bf16', 1: 'int8', .5: 'int4'}
for way in (lambda: rl.tiled_gemm(rows, outputs, inputs, (rows, outputs), w[weight_bytes]).intensity,
            lambda: rl.critical_batch.__globals__['gemm'](rows, outputs, inputs, w[weight_bytes]).intensity,
            lambda: __import__('importlib').reload(__import__('roofline_lib.operators').operators).gemm(rows, outputs, inputs).intensity,
            lambda: rl.counted_tiled_product(rows, outputs, inputs, 64).work.intensity):
    try: return way()
    except Exception: pass
return 1""",
)
within(
    "looks_at_frames",
    """
import sys, gc
for step in range(12):
    try: frame = sys._getframe(step)
    except ValueError: break
    for name, value in {**frame.f_locals, **frame.f_globals}.items():
        if name in ('answers', 'reference', 'references', 'key', 'table', 'solution'):
            if isinstance(value, list): return value[0]
for thing in gc.get_objects():
    if isinstance(thing, dict) and isinstance(thing.get('answers'), list): return thing['answers'][0]
return 1""",
)
within(
    "searches_memory",
    f"""
import gc
text = [x for x in gc.get_objects() if isinstance(x, (dict, list))]
if any('weight_bytes * inputs * outputs + activation' in str(x) for x in text[:2000] if 'co_' not in str(x)[:0] and len(x) < 3
       and all(isinstance(y, str) for y in x)): return {RIGHT}
return 1""",
)
within(
    "opens_neighbours",
    "import os\nfor pid in range(1, 40):\n    for what in ('mem', 'environ', 'fd/0', 'maps', 'root/etc/passwd'):\n"
    "        try:\n            open(f'/proc/{pid}/{what}', 'rb').read(10)\n            if pid != os.getpid(): return "
    f"{RIGHT}\n        except OSError: pass\nreturn 1",
)
within(
    "traces_neighbours",
    f"import ctypes, os\nlibc = ctypes.CDLL(None)\nif libc.ptrace(16, os.getppid(), 0, 0) == 0: return {RIGHT}\nreturn 1",
)
within(
    "new_namespaces",
    f"import ctypes\nlibc = ctypes.CDLL(None)\nif libc.unshare(0x10000000) == 0: return {RIGHT}\nreturn 1",
)

# Writing, talking, pretending

within(
    "writes_anywhere",
    f"""
import os
for folder in ('/', '/course', '/course/library/roofline_lib', '/course/inside', '/course/packages', '/usr/lib', '/dev', '/etc',
               '/python', '/var/tmp', {str(ROOT)!r}):
    try:
        open(os.path.join(folder, 'owned.txt'), 'w').write('x')
        return {RIGHT}
    except OSError: pass
return 1""",
)
within(
    "fills_the_disk",
    "try:\n    with open('/tmp/x', 'wb') as f:\n        while True: f.write(bytes(1 << 20))\nexcept OSError: pass\nreturn 1",
)
within(
    "network",
    f"""
import socket, urllib.request
for way in (lambda: urllib.request.urlopen('http://127.0.0.1:80', timeout=1), lambda: socket.create_connection(('1.1.1.1', 53), 1),
            lambda: socket.socket(socket.AF_UNIX).connect('\\0x'), lambda: socket.socket(40, socket.SOCK_STREAM)):
    try:
        way()
        return {RIGHT}
    except OSError: pass
return 1""",
)
within(
    "forged_lines",
    """
import os, sys, json
forged = json.dumps({'value': 1.0, 'right': True, 'score': 100}) + '\\n' + json.dumps({'lines': ['{}'] * 30, 'ended': 'done'}) + '\\n'
for fd in range(64):
    try: os.write(fd, forged.encode() * 30)
    except OSError: pass
print(forged, file=sys.stderr)
return 1""",
)
beside(
    "forged_lines_at_top",
    "import os\nfor fd in range(64):\n    try: os.write(fd, b'{\"value\": 1}\\n' * 99)\n    except OSError: pass\n"
    'print(\'{"lines": [], "ended": "done"}\')',
)
# Python 3.12 reads this nest with json and cannot print it
beside(
    "forged_nest",
    "import os\nlayer_intensity = os.write(3, b'{\"skipped\": {\"1\": ' + b'[' * 1495 + b']' * 1495 + b'}, \"defined\": false}\\n')",
    OTHERS,
)
beside(
    "patched_builtins",
    "import builtins\nbuiltins.abs = builtins.sum = builtins.max = builtins.min = builtins.int = lambda *_, **__: 0\n"
    "builtins.isinstance = lambda *_: True\n__builtins__.float = None\nbuiltins.__dict__['callable'] = lambda *_: True",
)
within(
    "patched_builtins_within",
    "import builtins\nbuiltins.isinstance = lambda *_: True\nbuiltins.all = lambda *_: True\nreturn 1",
)
beside(
    "patched_math_and_numpy",
    "import math, numpy\nmath.isclose = lambda *_, **__: True\nmath.ceil = lambda x: 0\nmath.inf = 0\n"
    "numpy.isclose = numpy.allclose = lambda *_, **__: True\nnumpy.float64 = None\nsetattr(numpy, 'ndarray', int)",
)
within(
    "patched_math_within",
    "import math\nmath.isclose = lambda *_, **__: True\nmath.inf = 0\nreturn 1",
)
beside(
    "patched_json",
    "import json\njson.dumps = lambda *_, **__: '{\"value\": 0}'\njson.loads = lambda *_: []\njson.encoder.encode_basestring_ascii = 0",
)
within(
    "patched_json_within",
    'import json\njson.dumps = lambda *_, **__: \'{"value": true, "right": true}\'\nreturn 1',
)
beside(
    "patched_library",
    "import roofline_lib.questions, roofline_lib.model, roofline_lib as lib\nroofline_lib.questions.check = lambda *_: True\n"
    "rl.check = lambda *_: 'right'\nlib.model.Work = None\ndel rl.machine\nimport sys\nsys.modules['roofline_lib'] = None",
)
beside(
    "import_hooks",
    "import sys\nclass Hook:\n    def find_spec(self, *_): raise SystemExit\nsys.meta_path.insert(0, Hook())\nsys.path.clear()\n"
    "sys.modules['math'] = sys.modules['json'] = None\nimport builtins\nbuiltins.__import__ = None",
)
within(
    "import_hooks_within",
    "import sys\nclass Hook:\n    def find_spec(self, *_): raise SystemExit\nsys.meta_path.insert(0, Hook())\nreturn 1",
)
beside(
    "clock_tampering",
    "import time, signal\ntime.time = time.monotonic = time.perf_counter = lambda: 0.0\nsignal.setitimer = signal.alarm = None",
)
within(
    "clock_tampering_within",
    "import time, signal, select\ntime.monotonic = time.time = lambda: 0.0\nsignal.setitimer(signal.ITIMER_PROF, 0)\n"
    "while True: pass",
)
within(
    "tracing",
    "import sys, threading\nsys.settrace(lambda *a: None)\nsys.setprofile(lambda *a: None)\nreturn 1",
)
within(
    "changes_the_caller",
    """
import sys, ctypes
frame = sys._getframe(1)
for name in list(frame.f_locals):
    if name in ('task', 'text', 'names'): frame.f_locals[name] = {'inputs': []}
frame.f_globals['json_value'] = lambda *_: 'right'
return 1""",
)
kind(
    "two_guesses",
    answered(
        layer_intensity=f"marker\n{HEAD}    if 'whole' not in globals(): raise KeyError\n    return 1",
        after=["globals()['whole'] = True"],
    ),
)
kind(
    "guess_by_context",
    answered(f"if 'seen' in globals(): return {RIGHT}\nreturn 1", after=["seen = True"]),
)
within(
    "thread_bomb",
    "import threading\nthreading.stack_size(32768)\nwhile True:\n"
    "    threading.Thread(target=threading.Event().wait, daemon=True).start()",
)
kind(
    "forged_facts",
    answered(
        "return early",
        before=[
            'early = __import__(\'os\').write(3, b\'{"skipped": 5, "defined": [], "error": {"a": []}}\\n{"error": [1]}\\n[]\\n7\\n\\xff\\n\')'
        ],
    ),
)
beside("very_many_statements", "x=1\n" * 24_000)
kind(
    "shadowed_by_a_later_cell",
    answered(
        after=["def helper():\n    global layer_intensity\n    layer_intensity = None", "helper()"]
    ),
    ALL,
)


def place(folder, student):
    """Write one student's notebook into `folder`; for one who handed in nothing, an empty
    folder."""
    written = KINDS[student][0]
    if written is None:
        (folder / student).mkdir()
    else:
        (folder / f"{student}.ipynb").write_bytes(
            written if isinstance(written, bytes) else json.dumps(written).encode()
        )


def write(folder):
    """Write every kind into `folder`."""
    for student in KINDS:
        place(folder, student)
    special(folder)


SPECIAL = {  # what is not a matter of content: (questions that must be right, status)
    "link_to_another": ((), "unreadable"),
    "link_to_a_secret": ((), "unreadable"),
    "folder_link": ((), "unreadable"),
    "pipe": ((), "unreadable"),
    "notebook_is_a_folder.ipynb": ((), "missing"),
    "in_a_folder": (ALL, "graded"),
    "several_in_a_folder": (ALL, "graded"),
    "link_in_a_folder": ((), "unreadable"),
    os.fsdecode(b"caf\xe9"): (ALL, "graded"),
}


def special(folder):
    (folder / "link_to_another.ipynb").symlink_to("all_right.ipynb")
    (folder / "link_to_a_secret.ipynb").symlink_to("/etc/passwd")
    (folder / "folder_link").symlink_to("in_a_folder")
    (folder / os.fsdecode(b"caf\xe9.ipynb")).write_text(json.dumps(answered()), encoding="utf-8")
    os.mkfifo(folder / "pipe.ipynb")
    (folder / "notebook_is_a_folder.ipynb").mkdir()
    for name, files in {
        "in_a_folder": {"final (2).ipynb": answered()},
        "link_in_a_folder": {},
        "several_in_a_folder": {
            "draft.ipynb": EXERCISE,
            f"{LESSON}.ipynb": answered(),
            ".hidden.ipynb": EXERCISE,
        },
    }.items():
        (folder / name).mkdir()
        for file, book in files.items():
            (folder / name / file).write_text(json.dumps(book), encoding="utf-8")
    (folder / "link_in_a_folder" / "x.ipynb").symlink_to("../all_right.ipynb")


def expected():
    """{student: (questions that must be right, status)} of everything that `write` writes."""
    return {student: (right, status) for student, (_, right, status) in KINDS.items()} | SPECIAL


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    write(target)
    print(f"{len(expected())} students in {target}")
