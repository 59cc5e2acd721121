"""Breaks of single formulas, each of which a test must notice: `make test-all` runs them, `python
tests/mutants.py model` one module's.

Each line of BREAKS is put into a copy of the library; then the module's own tests run there. A
break that all of them pass is a hole in the tests. A text that does not stand in its module exactly
once is an error too, so that the list keeps up with the library.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).resolve().parents[1]
WORKERS = 2

BREAKS = {
    "precisions": [
        ('"int4": 0.5', '"int4": 1.0'),
        ('"tf32": 4.0', '"tf32": 2.0'),
    ],
    "quantities": [
        ('"Gi": 2.0**30', '"Gi": 1e9'),
        ("if abs(value) >= p[0]", "if abs(value) > p[0]"),
    ],
    "arguments": [
        ("low > above", "low >= above"),
        ("low >= least", "low > least"),
        ("np.floor(block) == block", "block == block"),
        ("found % 1 == 0", "found == found"),
        ("-math.inf < low and high < math.inf", "high < math.inf"),
        ("-math.inf < low and high < math.inf", "-math.inf < low"),
        ("cutoff=0.8", "cutoff=0.7"),
        ("if len(typed) > 1 and (", "if ("),
    ],
    "model": [
        ("np.divide(self.flops, self.bytes_moved)", "np.divide(self.bytes_moved, self.flops)"),
        ("Work(self.flops + other.flops, self.bytes_moved + other.bytes_moved)", "Work(self.flops + other.flops, self.bytes_moved)"),
        ("Work(times * self.flops, times * self.bytes_moved)", "Work(times * self.flops, self.bytes_moved)"),
        ("Work(apart.flops, bytes_moved)", "Work(works[0].flops, bytes_moved)"),
        ("least=0) > np.asarray(apart.bytes_moved)", "least=0) >= np.asarray(apart.bytes_moved)"),
        ("np.minimum(peak,", "np.maximum(peak,"),
        ("np.minimum(self.peak_flops, self.bandwidth *", "np.maximum(self.peak_flops, self.bandwidth *"),
        ("self.work.flops / self.peak_flops", "2 * self.work.flops / self.peak_flops"),
        ("np.maximum(self.compute_time, self.memory_time)", "np.add(self.compute_time, self.memory_time)"),
        ("np.asarray(work.flops) * bandwidth >= np", "np.asarray(work.flops) * bandwidth > np"),
        ("machine.bandwidth(level))", "machine.bandwidth())"),
        ("machine.peak(precision, accumulate), machine", "machine.peak(precision), machine"),
        ("level, accumulate=accumulate).time", "level).time"),
    ],
    "machines": [
        ("self.peak(precision, accumulate) / self.bandwidth(level)", "self.peak(precision, accumulate) / self.bandwidth()"),
        ("self.peak(precision, accumulate) / self.bandwidth(level)", "self.peak(precision) / self.bandwidth(level)"),
        ("return self.peaks[precision][0]", "return self.peaks[precision][-1]"),
    ],
    "operators": [
        ("(2 * n + 1))", "(2 * n))"),
        ("* (n + 1))\n\n\ndef axpy", "* 2 * n)\n\n\ndef axpy"),
        ("* 3 * n)", "* 2 * n)"),
        ("(m * n + n + m)", "(m * n + n)"),
        ("(n * (n + 1) / 2 + 2 * n)", "(n * n + 2 * n)"),
        ("Work(2 * k * size_of_c, bytes_moved)", "Work(k * size_of_c, bytes_moved)"),
        ("width_b * n) * k + passes_of_c", "width_a * n) * k + passes_of_c"),
        ("(width_a * m + width_b * n) * k", "(width_a * k + width_b * n) * m"),
        ("1.0 + (number", "1.0 + 0 * (number"),
        ("Work(m * m * n,", "Work(2 * m * m * n,"),
        ("(m * (m + 1) / 2 + 2 * m * n)", "(m * (m + 1) / 2 + m * n)"),
        ("Work(n * (n + 1) * k,", "Work(2 * n * n * k,"),
        ("(n * k + n * (n + 1) / 2)", "(n * k + n * n)"),
        ('writes, "arrays", least=0)\n', 'reads, "arrays", least=0)\n'),
        ("Work(5 * n,", "Work(4 * n,"),
        ("(2 * n + 2 * cols)", "(2 * n + cols)"),
        ("Work(4 * n, bytes_per_element(precision) * (2 * n + cols))", "Work(4 * n, bytes_per_element(precision) * (2 * n))"),
        ("side + 2 * padding - kernel", "side + padding - kernel"),
        ("weights = kernel**2 *", "weights = kernel *"),
        ("context - queries + 1\n", "context - queries\n"),
        ("np.clip(window - first, 0, queries)", "np.clip(window - first, 0, queries - 1)"),
        ("growing * (growing - 1) / 2", "growing * (growing + 1) / 2"),
        ("(queries - growing) * window", "(queries - growing) * context"),
        ("queries * np.minimum(context, window)", "queries * context"),
        ("window + queries - 1)", "window + queries)"),
        ("np.minimum(context, window + queries", "np.minimum(context, window * queries"),
        ("heads * queries * keys * s", "heads * queries * context * s"),
        ("2 * kv_heads * keys * s_kv", "2 * heads * keys * s_kv"),
        ("machine.ridge_point(precision, accumulate=accumulate)", "machine.ridge_point(precision)"),
        ("ridge = peak / machine.bandwidth()", "ridge = machine.ridge_point(precision)"),
        ("bytes_moved + 4 * batch * heads", "bytes_moved + 2 * batch * heads"),
        ("Work(4 * batch * heads * head_dim", "Work(2 * batch * heads * head_dim"),
        ("root = 1.5 * bytes", "root = 1.0 * bytes"),
        ("ridge * (width_a * k + width_c * n)", "ridge * (width_a * n + width_c * k)"),
        ("ridge * (width_a * k + width_c * n)", "ridge * width_a * k"),
        ("ridge * width_b * n * k / np.where", "ridge * width_a * n * k / np.where"),
        ("np.ceil(np.where(finite, root, 1.0)) - 1)", "np.ceil(np.where(finite, root, 1.0)) + 1)"),
    ],
    "tiling": [
        ("reads_of_b = np.ceil(n / tile_n),", "reads_of_b = n / tile_n,"),
        ("reads_of_b = np.ceil(n / tile_n),", "reads_of_b = np.ceil(m / tile_m),"),
        ("width_b * reads_of_b * k * n + width_c * m * n", "width_b * reads_of_b * k * n"),
        ("width_b * reads_of_b", "width_a * reads_of_b"),
        ("(2 * m * n * k + m * n))", "(m * n * k + m * n))"),
        ("np.maximum(m * k + k * n", "np.minimum(m * k + k * n"),
        ("else -2 * fast", "else -fast"),
        ("beside = m * n if", "beside = 2 * m * n if"),
        ("2 * m * n * k / np.sqrt(fast)", "m * n * k / np.sqrt(fast)"),
        ("max(s, bytes_of(\"sums\", \"fp32\"))", "bytes_of(\"sums\", \"fp32\")"),
        ("tile_m * tile_n * s_sums + (tile_m + tile_n) * s\n", "tile_m * tile_n * s_sums + tile_m * s\n"),
        ("tile_m * tile_n * s_sums + buffers", "tile_m * tile_n * s + buffers"),
        ("tile_m * tile_n * s_sums + (tile_m", "tile_m * tile_n * s + (tile_m"),
        ('np.ceil(size("m", m) / tile_m)', 'np.floor(size("m", m) / tile_m)'),
        ("(tile_count(m, n, tile) * tile_m * tile_n)", "(tile_count(m, n, tile) * tile_m * tile_m)"),
        ("np.ceil(tiles / units) * units", "(np.floor(tiles / units) + 1) * units"),
        ("            moved += fast_c.nbytes\n", ""),
    ],
    "caches": [
        ("held[tag % sets]", "held[0]"),
        ("if len(lines) == ways:", "if len(lines) > ways:"),
        ("if lines.pop(tag, None) is None:", "if tag not in lines:"),
        ("misses * line)", "accesses * line)"),
        ("row, matrix = pitch * width, n", "row, matrix = n * width, n"),
        ("yield matrix + k * row + j\n            yield", "yield matrix + i * row + j\n            yield"),
        ("yield matrix + k * row + j\n                        yield 2 * matrix", "yield matrix + k * row + j\n                        yield matrix"),
        ("min(top + block, n)", "n"),
        ("each % banks for each in words", "each % banks for each in list(words)[1:]"),
        ("words = {address // word for", "words = {address for"),
        ("{address // word for address in _whole(addresses)}", "[address // word for address in _whole(addresses)]"),
    ],
    "chains": [
        ("dims[left] * dims[right] * width)", "dims[left] * dims[middle] * width)"),
        ("        if not top:\n", "        if True:\n"),
        ("if j - i > 1\n", "if j - i > 0\n"),
        ("return min(\n            (joined", "return max(\n            (joined"),
        ("cost_l\n                + cost_r\n                + getattr", "cost_l\n                + getattr"),
        ("total += gemm(dims[left], dims[right], dims[middle]", "total += gemm(dims[left], dims[right], dims[right]"),
        ("additions = 18 *", "additions = 15 *"),
        ("3 * half**2", "2 * half**2"),
        ("return 7 * products", "return 8 * products"),
    ],
    "transformer": [
        ('"embedding": 0 if self.tied else table', '"embedding": table'),
        ('groups["router"] = self._moe_layers', 'groups["router"] = 0 * self._moe_layers'),
        ("numbers_per_gain = 2 if", "numbers_per_gain = 1 if"),
        ("return self.parameters - unused *", "return self.parameters - self.layers *"),
        ("count * bytes_per_element(precisions[group])", "2 * count"),
        ("return self.layers * self.attention.cached_numbers *", "return self.attention.cached_numbers *"),
        ("layers * (context if window is None", "layers * (context if True"),
        ("self.layers if self.windowed_layers is None", "0 if self.windowed_layers is None"),
        ("cached + tokens, weights", "tokens, weights"),
        ("model._works(step, logits=step.batch,", "model._works(step, logits=step.rows,"),
        ("model._works(step, logits=step.rows,", "model._works(step, logits=step.batch,"),
        ("if np.any(queries > context):", "if np.any(queries > context + 1):"),
        ("(self.layers * self.norms_per_layer + 1) * norm", "self.layers * self.norms_per_layer * norm"),
        ("heads_of_all_rows = rows * (self.heads + self.kv_heads)", "heads_of_all_rows = rows * self.heads"),
        ("2 * self.layers * elementwise(wide, s)", "self.layers * elementwise(wide, s)"),
        ('return size("batch", batch, "sequences") / step', "return 1 / step"),
    ],
    "layers": [
        ("return 2 * self.kv_heads * self.head_dim", "return 2 * self.heads * self.head_dim"),
        ("window=window,", "window=None,"),
        ("causal=True,", "causal=False,"),
        ('out=step.kv if matrix.name == "kv" else None\n            )', "out=None\n            )"),
        ("return self.kv_rank + self.rope_dim", "return self.kv_rank"),
        ("            step.batch * step.context,\n            width", "            step.rows,\n            width"),
        ("np.less_equal(sum(absorbed)", "np.greater(sum(absorbed)"),
        ("step.context * self.cached_numbers", "step.context * self.kv_rank"),
        ("(step.context - (step.queries - 1) / 2)", "(step.context - step.queries / 2)"),
        ("2 * step.batch * self.heads * pairs * (keys + values)", "2 * step.batch * self.heads * pairs * keys"),
        ("(1 - self.active / self.copies) ** step.rows", "(1 - self.active / self.copies) * step.rows"),
        ("+ hit * weights", "+ self.copies * weights"),
        ("self.width * (2 if self.gated else 1))", "self.width)"),
        ("reads=2 if self.gated else 1", "reads=1"),
        ('weights.get(group, weights.get("other"))', 'weights.get("other", weights.get(group))'),
    ],
    "configs": [
        ('config.count("sliding_window", missing=128, null=0)', 'config.count("sliding_window", missing=0, null=0)'),
        ("return layer % 2 == 0", "return layer % 2 == 1"),
        ("(layer + 1) % pattern", "layer % pattern"),
        ("layer >= first)", "layer > first)"),
        ("1 if multi_query and not new", "1 if multi_query"),
        ("missing=2048) + 2", "missing=2048)"),
        ("missing=1536, null=0)", "missing=1536)"),
        ("layers * (experts + sizes", "layers * (sizes"),
        ('"extra_parameters": 2 * d_model', '"extra_parameters": d_model'),
        ("missing=kv_missing or heads, null=heads", "missing=heads, null=heads"),
        ("    config.refuse_the_rest()\n", ""),
        ("moe_layers * fields", "fields"),
    ],
    "steps": [
        ("np.maximum(self.work_time, self.transfer_time)", "self.work_time + self.transfer_time"),
        ("self.work_time + self.transfer_time + self.launch_time", "self.work_time + self.launch_time"),
        ('* number("per_kernel"', '+ number("per_kernel"'),
        ("total += kind.layers *", "total +="),
        ("_EXPAND if model.kv_heads < model.heads else 0", "_EXPAND"),
        ("_ROUTING = 6", "_ROUTING = 5"),
        ("_ROTARY = 2 * 5", "_ROTARY = 5"),
    ],
    "serving": [
        ("ttft + (tokens - 1) * number", "ttft + tokens * number"),
        ("(latency - ttft) / (tokens - first)", "(latency - ttft) / tokens"),
        ("np.logical_and(ttft <= self.ttft, tpot", "np.logical_or(ttft <= self.ttft, tpot"),
        ("ttft <= self.ttft", "ttft < self.ttft"),
        ("(wait[:, None] < wait) | (throughput", "(wait[:, None] < wait) & (throughput"),
        ("plain(np.mean(tokens) / np.max(tokens))", "plain(np.min(tokens) / np.max(tokens))"),
        ("ridge_point(precision) * weight / 2", "ridge_point(precision)"),
        ("np.maximum(ridge_rows - rows, 0)", "ridge_rows - rows"),
        ('(size("block", block, "tokens") - 1) / 2', 'size("block", block, "tokens") / 2'),
        ("np.ceil(tokens / block) * block", "(np.floor(tokens / block) + 1) * block"),
        ("rows * prefill / (", "prefill / ("),
        ("np.minimum(prefill, decode)", "np.maximum(prefill, decode)"),
        ("np.power(a, g + 1)", "np.power(a, g)"),
        ("(guesses * draft + 1)", "(draft + 1)"),
        ("(guesses * draft + guesses + 1)", "(guesses * draft + guesses)"),
        ("price / (HOUR * rate) * 1e6", "price / (HOUR * rate) * 1e3"),
        ('above=0) / 60\n', 'above=0)\n'),
    ],
    "peaks": [
        ("clock: Number, flops_per_lane: Number = 2) -> Value", "clock: Number, flops_per_lane: Number = 1) -> Value"),
        ("* bits / 8", "* bits / 4"),
        ("transfers_per_clock: Number = 2", "transfers_per_clock: Number = 1"),
        ("above=0) / _per_cycle", "above=0) * _per_cycle"),
    ],
    "measuring/links": [
        ("(shape.bytes, shape.ranks)\n        return Work(0, transfer.bytes_sent)", "(shape.bytes, shape.ranks)\n        return Work(0, shape.bytes)"),
        ("width = shape.d_ff // shape.ranks", "width = shape.d_ff"),
        ("rows = np.stack([1 / seconds, sent / seconds], axis=1)", "rows = np.stack([1 / seconds, 1 / sent], axis=1)"),
        ("float(slope_error / slope**2)", "float(slope_error)"),
    ],
    "links": [
        ("return self.ports * self.bandwidth", "return self.bandwidth"),
        ("self.latency * self.bandwidth", "self.latency / self.bandwidth"),
    ],
    "training": [
        ("_BF16 * parameters / (ranks if zero >= 3 else 1)", "_BF16 * parameters"),
        ("gradient_bytes * parameters / (ranks if zero >= 2 else 1)", "gradient_bytes * parameters"),
        ("float(_ADAM) * parameters / (ranks if zero >= 1 else 1)", "float(_ADAM) * parameters"),
        ("(1 + self.bubble) *", "1 *"),
        ("zero_memory(experts, parallel.data,", "zero_memory(experts, parallel.replicas,"),
        ("updated=memory.optimizer / _ADAM", "updated=None"),
        ('3 if keep == "layer inputs" else 2', "2"),
        ("passes * times * transfer", "times * transfer"),
        ("_FP32 = 4 ", "_FP32 = 2 "),
        ("logits=2 * _FP32 * rows", "logits=_FP32 * rows"),
        ("np.maximum(self.logits, self.recomputed)", "np.add(self.logits, self.recomputed)"),
        ("model.heads * tokens if", "2 * model.heads * tokens if"),
        ("recomputed = _BF16 * rows", "recomputed = 0 * rows"),
        ("max(dense, sparse) if sparse_layers", "min(dense, sparse) if sparse_layers"),
        ("block = 4 * model.d_model", "block = 3 * model.d_model"),
        ("wide = model.head_dim + model.rope_head_dim", "wide = model.head_dim"),
        ("attention = model.heads * (2 * wide + 2 * values) + latents", "attention = model.heads * (2 * wide + 2 * values)"),
        ("arrays * (routed + shared)", "arrays * routed"),
        ("(model.dense_d_ff or model.d_ff)", "model.d_ff"),
        ('products["attention"].flops / 2, 0', "0, 0"),
        ('if keep != "everything":', "if True:"),
        ('if name != "logits"', "if True"),
        ("(times - 1) * width * parameters", "(times - 1) * 2 * parameters"),
        ("(26 + width) * updated", "28 * updated"),
        ('bytes_of("gradients", gradients) * parameters', "2 * parameters"),
    ],
    "pricing": [
        ("step_bound=step.bound", "step_bound=step.forecast"),
        ("step_forecast=step.forecast", "step_forecast=step.bound"),
        ("(room - held) // sequence", "room // sequence"),
        ("max(0, int(", "abs(int("),
        ("-(-(held + sequence) // room)", "-(-held // room)"),
        ("int(-(-(held + sequence) // room))", "int((held + sequence) // room)"),
        ("whole.kv_bytes(1, context, kv)", "whole.kv_bytes(1, context)"),
        ("kv_bytes_per_token=whole.kv_bytes_per_token(kv)", "kv_bytes_per_token=whole.kv_bytes_per_token()"),
        ("whole.prefill(1, context, **precisions)", "whole.prefill(1, context)"),
        ("whole.decode(1, context, **precisions)", "whole.decode(1, context)"),
        ('if name != "attention"', "if True"),
        ("high - low > 1", "high - low > 2"),
        ("kernels_per_step(whole) if kernels is None else kernels", "kernels_per_step(whole)"),
        ('number("per_kernel", per_kernel, "s", least=0, single=True)', "PER_KERNEL"),
        ("1 / self.step_bound", "1 / self.step_forecast"),
    ],
    "parallel": [
        ("self.data * self.pipeline * self.expert", "self.data * self.pipeline"),
        ("return self.data * self.expert", "return self.data"),
        ("self.stages * (self.work_time", "(self.work_time"),
        ("kv_heads=max(1, model.kv_heads // ways)", "kv_heads=model.kv_heads"),
        ("vocab=-(-model.vocab // ways)", "vocab=model.vocab"),
        ('groups["embedding"] = 0', "pass"),
        ('groups["experts"] //= parallel.expert', "pass"),
        ("works[name] = (1 / parallel.expert) * of_all[name]", "pass"),
        ("works_of(chip, own * parallel.expert)", "works_of(chip, own)"),
        ("2 * chip.layers * once", "chip.layers * once"),
        ("row_bytes * parallel.expert * chip.experts_per_token", "row_bytes * chip.experts_per_token"),
        ("2 * layers * once", "layers * once"),
        ("(accumulation if zero > 1 else 1) * scatter", "scatter"),
        ("(2 * accumulation if zero == 3 else 1) * gather", "gather"),
        ("return s / 2 * link_ridge", "return s * link_ridge"),
        ("link) * share * sparsity", "link) * share"),
        ("matrices * d_ff / (s *", "d_ff / (s *"),
        ("bandwidth * ranks / (ranks - 1)", "bandwidth"),
        ("return (stages - 1) /", "return stages /"),
        ("d_model) * width * share", "d_model) * width"),
    ],
    "collectives": [
        ("self.steps * self._link.latency", "self._link.latency"),
        ("self.bytes_on_link / self._link.bandwidth", "self.bytes_sent / self._link.bandwidth"),
        ("_any(n) / n, _any(n))", "(n - 1) / n, _any(n))"),
        ("_any(n) / n**2, _any(n))", "_any(n) / n, _any(n))"),
        ("(n - 1) / n**2, (n - 1) / n**2, _any(n)", "(n - 1) / n, (n - 1) / n, _any(n)"),
        ("(n - 1) / (2 * n), (n - 1) / (2 * n), n - 1", "(n - 1) / n**2, (n - 1) / n**2, n - 1"),
        ("(n - 1) / (2 * n), np.ceil((n - 1) / 2))", "(n - 1) / (2 * n), (n - 1) / 2)"),
        ("(n - 1) / (2 * n), np.ceil((n - 1) / 2))", "(n - 1) / n, np.ceil((n - 1) / 2))"),
        ("np.where(n % 2 == 0, n**2, n**2 - 1)", "np.where(n % 2 == 0, n**2, n**2)"),
        ("(n - 1 + 2 * (n > 2)) / n", "(n - 1) / n"),
        ("np.floor(n / 2) * np.ceil(n / 2)", "np.floor(n / 2) ** 2"),
        ("np.floor((n**2 - 1) / 2)", "np.floor(n**2 / 2)"),
        ("max(shards) * share / 2", "max(shards) * share"),
        ("held *= self.sides[axis]", "held += self.sides[axis]"),
        ("ring.on_link * side / n", "ring.on_link / n"),
        ("_Share(2 * sum(on_axis)", "_Share(sum(on_axis)"),
        ("np.ceil((max(self.sides) - 1) / 2)", "np.ceil(max(self.sides) / 2)"),
        ("_Share(_any(ranks), _any(ranks), 2 * _any(ranks))", "_Share(2 * _any(ranks), 2 * _any(ranks), 2 * _any(ranks))"),
        ("_Share(ranks - 1, ranks - 1, _any(ranks))", "_Share(1, 1, _any(ranks))"),
        ("all_reduce(total / group_size,", "all_reduce(total,"),
        ('(2 if collective == "all_reduce" else 1)', "1"),
        ("longest * (2 if longest > 1 else 0)", "longest"),
        ('"mesh": half * (ranks - half)', '"mesh": half'),
        ("return Transfer(total, total, hops,", "return Transfer(total, total, 1,"),
    ],
    "checks/answers": [
        ('"".join(_words(choice)) == key]', '"".join(_words(choice)) in key]'),
        ("len(found) == 1 else None", "found else None"),
        ("return not cuts_a_number", "return True"),
        ('("bit", "byte"): 8', '("bit", "byte"): 1'),
        ('("MAC", "FLOP"): "mac-is-flop"', '("MAC", "FLOP"): "giga-slip"'),
    ],
    "checks/judging": [
        ("<= tolerance * abs(reference)", "<= tolerance"),
    ],
    "checks/questions": [
        ("_SLIP_TOLERANCE = 0.004", "_SLIP_TOLERANCE = 0.04"),
        ("within(read.value, reference, self.tolerance)", "within(read.value, reference, 0.01)"),
        ("if any(all(_gives(", "if any(any(_gives("),
        ("[tried, wrong] if 2 * len(wrong)", "[tried, wrong] if 9 * len(wrong)"),
        ("0 < short <= 1", "0 < short <= 2"),
        ('if self.rounded == "up" else too_much', 'if self.rounded == "down" else too_much'),
        ("read))[:1]", "read))"),
    ],
    "checks/variants": [
        ("self.ask(**self.draw(rng))", "self.ask()"),
        ("{self.ask().id} {name}", "{self.ask().id}"),
    ],
    "grading/lateness": [
        ("min(100.0, self.percent_a_day * self.days)", "self.percent_a_day * self.days"),
        ("points * (100 - self.percent_off) / 100", "points - self.percent_off / 100"),
    ],
    "checks/guesses": [
        ("times = max(ratio, 1 / ratio)", "times = ratio"),
        ('"high" if ratio > 1', '"high" if ratio > 2'),
        ("abs(ratio - 1) <= _CLOSE", "abs(ratio - 1) <= 0.25"),
    ],
    "checks/tries": [
        ("len(wrong) > 1", "len(wrong) > 0"),
        ("wrong.add(verdict.tried)", "wrong.add(verdict.message)"),
    ],
    "checks/slips": [
        ("reference * 1000", "reference * 100"),
        ('yield "giga-slip", reference / 1000', 'yield "mega-slip", reference / 1000'),
        ('"raw-number", reference * scale', '"raw-number", reference * 2'),
        ('"bits-for-bytes", reference / 8', '"bits-for-bytes", reference / 4'),
        ("if given.in_bits:", "if True:"),
        ("for digits in (1, 2)", "for digits in (1, 2, 3)"),
        ('"gib-for-gb", reference / 1.024**power', '"gib-for-gb", reference / 1.04**power'),
        ('"fraction-for-percent", reference / 100', '"fraction-for-percent", reference / 10'),
        ('"upside-down", 1 / reference', '"upside-down", 2 / reference'),
    ],
    "measuring/record": [
        ("self.work.flops / self.seconds", "self.work.bytes_moved / self.seconds"),
        ("float(np.median(values))", "float(np.mean(values))"),
        ("if getattr(value, each.name) is not None or each.default is not None", "if getattr(value, each.name) is not None"),
        ("return Record.from_json(parsed_json(", "return _read(parsed_json("),
    ],
    "measuring/roofs": [
        ("stream.working_set <= 0.7 * size", "stream.working_set <= size"),
        ("2 / 3 if stream.family", "1 if stream.family"),
        ("return 3.99 * found[-1][0]", "return 4 * found[-1][0]"),
        ("each.units * each.bits / (8 *", "each.bits / (8 *"),
        ('2 if "fma" in flags else 1', "2"),
        ("0.99 * max(map", "0 * max(map"),
        ("if found.units != chip.units:", "if False:"),
        ("best.get(level, 0.0) > max(bandwidths.values(), default=0.0)", "level in best"),
        ("seconds[: max(ended, LEAST_REPEATS)]", "seconds[: ended + 1]"),
        ('and point.label == "random"', 'and point.label != "random"'),
        ("np.median(_first(point.timing.repeats))", "np.median(point.timing.repeats)"),
    ],
    "measuring/system": [
        ("return None if \"\" in siblings else len(siblings)", "return len(among)"),
        ("range(len(parts), -1, -1)", "range(len(parts), len(parts) - 1, -1)"),
        ("if not (level and size):\n                return {}", "if not (level and size):\n                continue"),
        ("if virtual and megahertz", "if megahertz"),
    ],
    "measuring/verdicts": [
        ("time / point.seconds\n\n\ndef verdict", "compute_time / point.seconds\n\n\ndef verdict"),
        ("ratio <= 1 + 1e-5", "ratio <= 1"),
        ("max(compute / waves, memory)", "compute / waves + memory"),
        ("with_waves + floor", "with_waves"),
        ("point.working_set < 2 * found[-1][0]", "point.working_set < found[-1][0]"),
    ],
    "measuring/clocks": [
        ("        self._look()\n        self._thread", "        self._thread"),
        ("failed or not value.value", "failed"),
        ("inside = [seen for seen in self.seen if start <= seen.at <= end]", "inside = [*self.seen]"),
    ],
    "measuring/jobs": [
        ("lines[0][:200] if lines else type(error).__name__", "lines[0][:200]"),
    ],
    "measuring/profiles/formats": [
        ("sum(each * time for", "sum(each for"),
        ("longest = max(longest, seconds)", "longest = seconds"),
        ("sum(bandwidth.values()) * longest", "sum(bandwidth.values())"),
        ('cell.strip() in ("-", "nan", "-nan")', 'cell.strip() == "nan"'),
        ("or _LIKWID_VOLUME.fullmatch(name)", 'or name.startswith("Memory")'),
    ],
    "measuring/gpu": [
        ("if expected > LONGEST:", "if expected > 9 * LONGEST:"),
        ("width = max(4.0, bytes_per_element(precision))", "width = 4.0"),
        ("shape.m >= cuda.LEAST_INT8_ROWS", "shape.m"),
    ],
    "measuring/loops": [
        ("(shape.threads // self.issuers)", "shape.threads"),
        ("self.least <= capability <= self.most", "self.least <= capability"),
    ],
    "measuring/compiling": [
        ('("a" if major >= 9 else "")', '("a" if major > 9 else "")'),
    ],
    "measuring/run": [
        ("except KeyboardInterrupt:", "except ZeroDivisionError:"),
    ],
    "diagrams": [
        ("self.lanes * _OPERANDS", "self.lanes * 4"),
        ("per_clock_and_unit = clock * units", "per_clock_and_unit = clock"),
        ('"CUDA core") // 2', '"CUDA core")'),
        ("rate / _BYTES_ACROSS, _HAIR", "rate, _HAIR"),
        ("snap=False", "snap=True"),
        ("model.kv_heads * model.head_dim,", "model.heads * model.head_dim,"),
    ],
}  # fmt: skip
TESTS = {  # module: its test files, where they are not tests/test_<module>.py
    "arguments": ["tests/test_quantities.py", "tests/test_border.py"],
    "transformer": ["tests/test_transformer.py", "tests/test_published.py"],
    "layers": ["tests/test_transformer.py"],
    "measuring/links": ["tests/test_measuring_links.py"],
    "training": ["tests/test_training.py", "tests/test_parallel.py"],
    "checks/answers": ["tests/test_checks.py"],
    "checks/judging": ["tests/test_checks.py"],
    "checks/questions": ["tests/test_checks.py"],
    "checks/slips": ["tests/test_checks.py"],
    "checks/tries": ["tests/test_checks.py"],
    "checks/guesses": ["tests/test_guesses.py"],
    "checks/variants": ["tests/test_variants.py"],
    "grading/lateness": ["tests/test_lateness.py"],
    "measuring/record": ["tests/test_measuring_record.py"],
    "measuring/roofs": [
        "tests/test_measuring_verdicts.py",
        "tests/test_measuring_machines.py",
        "tests/test_measuring_gpu.py",
    ],
    "measuring/profiles/formats": ["tests/test_profiles.py"],
    "measuring/gpu": ["tests/test_measuring_gpu.py"],
    "measuring/loops": ["tests/test_measuring_gpu.py"],
    "measuring/compiling": ["tests/test_measuring_gpu.py"],
    "measuring/system": ["tests/test_measuring_machines.py"],
    "measuring/verdicts": ["tests/test_measuring_verdicts.py"],
    "measuring/clocks": ["tests/test_measuring_run.py", "tests/test_measuring_machines.py"],
    "measuring/jobs": ["tests/test_measuring_run.py"],
    "measuring/run": ["tests/test_measuring_run.py"],
}


def copy_of_the_tree(folder):
    """The library with its tests in a folder of their own, without compiled files that could
    outlive a change of a second."""
    for name in ("roofline_lib", "tests", "tools"):
        shutil.copytree(
            ROOT / name,
            folder / name,
            ignore=shutil.ignore_patterns("__pycache__", "browser", "submissions"),
        )
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def tests_pass(folder, module):
    """Whether the module's tests pass in this copy; a run that hangs does not."""
    environment = os.environ | {
        "PYTHONPATH": str(folder),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HYPOTHESIS_PROFILE": "every-change",
    }
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-p",
        "no:cacheprovider",
        *TESTS.get(module, [f"tests/test_{module}.py"]),
    ]
    try:
        result = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300
        )
    except subprocess.TimeoutExpired:
        return False
    # 1: a test failed; 2: not even its import went well; more: no tests were there
    if result.returncode > 2:
        raise RuntimeError(
            f"{module}: {' '.join(command[2:])}\n{result.stdout[-2000:]}{result.stderr[-2000:]}"
        )
    return result.returncode == 0


