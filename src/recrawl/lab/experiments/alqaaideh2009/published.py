"""What Q prints: tables 4.1 and 4.2 and the example of §2.5.4.

Q = Al-Qaaideh 2009. Percentages are as printed. Inconsistencies, and how they are resolved here:

- www.nitc.gov.jo has 9.09 % in table 4.1 and 0.09 % in table 4.2. All ten estimates of it are 0.00, which 21 days of
  samples of a site at 9.09 % could hardly give, so table 4.2 is taken to be right.
- Every estimate of the greedy policy is a whole percentage divided by 21, and every one of frequency-greedy a whole
  percentage divided by 20 (to the printed digits). So they are means over 21 and 20 days. A policy that uses V
  comparisons per page starts V - 1 days later, which fits V = 2. Q does not print V.
- The greedy policy with 10 pages has 6.33 % for two sites on which nothing changed, which no sample can show.
"""

from __future__ import annotations

from typing import NamedTuple


class PublishedSite(NamedTuple):
    """A row of tables 4.1 and 4.2. Estimates are for 10, 25, 50, 75 and 100 sampled pages per day."""

    name: str
    pages: int
    rate: float
    """Table 4.1: percentage of pages changed from one day to the next."""
    rate_in_4_2: float
    greedy: tuple[float, ...]
    frequency_greedy: tuple[float, ...]


NONE = (0.0, 0.0, 0.0, 0.0, 0.0)
SITES = (
    PublishedSite("www.alarabiya.net", 528, 3.27, 3.27, (0.0, 0.57, 0.0, 1.57, 5.19), (0.0, 0.0, 1.2, 5.75, 4.4)),
    PublishedSite(
        "www.alaswaq.net", 223, 25.77, 25.77, (7.52, 35.19, 29.24, 16.1, 23.19), (2.5, 36.5, 25.7, 25.25, 23.85)
    ),
    PublishedSite("www.alzaytoonah.edu.jo", 38, 2.22, 2.23, (0.0, 0.0, 2.38, 0.0, 0.0), (0.0, 0.0, 0.6, 2.65, 2.5)),
    PublishedSite(
        "www.jordandaily.com", 20, 81.95, 81.95, (11.67, 76.43, 74.76, 75.52, 76.24), (4.4, 78.2, 74.6, 75.25, 75.25)
    ),
    PublishedSite("www.jordanislamicbank.com", 45, 0.0, 0.0, (6.33, 0.0, 0.0, 0.0, 0.0), NONE),
    PublishedSite("www.madabacity.gov.jo", 9, 0.0, 0.0, (6.33, 0.0, 0.0, 0.0, 0.0), NONE),
    PublishedSite("www.moe.gov.jo", 110, 1.54, 1.55, (1.19, 1.19, 0.57, 1.57, 1.52), (0.0, 6.25, 3.5, 0.85, 2.7)),
    PublishedSite(
        "www.mutah.edu.jo", 94, 43.59, 43.59, (2.38, 37.9, 39.29, 40.19, 45.52), (2.5, 38.7, 42.55, 42.65, 43.35)
    ),
    PublishedSite("www.nitc.gov.jo", 73, 9.09, 0.09, NONE, NONE),
)
PAGES = 1140
"""The total that §4.2 prints, equal to the sum of table 4.1."""

SAMPLES = (10, 25, 50, 75, 100)
DAYS = 21
"""Every page was crawled daily for three weeks (§4.2)."""

AVERAGE_ACCURACY = {
    "greedy": (83.52, 97.11, 97.84, 97.38, 98.39),
    "frequency-greedy": (83.44, 96.70, 98.42, 98.68, 98.72),
}
"""The last row of table 4.2: 100 - |real - estimated|, mean over the sites."""

EXAMPLE = {"proportional": 48, "greedy": 56}
"""§2.5.4: changed pages found by the 80 downloads that remain after the samples."""
EXAMPLE_PAGES = (100, 100)
EXAMPLE_SAMPLED = (10, 10)
EXAMPLE_CHANGED = (7, 4)
EXAMPLE_DOWNLOADS = 100
