"""Stored pages as they looked: the archive as a small web of its own, without scripts and without the live web.

lookup    what the archive holds of a URL, at the time of a version; text that another version lacks is marked
inert     a page or stylesheet whose URLs lead to the archive alone, without anything that runs

`serve.replay` sends the result in a sandbox; nothing here relies on that, and the sandbox does not rely on this.
"""
