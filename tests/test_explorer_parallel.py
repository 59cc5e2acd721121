"""ParallelExplorer: its steps are what the library says of a sliced model, and it knows where one
more chip stops paying."""

from dataclasses import replace

import pytest

import roofline_lib as rl
from roofline_lib.explorers.parallel import ParallelExplorer, figures

LLAMA, H200 = rl.transformer("llama-3-70b"), rl.machine("H200 SXM")
LINK = replace(rl.links(H200)[0], latency=7e-6)


@pytest.mark.parametrize("chips", [1, 2, 4, 8])
def test_a_step_is_a_sliced_models_step(chips):
    found = figures(LLAMA, H200, LINK, chips, 8, 4096, "bf16")
    step = LLAMA.decode(8, 4096, parallel=rl.Parallel(tensor=chips), link=LINK)
    assert found.shown.time == pytest.approx(step.time(H200, "bf16"))
    assert found.shown.memory == pytest.approx(step.memory)


def test_there_is_no_step_on_more_chips_than_the_link_joins():
    found = figures(LLAMA, H200, LINK, 16, 8, 4096, "bf16")
    assert [step.chips for step in found.steps] == [1, 2, 4, 8] and not found.can_be_cut
    readout = ParallelExplorer(tensor=16).readout
    assert "NVLink 4 joins 8" in readout and "Choose 1, 2, 4, 8" in readout


def test_a_second_chip_slows_a_small_model_when_messages_are_slow():
    slow = ParallelExplorer("llama-3-8b", tensor=2, batch=1, latency=3e-5)
    assert "Beyond 1 chip another one makes it slower" in slow.readout
    quick = ParallelExplorer("llama-3-8b", tensor=2, batch=1, latency=2e-6)
    assert "makes it slower" not in quick.readout


def test_without_latency_more_chips_are_never_slower():
    found = figures(LLAMA, H200, replace(LINK, latency=0.0), 8, 8, 4096, "bf16")
    times = [step.time for step in found.steps]
    assert times == sorted(times, reverse=True)
    assert found.fastest.chips == 8


def test_a_chip_holds_a_slice():
    found = figures(LLAMA, H200, LINK, 8, 8, 4096, "bf16")
    whole = LLAMA.weight_bytes("bf16") + LLAMA.kv_bytes(8, 4096, "bf16")
    assert found.shown.memory == pytest.approx(whole / 8, rel=1e-3)


def test_a_chip_without_a_link_says_so():
    mine = rl.Machine(name="mine", peaks={"bf16": 1e14}, bandwidths={"DRAM": 1e12})
    assert "has no link in the catalogue" in ParallelExplorer(machine=mine).readout
