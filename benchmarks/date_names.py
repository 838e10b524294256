"""Write the names of dates and times in many languages: `python -m benchmarks.date_names FOLDER`.

FOLDER has the packages `cldr-dates-full`, `cldr-cal-islamic-full`, `cldr-cal-persian-full`, `cldr-cal-hebrew-full`,
`cldr-cal-buddhist-full` and `cldr-cal-japanese-full` of the Unicode CLDR (`npm pack NAME`, unpacked into folders of
these names; Unicode License 3.0). The result is `recrawl/compare/noise/date_names.json`.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

LANGUAGES = (
    "ar", "bn", "cs", "da", "de", "el", "en", "es", "fa", "fi", "fr", "gu", "he", "hi", "hu", "id", "it", "ja", "ko",
    "mr", "ms", "nl", "no", "pa", "pl", "pt", "ro", "ru", "sv", "ta", "te", "th", "tr", "uk", "ur", "vi", "zh",
    "zh-Hant",
)  # fmt: skip
_CALENDARS = {
    "cldr-cal-islamic-full": ("islamic", ("ar", "fa", "ur", "id", "ms", "tr", "bn")),
    "cldr-cal-persian-full": ("persian", ("fa",)),
    "cldr-cal-hebrew-full": ("hebrew", ("he",)),
    "cldr-cal-buddhist-full": ("buddhist", ("th",)),
    "cldr-cal-japanese-full": ("japanese", ("ja",)),
}
_LATE_ERAS = range(232, 237)
"""Meiji to Reiwa."""
_UNITS = ("second", "minute", "hour", "day", "week", "month", "year")
_BRIEF = _UNITS[:3]
_LENGTHS = ("full", "long", "medium")
_OUTPUT = Path("src/recrawl/compare/noise/date_names.json")


def names(folder: Path, language: str) -> dict[str, list[str]]:
    """The names and forms of one language."""
    dates = _read(folder, "cldr-dates-full", language, "ca-gregorian")["calendars"]["gregorian"]
    months, days, halves = (_named(dates[kind]) for kind in ("months", "days", "dayPeriods"))
    eras = [dates["eras"]["eraAbbr"]["1"]]
    forms = [dates["dateFormats"][length] for length in _LENGTHS]
    for package, (calendar, spoken) in _CALENDARS.items():
        if language in spoken:
            other = _read(folder, package, language, f"ca-{calendar}")["calendars"][calendar]
            months += _named(other["months"])
            forms += [other["dateFormats"][length] for length in _LENGTHS]
            found: dict[str, str] = other["eras"]["eraAbbr"]
            eras += [era for key, era in found.items() if calendar != "japanese" or int(key[:3]) in _LATE_ERAS]
    fields = _read(folder, "cldr-dates-full", language, "dateFields")["fields"]
    ago = {
        unit: [form for kind in (unit, f"{unit}-short") for form in fields[kind]["relativeTime-type-past"].values()]
        for unit in _UNITS
    }
    clocks = [dates["dateTimeFormats"]["availableFormats"][kind] for kind in ("Hms", "Hm", "hms", "hm")]
    found_names = {"months": months, "days": days, "halves": halves, "eras": eras}
    found_names["ago"] = [form for forms in ago.values() for form in forms]
    found_names["ago_brief"] = [form for unit in _BRIEF for form in ago[unit]]
    plain = {kind: sorted({_plain(name) for name in these} - {""}) for kind, these in found_names.items()}
    return plain | {
        "dates": list(dict.fromkeys(map(_plain, forms))),
        "clocks": list(dict.fromkeys(map(_plain, clocks))),
    }


def _read(folder: Path, package: str, language: str, name: str) -> Any:
    path = folder / package / "main" / language / f"{name}.json"
    return json.loads(path.read_text("utf-8"))["main"][language]["dates"]


def _named(kinds: dict[str, dict[str, dict[str, str]]]) -> list[str]:
    """Names in full and abbreviated, inside a date and alone, with `{0}` for a number."""
    return [
        re.sub(r"\d+", "{0}", name)
        for use in ("format", "stand-alone")
        for width in ("wide", "abbreviated")
        for key, name in kinds[use][width].items()
        if not _is_time_of_day(key)
    ]


def _is_time_of_day(key: str) -> bool:
    return key.startswith(("midnight", "noon", "morning", "afternoon", "evening", "night"))


def _plain(form: str | dict[str, str]) -> str:
    """A form with plain spaces, without marks of direction."""
    form = form if isinstance(form, str) else form["_value"]
    return " ".join(form.translate(dict.fromkeys(map(ord, "\u200e\u200f\u061c"))).split())


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    rows = {language.lower(): names(folder, language) for language in LANGUAGES}
    lines = [f'"{language}": {json.dumps(row, ensure_ascii=False)}' for language, row in rows.items()]
    _OUTPUT.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


if __name__ == "__main__":
    main()
