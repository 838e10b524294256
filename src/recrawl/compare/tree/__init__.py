"""The content tree of a page, and everything that is rendered from it.

- `blocks`: the tree: blocks with inline content, containers and the elements around them
- `builder`: the tree of an HTML page
- `documents`: the tree of any page: HTML, Markdown, feeds, PDF, JSON, text
- `main_content`: which blocks are content and which belong to the frame
- `renderers`: blocks as plain text and as Markdown
- `chunks`: blocks in chunks for retrieval
- `stated`, `fields`: what a page says about itself: structured data, title, author, dates, language
"""
