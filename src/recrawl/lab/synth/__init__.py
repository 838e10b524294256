"""A living web from a seed: `SyntheticWorld` says what it is like, `write` makes an archive of it.

    world.py     the parameters, each with a default and a line of help
    kinds.py     news, documentation, shop, blog, university: how the kinds of site differ
    rhythm.py    day and week: when things happen
    words.py     a vocabulary and prose
    plan.py      which pages a site has
    changes.py   when they are born, change and go
    template.py  what is common to a site's pages: head, menu, sidebar, footer
    body.py      what is a page's own: blocks of text, and how they are edited
    history.py   a site's pages, version by version
    generate.py  sites into record batches, and into a file

Each site has its own stream of random numbers, so site 3 is the same in a world of five sites and of fifty.
"""

from recrawl.lab.synth.generate import generate, hosts, write
from recrawl.lab.synth.site_kinds import KINDS, Kind
from recrawl.lab.synth.world import PARAMETERS, Parameter, SyntheticWorld

__all__ = ["KINDS", "PARAMETERS", "Kind", "Parameter", "SyntheticWorld", "generate", "hosts", "write"]
