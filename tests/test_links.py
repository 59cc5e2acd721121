"""The catalogue of links: one way, consistent with what data sheets print, each with its source."""

import tomllib
from pathlib import Path

import pytest

import roofline_lib as rl

LINKS = tomllib.loads(
    (Path(rl.__file__).parent / "data" / "links.toml").read_text(encoding="utf-8")
)
STATUSES = {"V", "T", "R", "derived"}


@pytest.mark.parametrize("name", LINKS)
def test_every_link_says_where_it_comes_from(name):
    table = LINKS[name]
    assert table["source"] and table["status"] in STATUSES
    assert table["kind"] in {"between chips", "bus", "network"}
    assert rl.link(name).status == table["status"]
    assert rl.link(name).conflicts == tuple(table.get("conflicts", ()))


@pytest.mark.parametrize("name", LINKS)
def test_figures_of_a_link_agree_with_each_other(name):
    table = LINKS[name]
    if "lanes" in table:
        bundled = table["lanes"] * table["lane_bandwidth"]
        assert bundled == pytest.approx(table["bandwidth"], rel=5e-3)
    if "printed_both_ways" in table:
        assert 2 * rl.link(name).total_bandwidth == pytest.approx(table["printed_both_ways"])
    assert table.get("line_rate", table["bandwidth"]) >= table["bandwidth"]


@pytest.mark.parametrize("name", LINKS)
def test_the_topology_fits_the_number_of_ports(name):
    link = rl.link(name)
    if link.topology == "switch":
        assert link.ports == 1
    elif link.topology == "mesh":
        assert link.ports == link.domain - 1
    else:
        assert link.ports in (4, 6), "two cables for each of two or three axes"


def test_a_machine_of_a_link_is_in_the_catalogue_and_finds_it():
    for name, table in LINKS.items():
        for machine in table["machines"]:
            assert rl.link(name) in rl.links(machine)
    assert rl.links("h200 sxm")[0] == rl.link("nvlink4")
    assert [link.name for link in rl.links(rl.machine("MI300X"))] == [
        "Infinity Fabric MI300X",
        "PCIe 5 x16",
    ]


@pytest.mark.parametrize(
    ("name", "total"),  # one way, all connections of one chip
    [
        ("NVLink 3", 300e9),
        ("NVLink 4", 450e9),
        ("NVLink 5", 900e9),
        ("Infinity Fabric MI300X", 448e9),
        ("Infinity Fabric MI355X", 535.5e9),
        ("ICI v5e", 200e9),
        ("ICI v5p", 600e9),
        ("InfiniBand NDR", 400e9 / 8),
        ("Ethernet 800G", 800e9 / 8),
    ],
)
def test_one_way_bandwidth_of_a_chip(name, total):
    assert rl.link(name).total_bandwidth == total


@pytest.mark.parametrize(
    ("name", "transfers", "payload", "of"),
    [
        ("PCIe 4 x16", 16e9, 128, 130),
        ("PCIe 5 x16", 32e9, 128, 130),
        ("PCIe 6 x16", 64e9, 242, 256),
    ],
)
def test_pcie_from_its_signalling(name, transfers, payload, of):
    assert rl.link(name).line_rate == 16 * transfers / 8
    assert rl.link(name).bandwidth == pytest.approx(16 * transfers / 8 * payload / of, rel=1e-3)


def test_a_pod_of_tpus_has_the_all_reduce_bandwidth_that_its_page_prints():
    """The vendor adds up all cables of all chips, one way."""
    assert 256 * rl.link("ICI v5e").total_bandwidth == pytest.approx(51.2e12)
    assert 256 * rl.link("ICI v6e").total_bandwidth == pytest.approx(102.4e12)


def test_a_link_by_hand():
    mine = rl.Link(bandwidth=450e9, latency=9e-6)
    assert mine.half_bandwidth_bytes == pytest.approx(4.05e6)
    assert rl.send(mine.half_bandwidth_bytes, mine).time == pytest.approx(2 * mine.latency)
    assert "9 µs a message" in str(mine) and "no latency" in str(rl.Link(bandwidth=450e9))
    assert "450 GB/s one way" in repr(mine) and "9 µs" in repr(mine)


def test_a_machine_without_a_link_is_an_error_that_lists_links():
    with pytest.raises(KeyError, match=r"machine 'T4' has no link.*NVLink 4.*Link\(bandwidth="):
        rl.links("T4")
    with pytest.raises(KeyError, match="nearest: NVLink 4"):
        rl.link("nv link 4 SXM")
