"""Read a page: bytes to text, text to a tree, a tree to the text that a reader sees.

- `encoding`: bytes to text, by the rules of browsers
- `prescan`: the encoding that a document declares
- `document`: text to a tree
- `text`: the visible text of a tree, on one line for digests or by lines for people
- `media_types`: media types that are told apart
- `file_types`: pages that are not HTML: Markdown, JSON, XML, feeds, PDF
"""
