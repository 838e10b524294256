"""The structure of sites: directories, links, anchors and clusters of similar pages.

- `directories`: sites and directories from URLs, and groups of pages by directory
- `neighbours`: pages within a distance of given pages, by directory, link or cluster
- `pagerank`: PageRank of the pages; `frontier_rank`: which new pages a crawl visits first
- `anchor`: the page of each site that links its newest documents; `depth`: distances from it
- `clusters`: clusters of similar pages, built from `page_features` and `topics` by `bisection`
- `cluster_arrays`: clusters as named arrays, for storage
"""
