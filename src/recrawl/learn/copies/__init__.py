"""One page, many addresses: which pages are copies of which, and which address stands for them.

- `sketch`: 16 bytes for the content of a page, and how much of it two pages share
- `variants`: URLs that often name one page: http and https, www, print views, `index.html`
- `groups`: groups of copies, claims by their record, and the representative of each group
- `parameters`: parameters of URLs that never change a page
- `missing`: pages that say that they are not there, although the server says that they are
- `absent`: what sites answer for addresses that cannot exist
"""
