"""Decide whether a page has changed, by how much, and whether the change matters.

Pure functions on bytes and text: nothing here does I/O or reads a clock.

- `encoding`: bytes to text, by the rules of browsers
- `prescan`: the encoding that a document declares
- `document`: text to a tree, with a guard against pages that would block the parser
- `nesting`: estimate of the parser's work on a page with many tags
- `text`: the visible text of a tree, on one line for digests or by lines for people
- `content`: what of a page is its own and what belongs to the site; judges changes by it
- `noise`: what must not count as change (spec C8), and suggestions of such filters
- `levels`: what counts as a change: text, content, significant, divergence, relevance
- `digest`: digests of texts and payloads (spec C1)
- `chunks`: the content of a page in chunks for retrieval
- `words`: the words of a text
- `terms`: word counts of many texts as a sparse matrix
- `significance`: the chi-squared test on word counts (spec C2)
- `divergence`: how much two texts differ, 0 to 1 (spec C7)
- `diff`: a unified diff with marked words (spec C7)
- `edits`: the shortest edit script behind the diff, with a bound on its work
- `gone`: when a page counts as gone (spec C5)
- `validators`: which servers' Last-Modified and ETag are trusted (spec C6)
"""
