"""The structure of sites: directories, links, anchors and clusters of similar pages.

- `directories`: sites and directories from URLs, and groups of pages by directory
- `neighbours`: pages within a distance of given pages, by directory, link or cluster; which new pages come first
- `pagerank`: PageRank of the pages
- `anchor`: the page of each site that links its newest documents; `depth`: distances from it
- `clusters`: clusters of similar pages, built from `page_features` and `topics` by `bisection`
"""
