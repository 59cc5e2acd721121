"""What a model costs on a chip, on one page: `rl.price(...)`, `python -m roofline_lib model`.

Nothing new is computed here: the page gathers what `Transformer`, `step_time` and the catalogue
say.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from roofline_lib.arguments import UnknownName, number, size
from roofline_lib.machines import Machine, as_machine
from roofline_lib.model import bound, time_in_sequence
from roofline_lib.precisions import bytes_of
from roofline_lib.quantities import plural, quantity, significant
from roofline_lib.steps import kernels_per_step, step_time
from roofline_lib.transformer import Transformer, as_transformer

# seconds to start one from a CUDA graph, as an H200's shortest product shows; others may differ
PER_KERNEL = 2.6e-6
_MOST_SEQUENCES = 2**20


@dataclass(frozen=True)
class Price:
    """A model on a chip: sizes in byte, times in s, rates in token/s, all for sequences of
    `context` tokens, the new one among them.

    `fits` is how many sequences fit beside the weights, 0 where the weights alone do not.
    `chips` is how many chips the weights and one sequence need for their memory alone. Both are
    None where the machine's `capacity` is not known. `positions` is the longest context that the
    model was made for, None where that is not known.
    `step_bound` is the least time of a decode step for one sequence, `step_forecast` adds `kernels`
    launches at `per_kernel` (s) each. `turning_batch` is the smallest batch at which the products
    with weights are compute-bound, None where none up to 2^20 is. `prefill_bound` is the least time
    to read one prompt of `context` tokens.
    """

    model: str
    machine: str
    context: int
    weights: str
    kv: str
    activations: str
    parameters: int
    active_parameters: int
    weight_bytes: float
    kv_bytes_per_token: float
    kv_bytes: float
    positions: int | None
    capacity: float | None
    fits: int | None
    chips: int | None
    kernels: int
    per_kernel: float
    step_bound: float
    step_forecast: float
    turning_batch: int | None
    prefill_bound: float

    def __str__(self) -> str:
        """The page."""
        active = (
            f", {significant(self.active_parameters / 1e9)}e9 of them used for a token"
            if self.active_parameters < self.parameters
            else ""
        )
        turns = (
            f"from batch {self.turning_batch:,} on the products with weights are compute-bound"
            if self.turning_batch
            else f"no batch up to {_MOST_SEQUENCES:,} makes the products compute-bound"
        )
        lines = [
            f"{self.model} on {self.machine}",
            f"  weights {self.weights}, KV cache {self.kv}, activations {self.activations}, "
            f"context {self.context:,} tokens",
            *self._beyond(),
            "",
            f"  parameters     {self.parameters:,}{active}",
            f"  weights        {quantity(self.weight_bytes, 'byte')}",
            f"  KV cache       {quantity(self.kv_bytes_per_token, 'byte')} a token, "
            f"{quantity(self.kv_bytes, 'byte')} a sequence",
            f"  memory         {self._room()}",
            "",
            f"  one token      at least {_span(self.step_bound)}, so at most "
            f"{significant(1 / self.step_bound)} token/s for one sequence",
            f"                 forecast {_span(self.step_forecast)} "
            f"({significant(1 / self.step_forecast)} token/s) with {self.kernels:,} kernels, "
            f"{quantity(self.per_kernel, 's')} each",
            f"  a prompt       at least {_span(self.prefill_bound)} for {self.context:,} tokens",
            f"  where it turns {turns}",
            "",
            "  Times are bounds on one chip, links between chips left out; the kernels are an "
            "estimate.",
            *self._whose_start(),
        ]
        return "\n".join(lines)

    def _beyond(self):
        if self.positions is None or self.context <= self.positions:
            return []
        return [
            f"  This context is longer than the {self.positions:,} tokens that the model was made "
            "for: a price, no promise."
        ]

    def _whose_start(self):
        if self.per_kernel != PER_KERNEL or "H200" in self.machine:
            return []
        return [
            f"  {quantity(self.per_kernel, 's')} to start a kernel is an H200's, from a CUDA "
            f"graph; nobody measured it on {self.machine} here."
        ]

    def _room(self):
        if self.capacity is None:
            return "its size is not known here, so neither is what fits"
        size_of_it = quantity(self.capacity, "byte")
        if self.fits:
            fit = "fits" if self.fits == 1 else "fit"
            return (
                f"{size_of_it}: {plural(self.fits, 'sequence')} of this length {fit} beside the "
                "weights"
            )
        return (
            f"{size_of_it}: too little; for its memory alone this takes "
            f"{plural(self.chips, 'chip')}"
        )


def price(
    model: Transformer | str,
    machine: Machine | str,
    *,
    context: int = 4096,
    weights: str | Mapping[str, str] = "bf16",
    kv: str = "bf16",
    activations: str = "bf16",
    kernels: int | None = None,
    per_kernel: float = PER_KERNEL,
) -> Price:
    """The Price of a model (a Transformer, a preset's name, or the path of a config.json) on a
    machine (or its name).

    `context` (tokens) counts all keys. `weights` is a precision, or one for each group as in
    `Transformer.decode`; the peak is that of `activations`. `kernels` a step are estimated unless
    given. ValueError for what cannot be read, UnknownName for a name that is not known, and for a
    precision that the machine has no peak for.
    """
    whole, chip = _model(model), as_machine(machine)
    context = int(size("context", context, "tokens", single=True))
    bytes_of("kv", kv)
    bytes_of("activations", activations)
    precisions: Any = {"weights": weights, "kv": kv, "activations": activations}
    held, sequence = whole.weight_bytes(weights), whole.kv_bytes(1, context, kv)
    if activations not in chip.precisions:
        raise UnknownName(
            f"{chip.name} has no {activations} peak; activations (--activations) may be "
            f"{' or '.join(chip.precisions)}"
        )
    room = chip.capacities.get("DRAM")
    started = number(
        "kernels",
        kernels_per_step(whole) if kernels is None else kernels,
        "kernels",
        least=0,
        single=True,
    )
    works = whole.decode(1, context, **precisions)
    step = step_time(
        works,
        chip,
        activations,
        started,
        number("per_kernel", per_kernel, "s", least=0, single=True),
    )
    prompt = whole.prefill(1, context, **precisions)
    return Price(
        model=whole.name or "this model",
        machine=chip.name,
        context=context,
        weights=weights if isinstance(weights, str) else "by group",
        kv=kv,
        activations=activations,
        parameters=whole.parameters,
        active_parameters=whole.active_parameters,
        weight_bytes=held,
        kv_bytes_per_token=whole.kv_bytes_per_token(kv),
        kv_bytes=sequence,
        positions=whole.positions,
        capacity=room,
        fits=None if room is None else max(0, int((room - held) // sequence)),
        chips=None if room is None else int(-(-(held + sequence) // room)),
        kernels=int(started),
        per_kernel=float(per_kernel),
        step_bound=step.bound,
        step_forecast=step.forecast,
        turning_batch=_turning_batch(whole, chip, context, precisions),
        prefill_bound=time_in_sequence(prompt.values(), chip, activations),
    )


def _turning_batch(model, machine, context, precisions):
    """The smallest batch at which the step's products with weights, all together, are
    compute-bound; None where none is. Their intensity grows with the batch, so halving finds it."""

    def turned(batch):
        works = model.decode(batch, context, **precisions)
        products = sum(work for name, work in works.items() if name != "attention")
        return bound(products, machine, precisions["activations"]).bound_by == "compute"

    low, high = 0, 1
    while not turned(high):
        low, high = high, 2 * high
        if high > _MOST_SEQUENCES:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if turned(middle) else (middle, high)
    return high


def _model(given) -> Transformer:
    if isinstance(given, str | Path) and str(given).endswith(".json"):
        found = Transformer.from_config(given)
        return found if found.name else _named(found, Path(given))
    return as_transformer(given)


def _named(model, path):
    """A model without a name, called after its file or the folder that the file lies in."""
    name = path.resolve().parent.name if path.stem == "config" else path.stem
    sizes = {key: getattr(model, key) for key in model.__dataclass_fields__}
    return Transformer(**(sizes | {"name": name}))


def _span(seconds: float) -> str:
    """A time, in hours or days where it lasts some of them."""
    for name, length in (("days", 86_400.0), ("hours", 3_600.0)):
        if seconds >= 2 * length:
            return f"{significant(seconds / length)} {name}"
    return quantity(seconds, "s")


def _groups(text):
    """{group: precision} of "experts=mxfp4,other=bf16"; one precision for all stays as it is."""
    if "=" not in text:
        return text
    pairs = (part.partition("=") for part in text.split(","))
    return {group.strip(): precision.strip() for group, _, precision in pairs}


def main(argv: list[str]) -> int:
    """The command line. Gives the exit code, 2 for what cannot be priced."""
    parser = argparse.ArgumentParser(
        prog="python -m roofline_lib model",
        description="What a model costs on a chip: a preset such as llama-3-8b, or a config.json.",
    )
    parser.add_argument("model", metavar="CONFIG_OR_NAME")
    parser.add_argument("--machine", default="H200 SXM", help="default: %(default)s")
    parser.add_argument("--context", type=int, default=4096, help="tokens; default: %(default)s")
    parser.add_argument(
        "--weights",
        default="bf16",
        help="a precision, or one for each group: experts=mxfp4,other=bf16; default: bf16",
    )
    for what in ("kv", "activations"):
        parser.add_argument(f"--{what}", default="bf16", metavar="PRECISION", help="default: bf16")
    parser.add_argument("--json", action="store_true", help="the same as one JSON object")
    options = parser.parse_args(argv)
    try:
        found = price(
            options.model,
            options.machine,
            context=options.context,
            weights=_groups(options.weights),
            kv=options.kv,
            activations=options.activations,
        )
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    print(json.dumps(asdict(found), indent=1) if options.json else found)
    return 0
