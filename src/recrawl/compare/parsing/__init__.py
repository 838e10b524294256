"""Read a page: bytes to text, text to a tree, a tree to the text that a reader sees.

- `encoding`: bytes to text, by the rules of browsers
- `prescan`: the encoding that a document declares
- `document`: text to a tree, with a guard against pages that would block the parser
- `nesting`: estimate of the parser's work on a page with many tags
- `text`: the visible text of a tree, on one line for digests or by lines for people
- `page_fields`: language, description, image and dates that a page states
- `media_types`: media types that are told apart
- `file_types`: pages that are not HTML: Markdown, JSON, XML, feeds, PDF
"""
