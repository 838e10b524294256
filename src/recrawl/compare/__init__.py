"""Decide whether a page has changed, by how much, and whether the change matters.

Pure functions on bytes and text: nothing here does I/O or reads a clock.

- `parsing/`: bytes to text, to a tree, to visible text
- `tree/`: a page as blocks, and what is rendered from them: main content, Markdown, chunks, fields
- `content/`: what of a page is its own and what belongs to the site; judges changes by it
- `noise/`: what must not count as change (spec C8), and suggestions of such filters
- `levels`: what counts as a change: text, content, significant, divergence, relevance
- `digest`: digests of texts and payloads (spec C1)
- `chunks`: the content of a page in chunks for retrieval
- `unframed`: the texts of a page outside the frame of its site, by which copies are known
- `terms`: word counts of many texts as a sparse matrix
- `significance`: the chi-squared test on word counts (spec C2)
- `divergence`: how much two texts differ, 0 to 1 (spec C7)
- `change_prior`: how often a page is likely to change, by its first download
- `common_ends`: what two versions share at their start and end
- `diff`: a unified diff with marked words (spec C7)
- `pictures`: where two screenshots differ
- `edits`: the shortest edit script behind the diff, with a bound on its work
- `gone`: when a page counts as gone (spec C5)
- `validators`: which servers' Last-Modified and ETag are trusted (spec C6)
"""
