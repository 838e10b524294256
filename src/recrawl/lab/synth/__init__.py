"""A generator of synthetic web sites: `SyntheticWorld` holds the parameters, `write` writes an archive.

- `world`: the parameters, each with a default and a line of help; kinds of site
- `page_versions`: the plan of a site, and its pages, version by version
- `generate`: sites to record batches, and to a file
- `adversaries`: sites that take what belongs to the others, beside those of a history

Each site has its own random stream, so site 3 is the same in a world of five sites and of fifty.
"""

from recrawl.lab.synth.generate import generate, hosts, write
from recrawl.lab.synth.world import KINDS, PARAMETERS, Kind, Parameter, SyntheticWorld

__all__ = ["KINDS", "PARAMETERS", "Kind", "Parameter", "SyntheticWorld", "generate", "hosts", "write"]