def judge(copies, module, break_):
    """ "noticed", "MISSED" or "STALE" for one break, in one of the copies."""
    folder = copies.get()
    path = folder / "roofline_lib" / f"{module}.py"
    whole = path.read_text()
    try:
        if whole.count(break_[0]) != 1:
            return "STALE"
        path.write_text(whole.replace(*break_))
        return "MISSED" if tests_pass(folder, module) else "noticed"
    finally:
        path.write_text(whole)
        copies.put(folder)


def stale():
    """Breaks whose formula no longer stands in its module, or stands there twice."""
    texts = {module: (ROOT / "roofline_lib" / f"{module}.py").read_text() for module in BREAKS}
    return [
        (module, old)
        for module, breaks in BREAKS.items()
        for old, _ in breaks
        if texts[module].count(old) != 1
    ]


def main(modules):
    chosen = {module: BREAKS[module] for module in modules or BREAKS}
    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor(WORKERS) as pool:
        copies = SimpleQueue()
        for i in range(WORKERS):
            copies.put(copy_of_the_tree(Path(temporary) / str(i)))
        folder = copies.get()
        for module in chosen:
            assert tests_pass(folder, module), f"the tests of {module} fail without any break"
        copies.put(folder)
        rows = [(module, break_) for module, breaks in chosen.items() for break_ in breaks]
        verdicts = pool.map(lambda row: judge(copies, *row), rows)
        results = []
        for (module, (old, new)), verdict in zip(rows, verdicts, strict=True):
            print(
                f"{verdict:8} {module:12} {' '.join(old.split())}  ->  {' '.join(new.split()) or 'nothing'}",
                flush=True,
            )
            results.append(verdict)
    print(f"{len(results)} breaks, {results.count('noticed')} noticed")
    return int(results.count("noticed") < len(results))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
