"""Rendering: pages that need JavaScript, as Chromium shows them (the extra `browser`).

The browser has no network. Each of its requests comes to the crawler, which answers it with the page or with a
requisite: from the archive, or by a request through the same lanes and under the same rules as any other. What a page
shows after its scripts have run is kept beside the plain answer, and is what text, links and changes are read from.

messages   what the crawler and the render process send each other
process    the render process: Chromium through Playwright, one page at a time
stage      the browser of a run, and what a site's pages have shown in it
"""
