"""The exercises themselves: slips that students make lose their mark and no other, and the numbers
in the text are the computed ones.

What holds for every solution notebook, whatever it asks, is tested in test_grading.py.
"""

import io
import json
import re
from contextlib import redirect_stdout
from math import ceil, comb, floor, inf, sqrt
from pathlib import Path

import exercises_06_to_10 as later
import pytest

import roofline_lib as rl
from roofline_lib.grading.inside.serve import plain
from roofline_lib.grading.lessons import solution, solution_folders
from roofline_lib.grading.marks import Submission, grade_one, judge, references
from roofline_lib.questions import find_question

ROOT = Path(__file__).resolve().parents[1]
STUDENTS = [f"student {i}" for i in range(5)]
LESSONS = sorted(path.name for path in (ROOT / "solutions").iterdir() if path.is_dir())


def greedy(dims, s):
    """The cheapest product first, again and again."""
    dims, moved = list(dims), 0
    while len(dims) > 2:
        price, i = min(
            (dims[i - 1] * dims[i] + dims[i] * dims[i + 1] + dims[i - 1] * dims[i + 1], i)
            for i in range(1, len(dims) - 1)
        )
        moved += s * price
        del dims[i]
    return moved


def lines_in_sets(count, stride, line, sets, every=False):
    """How many lines, or reads, fall into each set."""
    found = [step * stride // line for step in range(count)]
    tally = {}
    for number in found if every else dict.fromkeys(found):
        tally[number % sets] = tally.get(number % sets, 0) + 1
    return tally.values()


def wrong_fastest(together=max, waste=(True, True), choose=None):
    def fastest(m, n, k, s, tiles, peak, bandwidth, units):
        def parts(tile):
            limit = rl.Bound(
                rl.tiled_gemm(m, n, k, tile, {4: "fp32", 2: "bf16", 1: "int8"}[s]), peak, bandwidth
            )
            useful = rl.tile_efficiency(m, n, tile) if waste[0] else 1
            useful *= rl.wave_efficiency(rl.tile_count(m, n, tile), units) if waste[1] else 1
            return limit.memory_time, limit.compute_time / useful

        return together(min(map(parts, tiles), key=choose or together))

    return fastest


def prices(dims, order, s, change):
    cost = rl.chain_cost(dims, order, {4: "fp32", 2: "bf16", 1: "int8"}[s])
    return change(cost, dims, s)


# Wrong answers as students give them, by lesson and function; those of a question's own `slips`
# join them.
SLIPS = {
    "02_roofline": {
        "share_of_peak": [
            lambda f, b, p, w: f / b * w / p if b else 1,
            lambda f, b, p, w: f / p / (f / p + b / w),
            lambda f, b, p, w: min(1, b / f * w / p) if f else 0,
            lambda f, b, p, w: min(1, f / 2 * w / b / p) if b else 1,
        ],
        "gain_from_overlap": [
            lambda i, r: 2,
            lambda i, r: 1 + i / r,
            lambda i, r: 1 + r / i,
            lambda i, r: max(i / r, r / i),
        ],
        "slowest_part": [
            lambda f, p, levels: [f / p + sum(b / w for _, b, w in levels), "arithmetic"],
            lambda f, p, levels: max(
                [[f / p, "arithmetic"], [levels[0][1] / levels[0][2], levels[0][0]]]
            ),
            lambda f, p, levels: max(
                [[b / w, name] for name, b, w in levels] + [[f / p, "arithmetic"]],
                key=lambda t: t[0],
            ),
            lambda f, p, levels: max(
                [[f / p, "arithmetic"]]
                + [[b / min(w for *_, w in levels), n] for n, b, _ in levels]
            ),
        ],
        "smallest_n": [
            lambda p, q, r, s, ridge: ceil(1.5 * s * ridge),
            lambda p, q, r, s, ridge: floor(ridge * s * (1 / p + 1 / q + 1 / r) / 2),
            lambda p, q, r, s, ridge: round(ridge * s * (1 / p + 1 / q + 1 / r) / 2),
            lambda p, q, r, s, ridge: floor(ridge * s * (1 / p + 1 / q + 1 / r) / 2) + 1,
        ],
        "unnoticed_from": [
            lambda f, s, p, w: ceil(s * p / w * (1 - f) / f),
            lambda f, s, p, w: ceil(s * p / w / f) if f < 0.4 else 1,
            lambda f, s, p, w: ceil(s * p / w / 2 * (1 - f) / f) if f < 0.25 else 1,
            lambda f, s, p, w: floor(s * p / w * (1 - f) / f) if f < 0.4 else 1,
        ],
    },
    "03_tiling": {
        "tile_traffic": [
            lambda m, n, k, a, b, s: s * (ceil(m / a) * m * k + ceil(n / b) * k * n + m * n),
            lambda m, n, k, a, b, s: s * (ceil(n / b) * ceil(m / a) * k * (a + b) + m * n),
            lambda m, n, k, a, b, s: s * (ceil(n / a) * m * k + ceil(m / b) * k * n + m * n),
        ],
        "narrowest_tile": [
            lambda a, s, r: ceil(r * s * a / (2 * a - r * s)) if 2 * a != r * s else inf,
            lambda a, s, r: floor(r * s * a / (2 * a - r * s)) if 2 * a > r * s else inf,
            lambda a, s, r: ceil(r * s * a / (a - r * s)) if a > r * s else inf,
            lambda a, s, r: ceil(r * s),
        ],
        "largest_tile": [
            lambda f, d, s: floor(sqrt(f / 4)),
            lambda f, d, s: floor((-2 * d * s + sqrt(4 * d * d * s * s + 16 * f)) / 8),
            lambda f, d, s: floor((-4 * d * s + sqrt(16 * d * d * s * s + 4 * s * f)) / (2 * s)),
            lambda f, d, s: max(1, floor((-4 * d * s + sqrt(16 * d * d * s * s + 16 * f)) / 8)),
            lambda f, d, s: ceil((-4 * d * s + sqrt(16 * d * d * s * s + 16 * f)) / 8) - 1,
        ],
        "fastest_tile": [
            wrong_fastest(sum),
            wrong_fastest(waste=(False, True)),
            wrong_fastest(waste=(True, False)),
            wrong_fastest(choose=lambda times: times[0]),
            wrong_fastest(lambda times: times[1]),
        ],
        "strided_misses": [
            lambda c, stride, p, line, sets, ways: c * p,
            lambda c, stride, p, line, sets, ways: p * len({i * stride // line for i in range(c)}),
            lambda c, stride, p, line, sets, ways: (
                (held := sum(lines_in_sets(c, stride, line, sets)))
                * (p if held > sets * ways else 1)
            ),
            lambda c, stride, p, line, sets, ways: sum(
                n + (p - 1) * max(0, n - ways) for n in lines_in_sets(c, stride, line, sets)
            ),
            lambda c, stride, p, line, sets, ways: sum(
                n if n <= ways else n * p for n in lines_in_sets(c, stride, line, sets, every=True)
            ),
        ],
    },
    "04_prefill_decode": {
        "cache_bytes": [
            lambda t, ls, h, g, d, latent, s: t * ls * s * (latent or h // g * d),
            lambda t, ls, h, g, d, latent, s: t * ls * s * 2 * (latent or h // g * d),
            lambda t, ls, h, g, d, latent, s: t * ls * s * (latent or 2 * g * d),
            lambda t, ls, h, g, d, latent, s: t * ls * s * 2 * h // g * d,
        ],
        "tokens_per_second": [
            lambda b, c, n, s, kv, p, w: b * w / (n * s + b * c * kv),
            lambda b, c, n, s, kv, p, w: b / max((n * s + c * kv) / w, 2 * n * b / p),
            lambda b, c, n, s, kv, p, w: 1 / max((n * s + b * c * kv) / w, 2 * n * b / p),
            lambda b, c, n, s, kv, p, w: b / ((n * s + b * c * kv) / w + 2 * n * b / p),
            lambda b, c, n, s, kv, p, w: b / max(n * s / w, 2 * n * b / p),
        ],
        "largest_batch": [
            lambda m, w, c, kv, bw, t: max(0, floor((m - w) / (c * kv))),
            lambda m, w, c, kv, bw, t: max(0, floor((bw * t - w) / (c * kv))),
            lambda m, w, c, kv, bw, t: floor((min(m, bw * t) - w) / (c * kv)),
            lambda m, w, c, kv, bw, t: max(1, floor((min(m, bw * t) - w) / (c * kv))),
            lambda m, w, c, kv, bw, t: max(0, ceil((min(m, bw * t) - w) / (c * kv))),
            lambda m, w, c, kv, bw, t: max(0, floor(min((m - w) / (c * kv), bw * t / (c * kv)))),
        ],
        "experts_read": [
            lambda t, e, a, b: min(t * a, e) * b,
            lambda t, e, a, b: a * b,
            lambda t, e, a, b: e * b,
            lambda t, e, a, b: e * (1 - (1 - 1 / e) ** t) * b,
            lambda t, e, a, b: e * (1 - (a / e) ** t) * b,
        ],
        "batch_for": [
            lambda f, w, c, kv: ceil(w / (c * kv)),
            lambda f, w, c, kv: ceil(f * w / (c * kv)),
            lambda f, w, c, kv: floor(f / (1 - f) * w / (c * kv)) if f < 1 else inf,
            lambda f, w, c, kv: ceil(f / (1 - f) * w / (c * kv)) if f < 1 else 10**9,
        ],
    },
    "05_chain_ordering": {
        "two_orders": [
            lambda p, q, r, t: [2 * q * r * t + 2 * p * q * t, 2 * p * q * r + 2 * p * r * t],
            lambda p, q, r, t: [2 * p * q * r + 2 * p * r * t, 2 * q * r * t + 2 * p * r * t],
            lambda p, q, r, t: [
                p * r * (2 * q - 1) + p * t * (2 * r - 1),
                q * t * (2 * r - 1) + p * t * (2 * q - 1),
            ],
        ],
        "merge_from": [
            lambda p, q, r: ceil(p * q * r / (q * (p + r) - p * r)) if q * (p + r) > p * r else inf,
            lambda p, q, r: p * q * r // (q * (p + r)) + 1,
            lambda p, q, r: abs(p * q * r // ((q * (p + r) - p * r) or 1)) + 1,
            lambda p, q, r: inf,
        ],
        "order_prices": [
            lambda *a: prices(
                *a,
                lambda c, d, s: [
                    c.flops,
                    c.bytes_moved,
                    max(c.largest_intermediate, s * d[0] * d[-1]),
                ],
            ),
            lambda *a: prices(
                *a,
                lambda c, d, s: [
                    c.flops,
                    s * sum(map(int.__mul__, d, d[1:])),
                    c.largest_intermediate,
                ],
            ),
            lambda *a: prices(
                *a, lambda c, d, s: [c.flops, c.bytes_moved, c.largest_intermediate / s]
            ),
            lambda dims, order, s: prices(
                dims,
                rl.best_chain_order(dims).order,
                s,
                lambda c, d, s: [c.flops, c.bytes_moved, c.largest_intermediate],
            ),
        ],
        "fewest_bytes": [
            greedy,
            lambda d, s: s * sum(map(int.__mul__, d, d[1:])),
            lambda d, s: (
                rl.best_chain_order(d, "flops", {4: "fp32", 2: "bf16", 1: "int8"}[s]).bytes_moved
            ),
            lambda d, s: (
                rl.best_chain_order(
                    d, "largest_intermediate", {4: "fp32", 2: "bf16", 1: "int8"}[s]
                ).bytes_moved
            ),
        ],
        "strassen_from": [
            lambda s, p, w: 20,
            lambda s, p, w: 2 * floor(75 / 16 * s * p / w) + 2,
            lambda s, p, w: floor(max(18, 75 / 8 * s * p / w)) + 1,
            lambda s, p, w: 2 * floor(max(18, 27 / 4 * s * p / w) / 2) + 2,
            lambda s, p, w: 2 * floor(max(18, 1.5 * s * p / w) / 2) + 2,
        ],
    },
} | later.SLIPS


def source(cell):
    return "".join(cell["source"])


@pytest.fixture(scope="module", params=LESSONS)
def lesson(request):
    """(name, its solution, its functions, what it asks, inputs and answers of some students)."""
    book, names = solution(request.param, solution_folders()), {}
    with redirect_stdout(io.StringIO()):
        for cell in book["cells"]:
            if cell["cell_type"] == "code" and not cell["id"].startswith("test_"):
                exec(source(cell), names)
    return (request.param, book, names, *references(json.dumps(book).encode(), STUDENTS, "tests"))


def is_right(function, question, key):
    lines = [
        {"defined": True, "skipped": {}},
        *({"value": plain(function(*json.loads(text)))} for text in key["inputs"]),
    ]
    return judge(question, key, {"lines": [*map(json.dumps, lines)], "ended": "done"}).right


def test_slips_that_students_make_lose_the_mark(lesson):
    """For whatever inputs a student draws; the question's own slips too."""
    name, book, names, asked, tables = lesson
    checked = dict(
        re.findall(r'rl\.check\("([^"]+)", (\w+)\)', "\n".join(map(source, book["cells"])))
    )
    by_name = {function: find_question(question) for question, function in checked.items()}
    for question in (q for q in asked["questions"] if not q.get("by_hand")):
        slips = [
            *SLIPS.get(name, {}).get(question["name"], ()),
            *(slip for _, slip in by_name[question["name"]].slips),
        ]
        assert len(slips) >= 3 or name not in SLIPS
        for student in STUDENTS:
            key = tables[student][question["name"]]
            assert is_right(names[question["name"]], question, key)
            assert [i for i, slip in enumerate(slips) if is_right(slip, question, key)] == [], (
                question["name"]
            )


def test_a_wrong_function_loses_its_own_mark_only(lesson):
    """In the sandbox; every other function gives its answer a little changed, and then the rest."""
    name, book, _, asked, tables = lesson
    functions = [q["name"] for q in asked["questions"] if not q.get("by_hand")]
    for wrong, student in zip((functions[::2], functions[1::2]), STUDENTS, strict=False):
        spoilt = json.loads(json.dumps(book))
        for cell in spoilt["cells"]:
            if (function := cell["id"]) in wrong:
                cell["source"] = source(cell) + (
                    f"\n\nright_{function} = {function}\n\ndef {function}(*inputs):\n"
                    f"    value = right_{function}(*inputs)\n"
                    "    if isinstance(value, str):\n        return f'not {value}'\n"
                    "    return [9, *value[1:]] if isinstance(value, list) else value * 1.001 + 1\n"
                )
        work = Submission(student, json.dumps(spoilt).encode())
        got = grade_one(work, asked, tables[student], 60)  # seconds; a busy machine needs some
        assert got.status == "graded", got.note
        assert {question: outcome.word for question, outcome in got.outcomes.items()} == {
            question: "wrong" if question in wrong else "right" for question in functions
        }


# Numbers


HOUSE, A100 = rl.machine("house chip"), rl.machine("A100 40GB SXM")
OFFERS = {
    name: (
        rl.machine(name).bandwidth() / A100.bandwidth(),
        rl.machine(name).peak("fp32") / A100.peak("fp32"),
    )
    for name in ("L40S", "H100 PCIe")
}
SWEEPS, PRODUCTS = (
    {name: share / ratio[i] for name, ratio in OFFERS.items()} for i, share in enumerate((60, 40))
)
BOUGHT = SWEEPS["H100 PCIe"] + PRODUCTS["H100 PCIe"]
FUSED = BOUGHT - SWEEPS["H100 PCIe"] / 2
LLAMA2, LLAMA3 = rl.transformer("llama-2-7b"), rl.transformer("llama-3-8b")
CACHE = {model: 100 * 4096 * model.kv_bytes_per_token() for model in (LLAMA2, LLAMA3)}
HELD = {model: CACHE[model] + model.weight_bytes() for model in (LLAMA2, LLAMA3)}
CARD = rl.machine("A100 80GB SXM").bandwidth()
LAYER, ADAPTER = (
    rl.bytes_per_element("bf16") * 4096**2,
    rl.bytes_per_element("bf16") * 2 * 16 * 4096,
)
MIXED = {"merged": 64 * LAYER, "apart": LAYER + 64 * ADAPTER}
LORA = [rl.chain_cost([4096, 16, 4096, 1], order).flops for order in (((0, 1), 2), (0, (1, 2)))]


def seconds(b, useful=1.0):
    limit = rl.bound(rl.tiled_gemm(4096, 4096, 4096, b), HOUSE, "fp32")
    return limit.memory_time, limit.compute_time / useful


ROOM = HOUSE.capacity("shared memory")
BUSY = rl.wave_efficiency(rl.tile_count(4096, 4096, 128), HOUSE.units)

PROSE = {
    "02_roofline": lambda f: [
        f"The vector sum of the lesson makes {f['share_of_peak'](1e9, 12e9, 20e12, 2e12):.4f}",
        f"under a ridge point of 10 the answer is {f['gain_from_overlap'](0.25, 10)}",
        f"makes `{json.dumps(f['slowest_part'](4e12, 20e12, [['DRAM', 2e11, 2e12], ['L2', 3e12, 8e12]]))}`",
        f"under a ridge point of 10 makes {f['smallest_n'](1, 1, 1, 4, 10)}",
        f"under 150 it is {f['smallest_n'](4, 1, 1, 2, 150)}",
        f"n must be {f['unnoticed_from'](0.05, 2, 312e12, 2039e9)}",
        "({:.1f}, {:.0f} and {:.1f} FLOP/byte)".format(
            *(rl.machine(c).ridge_point("fp32") for c in ("A100 40GB SXM", *OFFERS))
        ),
        f"at {rl.gemm(4096, 4096, 4096).intensity:.0f} FLOP/byte",
        f"= {SWEEPS['L40S']:.0f}, products",
        f"= {PRODUCTS['L40S']:.1f}, together {SWEEPS['L40S'] + PRODUCTS['L40S']:.0f}",
        f"with {OFFERS['L40S'][1]:.1f} times the FLOP/s",
        f"Sweeps {SWEEPS['H100 PCIe']:.0f}, products {PRODUCTS['H100 PCIe']:.0f}, together {BOUGHT:.0f}: {100 / BOUGHT:.1f} times",
        f"30 + 40 = 70, {100 / 70:.1f} times",
        f"= {FUSED:.0f}, so {100 / FUSED:.1f} times",
    ],
    "03_tiling": lambda f: [
        f"makes {f['tile_traffic'](100, 90, 70, 32, 16, 4):,}",
        f"32 rows need {f['narrowest_tile'](32, 4, 10)} columns",
        f"hold b = {f['largest_tile'](ROOM, 32, 2)} in bf16",
        f"left room for {floor(sqrt(ROOM / 4 + 1) - 1)}",
        f"with {1e3 * f['fastest_tile'](4096, 4096, 4096, 4, [[128, 128], [240, 240]], 20e12, 2e12, 132):.2f} ms",
        f"all {f['strided_misses'](64, 256, 2, 64, 16, 8)} miss",
        f"At 320 bytes apart it is {f['strided_misses'](64, 320, 2, 64, 16, 8)}",
        f"are {4 * 512**2 / 1e6:.2f} MB, an SM has {ROOM / 1e3:.0f} kB",
        f"two of each, it is {f['largest_tile'](ROOM, 32, 4)}",
        f"64 tiles for 132 SMs keep {100 * rl.wave_efficiency(64, 132):.1f}",
        f"{rl.tile_count(4097, 4097, 512):.0f} tiles of which {100 * rl.tile_efficiency(4097, 4097, 512):.0f} percent",
        f"takes {1e3 * seconds(128)[0]:.2f} ms and hides behind {1e3 * seconds(128, BUSY)[1]:.2f} ms",
    ],
    "04_prefill_decode": lambda f: [
        f"no latent: {f['cache_bytes'](4096, 32, 32, 4, 128, 0, 2) / 1e6:.0f} MB",
        f"2 TB/s: {f['tokens_per_second'](16, 4096, 7e9, 2, 524288, 3e14, 2e12):.0f}",
        f"it is {f['largest_batch'](80e9, 14e9, 4096, 524288, 2e12, 1)} sequences, with 30 ms it is "
        f"{f['largest_batch'](80e9, 14e9, 4096, 524288, 2e12, 0.03)}",
        f"one token reads {f['experts_read'](1, 8, 2, 3e8) / 1e6:.0f} MB",
        f"but {f['experts_read'](16, 8, 2, 3e8) / 1e9:.3f} GB",
        f"nine tenths: {f['batch_for'](0.9, 14e9, 4096, 524288)} sequences",
        f"({LLAMA2.weight_bytes() / 1e9:.1f} GB of weights",
        f"llama-3-8b, {LLAMA3.weight_bytes() / 1e9:.1f} GB",
        f"leaves {LLAMA2.kv_bytes_per_token() / 1024:.0f} KiB",
        f"are {CACHE[LLAMA2] / 1e9:.0f} GB: with the weights {HELD[LLAMA2] / 1e9:.0f} GB",
        f"take {1e3 * HELD[LLAMA2] / CARD:.0f} ms",
        f"The cache is {100 * CACHE[LLAMA2] / HELD[LLAMA2]:.0f} percent",
        f"{CACHE[LLAMA2] / 2e9:.0f} + {LLAMA2.weight_bytes() / 1e9:.1f} = {(HELD[LLAMA2] - CACHE[LLAMA2] / 2) / 1e9:.0f} GB",
        f"takes {(LLAMA2.weight_bytes() - LLAMA2.weight_bytes('int4')) / 1e9:.0f} GB off",
        f"takes {1e3 * sum(LLAMA2.decode(100, 4096).values()).flops / rl.machine('A100 80GB SXM').peak('bf16'):.0f} ms",
        f"{CACHE[LLAMA3] / 1e9:.1f} + {LLAMA3.weight_bytes() / 1e9:.1f} = {HELD[LLAMA3] / 1e9:.0f} GB",
        f"takes {1e3 * HELD[LLAMA3] / CARD:.0f} ms a step, so {CARD / HELD[LLAMA3]:.0f} tokens a second",
        f"it is {(HELD[LLAMA3] - CACHE[LLAMA3] / 2) / 1e9:.0f} GB and {1e3 * (HELD[LLAMA3] - CACHE[LLAMA3] / 2) / CARD:.0f} ms",
    ],
    "05_chain_ordering": lambda f: [
        f"2, 3, 4 and 5 make `{f['two_orders'](2, 3, 4, 5)}`",
        f"pays from the {f['merge_from'](50, 10000, 50)}th column",
        f"makes `{f['order_prices']([8, 8, 16, 4096, 32], [[[0, 1], 2], 3], 4)}`",
        f"so {comb(30, 15) // 16:,} orders",
        f"need at least {f['fewest_bytes']((8, 8, 16, 4096, 32), 4):,} bytes",
        f"makes {f['strassen_from'](2, 989.4e12, 3350e9)}",
        f"2 TB/s, fp32) it is {f['strassen_from'](4, 1e12, 2e12)}",
        f"A layer is {LAYER / 1e6:.1f} MB, an adapter {ADAPTER / 1e3:.0f} kB, {100 * ADAPTER / LAYER:.1f} percent",
        f"{MIXED['merged'] / 1e9:.2f} GB, {1e3 * MIXED['merged'] / 2e12:.2f} ms a layer",
        f"{500 * 14e9 / 1e12:.0f} TB besides",
        f"are {64 * ADAPTER / 1e6:.1f} MB: {MIXED['apart'] / 1e6:.1f} MB, {1e6 * MIXED['apart'] / 2e12:.0f} µs, "
        f"{MIXED['merged'] / MIXED['apart']:.0f} times less",
        f"are {100 * 2 * 16 * 8192 / (2 * 4096**2):.1f} percent",
        f"{LORA[0] / 1e6:.0f} MFLOP instead of {LORA[1] / 1e3:.0f} kFLOP and {LAYER / 1e6:.1f} MB",
        f"their {1e6 * 64 * ADAPTER / 2e12:.0f} µs",
    ],
} | later.PROSE


def test_numbers_in_the_text(lesson):
    name, book, names, *_ = lesson
    text = " ".join(
        " ".join(source(cell) for cell in book["cells"] if cell["cell_type"] == "markdown").split()
    )
    assert [said for said in PROSE.get(name, lambda _: [])(names) if said not in text] == []


def test_words_on_the_case_on_the_ridge():
    """2 x 2 x 2 is even at the second column, and the lesson's LoRA never pays; twenty rows never
    reach 10 FLOP/byte."""
    left, right = (rl.chain_cost((2, 2, 2, 2), order).flops for order in (((0, 1), 2), (0, (1, 2))))
    assert left == right and find_question("chains.x-merge-from").reference(2, 2, 2) == 3
    assert (
        find_question("chains.x-merge-from").reference(4096, 16, 4096)
        == inf
        == find_question("tiling.x-narrowest").reference(20, 4, 10)
    )
