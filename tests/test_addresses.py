"""Which addresses may be reached, in every spelling that a resolver or a client understands."""

import ipaddress
from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentapp.addresses import AddressRefused, is_inner, is_public, vetted

PUBLIC = ["1.1.1.1", "8.8.8.8", "93.184.216.34", "172.15.255.255", "172.32.0.1", "100.63.255.255", "100.128.0.1"]
PUBLIC += ["2606:4700:4700::1111", "2a00:1450:4001:81b::200e", "2001:4860:4860::8888", "223.255.255.254"]

# Each is refused, however it is written. Those that only a resolver reads are resolved by the system.
_TEXT = """
127.0.0.1 127.0.0.2 127.255.255.255 127.1 127.0.1 0x7f.1 0x7f000001 0x7F.0.0.1 2130706433 017700000001 0177.0.0.1
0177.1 0300.0250.1 0 0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 0xa000001 100.64.0.1 100.127.255.255 100.100.100.200
169.254.169.254 0xa9fea9fe 2852039166 0251.0376.0251.0376 169.254.0.1 172.16.0.1 172.31.255.255 192.0.0.1
192.0.0.192 192.0.2.1 192.88.99.1 192.168.0.1 192.168.1 198.18.0.1 198.19.255.255 198.51.100.7 203.0.113.7 224.0.0.1
239.255.255.255 240.0.0.1 255.255.255.255 :: ::1 0:0:0:0:0:0:0:1 ::ffff:127.0.0.1 ::ffff:7f00:1
0:0:0:0:0:ffff:7f00:0001 ::ffff:169.254.169.254 ::ffff:a9fe:a9fe ::ffff:8.8.8.8 ::127.0.0.1 ::8.8.8.8 ::7f00:1
64:ff9b::127.0.0.1 64:ff9b::a9fe:a9fe 64:ff9b::8.8.8.8 64:ff9b:1::a9fe:a9fe 64:ff9b:1:ffff::1 2002:7f00:1::
2002:a9fe:a9fe::1 2002:808:808:: 2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:10::1 2001:20::1 2001:db8::1
3fff::1 fe80::1 fec0::1 fc00::1 fd00::1 fd00:ec2::254 ff02::1 ff0e::1 100::1 5f00::1 4000::1
"""
SPELLINGS = _TEXT.split()


@pytest.mark.parametrize("spelling", SPELLINGS)
async def test_what_is_not_public_is_refused_in_every_spelling(spelling: str) -> None:
    with pytest.raises(AddressRefused):
        await vetted(spelling, 80)


@pytest.mark.parametrize("address", PUBLIC)
async def test_public_addresses_are_allowed(address: str) -> None:
    assert await vetted(address, 443) == [address]


async def test_localhost_is_refused_by_its_name() -> None:
    with pytest.raises(AddressRefused, match="localhost"):
        await vetted("localhost", 80)


async def test_one_forbidden_address_among_public_ones_is_enough() -> None:
    async def both(host: str, port: int) -> list[str]:
        return ["93.184.216.34", "10.0.0.1"]

    with pytest.raises(AddressRefused, match=r"10\.0\.0\.1"):
        await vetted("api.example.org", 443, (), both)


@pytest.mark.parametrize("allowed", ["wiki.internal", "wiki.internal:8080"])
async def test_an_allowed_host_may_be_inside(allowed: str) -> None:
    async def inside(host: str, port: int) -> list[str]:
        return ["10.0.0.1", "fd12::1"]

    assert await vetted("Wiki.internal.", 8080, {allowed}, inside)
    with pytest.raises(AddressRefused):
        await vetted("other.internal", 8080, {allowed}, inside)


async def test_only_the_allowed_port() -> None:
    with pytest.raises(AddressRefused):
        await vetted("127.0.0.1", 22, {"127.0.0.1:80"})


@pytest.mark.parametrize(
    "address",
    ["169.254.169.254", "100.100.100.200", "fd00:ec2::254", "fe80::1", "::ffff:10.0.0.1", "224.0.0.1", "0.0.0.1"],
)
async def test_being_allowed_does_not_open_the_metadata_of_a_cloud(address: str) -> None:
    async def rebound(host: str, port: int) -> list[str]:
        return [address]

    with pytest.raises(AddressRefused):
        await vetted("wiki.internal", 80, {"wiki.internal"}, rebound)


@given(st.ip_addresses(v=4))
def test_no_ipv4_is_public_that_the_standard_library_calls_special(address: IPv4Address) -> None:
    if is_public(address):
        assert address.is_global and not address.is_multicast
        assert not is_inner(address)


@given(st.ip_addresses(v=6))
def test_no_ipv6_is_public_that_the_standard_library_calls_special(address: IPv6Address) -> None:
    if is_public(address):
        assert address.is_global and not address.is_multicast and not address.is_site_local
        assert address.ipv4_mapped is None and address.sixtofour is None and address.teredo is None


WRAPPERS = ["::ffff:0:0/96", "::/96", "64:ff9b::/96", "64:ff9b:1::/96", "2002::/16", "2001::/32"]


@given(st.ip_addresses(v=4), st.sampled_from([ipaddress.IPv6Network(text) for text in WRAPPERS]))
def test_no_wrapped_address_is_reached(inner: IPv4Address, wrapper: ipaddress.IPv6Network) -> None:
    shift = 80 if wrapper.prefixlen == 16 else 0
    wrapped = IPv6Address(int(wrapper.network_address) | int(inner) << shift)
    assert not is_public(wrapped)
    assert not is_public(ip_address(wrapped.exploded))
