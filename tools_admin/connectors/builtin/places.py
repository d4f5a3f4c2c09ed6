"""Names of places and their time zones: the zone database itself, plus well-known cities that it does not name."""

from __future__ import annotations

import unicodedata
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from zoneinfo import available_timezones

from tools_admin.connectors.base import ToolError

# Large or often asked-for cities without a zone of their own, under the zone that they live by.
MORE_CITIES = {
    "America/New_York": "Atlanta, Baltimore, Boston, Charlotte, Cleveland, Miami, New York City, NYC, Orlando,"
    " Philadelphia, Pittsburgh, Washington, Washington DC",
    "America/Chicago": "Austin, Dallas, Houston, Kansas City, Memphis, Milwaukee, Minneapolis, Nashville, New Orleans,"
    " Saint Louis, San Antonio, St Louis",
    "America/Denver": "Albuquerque, El Paso, Salt Lake City",
    "America/Los_Angeles": "LA, Las Vegas, Oakland, Palo Alto, Portland, Sacramento, San Diego, San Francisco,"
    " San Jose, Seattle, Silicon Valley",
    "America/Toronto": "Ottawa, Quebec, Quebec City",
    "America/Edmonton": "Calgary",
    "America/Mexico_City": "Guadalajara, Puebla",
    "America/Sao_Paulo": "Belo Horizonte, Brasilia, Curitiba, Porto Alegre, Rio, Rio de Janeiro",
    "America/Bogota": "Cali, Cartagena, Medellin",
    "America/Guayaquil": "Quito",
    "America/Lima": "Cusco",
    "America/Santiago": "Valparaiso",
    "Europe/London": "Birmingham, Bristol, Cambridge, Cardiff, Edinburgh, England, Glasgow, Great Britain, Leeds,"
    " Liverpool, Manchester, Oxford, Scotland, Sheffield, UK, United Kingdom, Wales",
    "Europe/Dublin": "Cork, Galway, Republic of Ireland",
    "Europe/Berlin": "Bonn, Bremen, Cologne, Dortmund, Dresden, Duesseldorf, Dusseldorf, Essen, Frankfurt, Freiburg,"
    " Germany, Hamburg, Hannover, Hanover, Heidelberg, Koeln, Koln, Leipzig, Muenchen, Munchen, Munich, Nuernberg,"
    " Nuremberg, Stuttgart",
    "Europe/Paris": "Bordeaux, Lille, Lyon, Marseille, Nantes, Nice, Strasbourg, Toulouse",
    "Europe/Madrid": "Barcelona, Bilbao, Malaga, Mallorca, Palma, Sevilla, Seville, Spain, Valencia",
    "Europe/Lisbon": "Lisboa, Porto, Portugal",
    "Europe/Rome": "Bologna, Florence, Genoa, Milan, Milano, Naples, Palermo, Roma, Turin, Venice, Verona",
    "Europe/Zurich": "Basel, Bern, Geneva, Lausanne",
    "Europe/Vienna": "Graz, Innsbruck, Linz, Salzburg, Wien",
    "Europe/Brussels": "Antwerp, Bruges, Ghent",
    "Europe/Amsterdam": "Eindhoven, Rotterdam, The Hague, Utrecht",
    "Europe/Copenhagen": "Aarhus",
    "Europe/Stockholm": "Gothenburg, Malmo",
    "Europe/Oslo": "Bergen, Trondheim",
    "Europe/Helsinki": "Espoo, Tampere",
    "Europe/Warsaw": "Gdansk, Krakow, Lodz, Poznan, Wroclaw",
    "Europe/Prague": "Brno",
    "Europe/Athens": "Thessaloniki",
    "Europe/Istanbul": "Ankara, Antalya, Izmir",
    "Europe/Moscow": "Russian capital, Saint Petersburg, St Petersburg",
    "Europe/Kyiv": "Kharkiv, Lviv, Odesa, Odessa",
    "Africa/Cairo": "Alexandria",
    "Africa/Casablanca": "Fes, Marrakech, Marrakesh, Rabat",
    "Africa/Johannesburg": "Cape Town, Durban, Pretoria",
    "Africa/Lagos": "Abuja",
    "Africa/Nairobi": "Mombasa",
    "Asia/Dubai": "Abu Dhabi, Emirates, UAE",
    "Asia/Riyadh": "Jeddah, Mecca, Medina",
    "Asia/Qatar": "Doha",
    "Asia/Jerusalem": "Haifa",
    "Asia/Karachi": "Islamabad, Lahore",
    "Asia/Kolkata": "Ahmedabad, Bangalore, Bengaluru, Bombay, Chennai, Delhi, Goa, Hyderabad, Jaipur, Madras, Mumbai,"
    " New Delhi, Pune",
    "Asia/Ho_Chi_Minh": "Da Nang, Hanoi, Ho Chi Minh City, Vietnam",
    "Asia/Bangkok": "Chiang Mai, Phuket",
    "Asia/Jakarta": "Bandung, Surabaya",
    "Asia/Makassar": "Bali, Denpasar",
    "Asia/Manila": "Cebu, Quezon City",
    "Asia/Shanghai": "Beijing, China, Chengdu, Guangzhou, Hangzhou, Nanjing, Peking, Shenzhen, Tianjin, Wuhan, Xian",
    "Asia/Seoul": "Busan, Incheon, Korea",
    "Asia/Tokyo": "Fukuoka, Hiroshima, Kobe, Kyoto, Nagoya, Osaka, Sapporo, Yokohama",
    "Australia/Brisbane": "Cairns, Gold Coast",
    "Pacific/Auckland": "Christchurch, Wellington",
    "Pacific/Honolulu": "Hawaii",
}


