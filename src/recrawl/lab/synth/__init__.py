"""A generator of synthetic web sites: `SyntheticWorld` holds the parameters, `write` writes an archive.

- `world`: the parameters, each with a default and a line of help
- `site_kinds`: how news, documentation, shop, blog and university sites differ
- `vocabulary`: a vocabulary and prose
- `site_plan`: the directories and pages of a site
- `changes`: when pages are born, change and are removed; the rhythm of days and weeks
- `template`: what the pages of a site share: head, menu, sidebar, footer
- `body`: a page's own blocks of text, and their edits
- `page_versions`: a site's pages, version by version
- `generate`: sites to record batches, and to a file
- `adversaries`: sites that take what belongs to the others, beside those of a history

Each site has its own random stream, so site 3 is the same in a world of five sites and of fifty.
"""

from recrawl.lab.synth.generate import generate, hosts, write
from recrawl.lab.synth.site_kinds import KINDS, Kind
from recrawl.lab.synth.world import PARAMETERS, Parameter, SyntheticWorld

__all__ = ["KINDS", "PARAMETERS", "Kind", "Parameter", "SyntheticWorld", "generate", "hosts", "write"]
