"""Machines: looked up by name, made by hand, and never a silent default."""

import pytest

import roofline_lib as rl


def test_names_take_any_case_space_and_hyphen():
    for spelling in ("H100 SXM", "h100sxm", "h100-sxm", "H100_SXM", " h 100 sxm"):
        assert rl.machine(spelling) is rl.machine("H100 SXM")
    assert all(rl.machine(name).name == name for name in rl.machines())


def test_unknown_names_list_the_nearest():
    with pytest.raises(KeyError, match="machine 'h100 smx' is not known; nearest: H100 SXM"):
        rl.machine("h100 smx")
    for typed, first in (
        ("A100", "A100 40GB SXM, A100 80GB SXM, A100 80GB PCIe"),
        ("h-100", "H100 SXM, H100 PCIe"),
        ("H100 SXM9", "H100 SXM"),
        ("MI3", "MI300X, MI325X, MI355X"),
    ):
        with pytest.raises(KeyError, match=f"is not known; nearest: {first}[,;]"):
            rl.machine(typed)
    with pytest.raises(KeyError) as wall:
        rl.machine("RTX")
    assert str(wall.value).count("RTX") == 1 + 3  # what came, and three of the nine
    with pytest.raises(
        KeyError, match="nearest: llama-2-7b, llama-2-13b, llama-2-70b, llama-3-8b, "
    ):
        rl.transformer("llama")
    with pytest.raises(ValueError, match="machine must be a Machine or the name of one; got 3"):
        rl.bound(rl.Work(1, 1), 3, "fp32")


def test_by_hand():
    chip = rl.Machine(
        name="mine",
        peaks={
            "fp32": 20e12,
            "fp16": (rl.Peak(40e12, "fp16", "fp32"), rl.Peak(80e12, "fp16", "fp16")),
        },
        bandwidths={"DRAM": 2e12, "L2": 6e12},
        capacities={"DRAM": 80e9, "L1": 2.0**18},
    )
    assert (
        chip.peak("fp32") == 20e12 and chip.bandwidth() == 2e12 and chip.ridge_point("fp32") == 10.0
    )
    assert chip.ridge_point("fp32", "L2") == pytest.approx(20 / 6) and chip.levels == (
        "DRAM",
        "L2",
        "L1",
    )
    assert (
        chip.peak("fp16") == chip.peak("fp16", "fp32") == 40e12
        and chip.peak("fp16", accumulate="fp16") == 80e12
    )
    assert chip.ridge_point("fp16") == 20.0 and chip.ridge_point("fp16", accumulate="fp16") == 40.0
    assert (
        chip.capacity("L1") == 262144 and chip.units is None and chip.precisions == ("fp32", "fp16")
    )
    assert rl.bound(rl.Work(20e12, 1), chip, "fp32").time == 1.0
    assert (
        str(chip) == repr(chip) == "mine: fp32 20 TFLOP/s, fp16 40 TFLOP/s; DRAM 2 TB/s, L2 6 TB/s"
    )


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (
            lambda chip: chip.peak("fp64"),
            "^house chip has no fp64 peak; choose one of fp32, bf16, fp16$",
        ),
        (lambda chip: chip.peak("fp12"), "precision 'fp12' is not known"),
        (
            lambda chip: chip.peak("bf16", "fp16"),
            "accumulate 'fp16' is not known; choose one of fp32",
        ),
        (lambda chip: chip.peak("bf16", []), r"accumulate \[\] is not known"),
        (
            lambda chip: chip.bandwidth("L3"),
            "a bandwidth of house chip: level 'L3' is not known; choose one of DRAM, L2",
        ),
        # its capacity is printed, its bandwidth is not
        (
            lambda chip: chip.bandwidth("shared memory"),
            "^the bandwidth of house chip's shared memory is not known; known are those of DRAM",
        ),
        (lambda chip: chip.capacity([]), r"level \[\] is not known"),
        (lambda chip: chip.ridge_point("int4"), "house chip has no int4 peak"),
        (lambda chip: rl.critical_size(chip, "fp8"), "house chip has no fp8 peak"),
    ],
)
def test_there_is_no_silent_default(ask, message):
    for kind in (KeyError, ValueError):
        with pytest.raises(kind, match=message):
            ask(rl.machine("house chip"))


def test_a_machine_does_not_change_with_what_it_was_made_from():
    peaks = {"fp32": 1e12}
    chip = rl.Machine("mine", peaks, {"DRAM": 1e12})
    peaks["fp32"] = 2e12
    assert chip.peak("fp32") == 1e12
    with pytest.raises(AttributeError):
        chip.name = "yours"


def test_two_variants_of_one_chip_differ():
    assert rl.machine("A100 80GB SXM").bandwidth() > 1.3 * rl.machine("A100 40GB SXM").bandwidth()
    assert rl.machine("H100 SXM").peak("bf16") > 1.3 * rl.machine("H100 PCIe").peak("bf16")
    assert rl.machine("RTX 4090").peak("fp16", "fp16") == pytest.approx(
        2 * rl.machine("RTX 4090").peak("fp16", "fp32"), rel=1e-3
    )


@pytest.mark.parametrize("name", rl.machines())
def test_the_first_peak_is_dense_and_accumulates_widest(name):
    chip = rl.machine(name)
    assert chip.units >= 1 and chip.bandwidth() > 0
    for precision in chip.precisions:
        peaks = chip.peaks[precision]
        assert all(peak.dense and peak.precision == precision for peak in peaks)
        if peaks[0].accumulate == "fp16":
            # fp16 sums only where there is nothing wider
            assert all(peak.accumulate in ("fp16", None) for peak in peaks)
