"""Stored pages as they looked: the archive as a small web of its own, without scripts and without the live web.

lookup    what the archive holds of a URL, at the time of a version
inert     a page or stylesheet whose URLs lead to the archive alone, without anything that runs
marking   the text of one version that another one lacks, marked in the page

`serve.replay` sends the result in a sandbox; nothing here relies on that, and the sandbox does not rely on this.
"""
