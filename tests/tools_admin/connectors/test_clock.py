from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from tools_admin.connectors.base import ToolError
from tools_admin.connectors.builtin.clock import current_time, describe_time
from tools_admin.connectors.builtin.places import MORE_CITIES, find_zone

NOW = datetime(2026, 1, 31, 23, 30, tzinfo=UTC)


def test_the_line_has_date_time_offset_and_zone():
    assert describe_time("Tokyo", NOW) == "Tokyo: Sunday, 1 February 2026, 08:30 (UTC+09:00, Asia/Tokyo)"
    assert describe_time("St. John's", NOW).endswith("20:00 (UTC-03:30, America/St_Johns)")


def test_the_clock_is_the_real_one():
    there = datetime.now(ZoneInfo("Asia/Kolkata"))
    assert f"{there:%A}, {there.day} {there:%B %Y}" in current_time("Mumbai")


@pytest.mark.parametrize(
    ("place", "zone"),
    [
        ("Europe/Paris", "Europe/Paris"),
        ("europe/paris", "Europe/Paris"),
        ("UTC", "UTC"),
        ("Munich", "Europe/Berlin"),
        ("München", "Europe/Berlin"),
        ("new york", "America/New_York"),
        ("New York, USA", "America/New_York"),
        ("São Paulo", "America/Sao_Paulo"),
        ("Washington, D.C.", "America/New_York"),
        ("Buenos Aires", "America/Argentina/Buenos_Aires"),
        ("Ho Chi Minh City", "Asia/Ho_Chi_Minh"),
        ("Bosnia & Herzegovina", "Europe/Sarajevo"),
        ("Kenya", "Africa/Nairobi"),
    ],
)
def test_zones_cities_and_countries_are_found(place, zone):
    assert find_zone(place) == zone


def test_every_listed_city_is_found_under_its_zone():
    for zone, cities in MORE_CITIES.items():
        for city in cities.split(", "):
            assert find_zone(city) == zone


def test_an_unknown_place_names_similar_ones():
    with pytest.raises(ToolError, match="Tokyo"):
        find_zone("Tokio")
    with pytest.raises(ToolError, match="large city nearby"):
        find_zone("zzqqxxkkjj")


@pytest.mark.parametrize("country", ["USA", "United States", "Brazil", "Canada"])
def test_a_country_with_several_zones_asks_for_a_city(country):
    with pytest.raises(ToolError, match=r"several time zones.*America/"):
        find_zone(country)


@pytest.mark.parametrize("place", ["", "../../etc/passwd", "/etc/localtime", "\x00", "x" * 10_000])
def test_odd_names_are_only_unknown(place):
    with pytest.raises(ToolError) as caught:
        find_zone(place)
    assert len(str(caught.value)) < 500
