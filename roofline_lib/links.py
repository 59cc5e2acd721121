"""Links between chips: how fast, how late, how many chips they join, and where each figure comes
from. The catalogue is data/links.toml.

A bandwidth is always one way. Data sheets add up both ways ("900 GB/s" is 450 there and 450 back),
networks print bits one way ("400 Gbit/s" is 50 GB/s).
"""

from dataclasses import dataclass
from functools import cache

from roofline_lib.arguments import UnknownName, name_key, number, size, unknown
from roofline_lib.machines import Machine, as_machine
from roofline_lib.quantities import quantity
from roofline_lib.tables import read_table

TOPOLOGIES = ("switch", "mesh", "torus")


@dataclass(frozen=True)
class Link:
    """What joins one chip to the others.

    `bandwidth` (byte/s) is one way and of one connection: of the port to a switch, or of the cable
    to one neighbour. `latency` (s) is what one message costs before its first byte arrives; 0
    leaves it out. A chip has `ports` such connections, and the link joins `domain` chips (None: no
    limit). `topology` is "switch" (each chip reaches each at full speed), "mesh" (a cable to each
    other chip) or "torus" (two cables an axis, one to each neighbour). `line_rate` is what crosses
    one connection with coding and checks, where it is known. Errors: ValueError that names the
    argument.
    """

    bandwidth: float
    latency: float = 0.0
    name: str = "link made by hand"
    topology: str = "switch"
    ports: int = 1
    domain: int | None = None
    line_rate: float | None = None
    kind: str = ""
    source: str = "given by hand"
    status: str = ""
    conflicts: tuple[str, ...] = ()

    def __post_init__(self):
        checked = {
            "bandwidth": number("bandwidth", self.bandwidth, "byte/s", above=0, single=True),
            "latency": number("latency", self.latency, "s", least=0, single=True),
            "ports": int(size("ports", self.ports, "connections", single=True)),
        }
        if self.domain is not None:
            checked["domain"] = int(size("domain", self.domain, "chips", single=True))
        if self.line_rate is not None:
            checked["line_rate"] = number(
                "line_rate", self.line_rate, "byte/s", above=0, single=True
            )
        if not isinstance(self.topology, str) or self.topology not in TOPOLOGIES:
            raise unknown("topology", self.topology, TOPOLOGIES)
        for field, value in checked.items():
            object.__setattr__(self, field, value)

    @property
    def total_bandwidth(self) -> float:
        """Byte/s one way over all connections of one chip together."""
        return self.ports * self.bandwidth

    @property
    def half_bandwidth_bytes(self) -> float:
        """Bytes of a message that takes as long on the wire as its latency: smaller ones mostly
        wait, and at this size half of the bandwidth is reached."""
        return self.latency * self.bandwidth

    def __repr__(self):
        several = f"{self.ports} x " if self.ports > 1 else ""
        late = f", {quantity(self.latency, 's')} a message" if self.latency else ", no latency"
        joined = f", joins {self.domain:,}" if self.domain else ""
        speed = f"{several}{quantity(self.bandwidth, 'byte/s')} one way"
        return f"{self.name} ({self.topology}): {speed}{late}{joined}"


def link(name: str) -> Link:
    """The link of that name; case, spaces and hyphens do not matter. UnknownName lists the
    nearest."""
    known = {name_key(found): found for found in _catalogue()}
    if not isinstance(name, str) or name_key(name) not in known:
        raise unknown("link", name, _catalogue())
    return _catalogue()[known[name_key(name)]]


def links(machine: Machine | str) -> list[Link]:
    """The links of a machine (or of its name), the one between chips first, then the bus.

    UnknownName where the catalogue has none: there is never a silent default.
    """
    name = as_machine(machine).name
    found = [_catalogue()[one] for one, table in _tables().items() if name in table["machines"]]
    if not found:
        raise UnknownName(
            f"machine {name!r} has no link in the catalogue; choose a link from "
            f"{', '.join(_catalogue())}, or make one: Link(bandwidth=..., latency=...)"
        )
    return found


def link_names() -> list[str]:
    """The names in the catalogue."""
    return list(_catalogue())


def as_link(given: Link | str) -> Link:
    """A Link as it is, or the one of that name."""
    if isinstance(given, Link):
        return given
    if isinstance(given, str):
        return link(given)
    raise ValueError(f"link must be a Link or the name of one; got {given!r}")


@cache
def _tables():
    return read_table("data/links.toml")


@cache
def _catalogue():
    fields = set(Link.__dataclass_fields__) - {"name", "conflicts"}
    return {
        name: Link(
            name=name,
            conflicts=tuple(table.get("conflicts", ())),
            **{key: value for key, value in table.items() if key in fields},
        )
        for name, table in _tables().items()
    }
