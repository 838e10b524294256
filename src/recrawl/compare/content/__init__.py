"""Tell a page's own content from the frame that belongs to its site (spec C8), and judge changes by it.

- `lines`: the lines of a page, with keys that are equal for equal text
- `places`: the stretches of a page's text, and where elements of the frame and headings begin and end
- `changed_lines`: what differs between two versions, line by line
- `census`: on how many pages of a site each line stands
- `own_history`: lines of one page that tick, and lines that come and go
- `judge`: whether a change is one of content, how much of it, and how significant
"""
