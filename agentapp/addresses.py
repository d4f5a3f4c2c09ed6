"""Which network addresses may be reached: those of the public internet, and inner ones of hosts that an admin allowed.

A name is resolved once; every address it has is checked, and only what was checked is connected to.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Collection
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

Address = IPv4Address | IPv6Address
Resolver = Callable[[str, int], Awaitable[list[str]]]


class AddressRefused(Exception):
    """The host has an address that must not be reached. The text says which, for people."""


# IPv4 that is not public: IANA's special-purpose registry, multicast and what is reserved.
_SPECIAL = [
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/3",
    )
]
# IPv6 is the other way round: only global unicast is public. So every form that wraps an IPv4 address (mapped,
# compatible, NAT64 and local NAT64) is outside, and the tunnels inside (Teredo, 6to4) and documentation are taken out.
_GLOBAL = IPv6Network("2000::/3")
_NOT_GLOBAL = [IPv6Network(network) for network in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")]

# What an admin can open by naming the host; never the addresses where clouds hand out credentials.
_INNER: list[IPv4Network | IPv6Network] = [
    IPv4Network("10.0.0.0/8"),
    IPv4Network("100.64.0.0/10"),
    IPv4Network("127.0.0.0/8"),
    IPv4Network("172.16.0.0/12"),
    IPv4Network("192.168.0.0/16"),
    IPv6Network("::1/128"),
    IPv6Network("fc00::/7"),
]
_METADATA = {ip_address("100.100.100.200"), ip_address("fd00:ec2::254"), ip_address("fd20:ce::254")}


def is_public(address: Address) -> bool:
    """An address of the public internet, not wrapped in any other form."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _SPECIAL)
    return address in _GLOBAL and not any(address in network for network in _NOT_GLOBAL)


def is_inner(address: Address) -> bool:
    """An address of the own machine or network, which a host may have that an admin has allowed."""
    return address not in _METADATA and any(address in network for network in _INNER)


async def vetted(host: str, port: int, allowed: Collection[str] = (), resolve: Resolver | None = None) -> list[str]:
    """The host's addresses, each of them checked. `allowed` holds "host" or "host:port" in lower case.

    Raises AddressRefused when one of them is neither public nor allowed, OSError when the name is unknown.
    """
    found = await (resolve or look_up)(host, port)
    name = host.lower().rstrip(".")
    may_be_inner = name in allowed or f"{name}:{port}" in allowed
    for text in found:
        address = ip_address(text)
        if not (is_public(address) or (may_be_inner and is_inner(address))):
            where = name if name == text else f"{name} ({text})"
            hint = "" if may_be_inner else "; an administrator can allow hosts of the inner network by name"
            raise AddressRefused(f"{where} is not an address of the public internet{hint}.")
    if not found:
        raise OSError(f"{host} has no address.")
    return found


async def look_up(host: str, port: int) -> list[str]:
    """What the system's resolver says, which also reads addresses in all their spellings (0x7f.1, 2130706433)."""
    rows = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(row[4][0]) for row in rows))
