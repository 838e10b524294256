"""What servers offer besides pages: robots.txt, and hints about which pages have changed (spec H1 to H5).

site_files       what sitemaps and feeds say of pages
claims           from the dates of a source to rows of the store
pushes           the queue of pushed URLs (IndexNow, WebSub)
push_sources     how reliable each source of pushes is
hint_codec       hints as rows, as arrays of the book, and packed into the record of a visit
"""