def find_zone(place: str) -> str:
    """The IANA zone of a zone name, city or country; raises `ToolError` with the nearest names when there is none."""
    names = zone_names()
    for candidate in (place, place.split(",")[0]):
        if zone := names.get(normalise(candidate)):
            return zone
    if zones := _countries().get(normalise(place)):
        raise ToolError(f"{place} has several time zones: name a city or one of {', '.join(zones)}.")
    nearest = get_close_matches(normalise(place[:80]), names, n=5, cutoff=0.6)
    hint = f"Similar names: {', '.join(name.title() for name in nearest)}." if nearest else "Name a large city nearby."
    raise ToolError(f"No time zone is known for {place[:80]!r}. {hint}")


@cache
def zone_names() -> dict[str, str]:
    """Normalised name → zone: zones, their cities, countries with one zone, and the cities above.

    Where names collide the later source wins, so that places have their zone's present name and not an older link.
    """
    zones = sorted(zone for zone in available_timezones() if zone not in ("Factory", "localtime"))
    present = [zone for zones in _countries().values() for zone in zones]
    names = {zone: zone for zone in zones}
    names |= {_city(zone): zone for zone in [*zones, *present] if "/" in zone and not zone.startswith(("Etc/", "US/"))}
    names |= {country: zones[0] for country, zones in _countries().items() if len(zones) == 1}
    names |= {city: zone for zone, listed in MORE_CITIES.items() for city in listed.split(", ")}
    return {normalise(name): zone for name, zone in names.items()}


def _city(zone: str) -> str:
    return zone.rpartition("/")[2]


@cache
def _countries() -> dict[str, list[str]]:
    """Country → its zones, from the tables that come with the zone database."""
    data = files("tzdata.zoneinfo")
    names = dict(_rows(data.joinpath("iso3166.tab").read_text(encoding="utf-8")))
    countries: dict[str, list[str]] = {}
    for code, _, zone, *_ in _rows(data.joinpath("zone.tab").read_text(encoding="utf-8")):
        countries.setdefault(normalise(names[code]), []).append(zone)
    for name in ("usa", "us", "america"):
        countries[name] = countries["united states"]
    return countries


def _rows(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.splitlines() if line and not line.startswith("#")]


def normalise(name: str) -> str:
    """Case, accents, punctuation and underscores do not matter in a place's name."""
    plain = unicodedata.normalize("NFKD", name.replace("ß", "ss")).encode("ascii", "ignore").decode()
    return " ".join(plain.casefold().replace("_", " ").replace("-", " ").replace(".", "").replace("'", "").split())
