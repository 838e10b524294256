"""The live crawler: begins, resumes and ends crawls and cycles on a repository.

cycles        `crawl` and `cycle`, the two entry points
given_pages   pages that are given to a run: seeds, links from other shards
importer      URLs and page histories from elsewhere, recorded as if visited
outside       visits made by another program, for a policy's choice or for its own
options       everything a run can be configured with, as plain values
tally         counts of a run, for progress and summaries
visits/       one visit, from its turn in the queue to its record (its way is listed there)
login/        form logins of sites, and the sessions that they give
hints         what servers offer besides pages: robots.txt, sitemaps, feeds, pushes
requisites/   stylesheets, images, fonts and scripts of pages
render/       pages that need JavaScript, as Chromium shows them
state/        the book and the policy's memory, loaded from and saved to the repository
reports/      questions about a repository: rates, predictions, plans, summaries
"""
