"""The state of a cycle: the book, the policy's memory and the limits, loaded from and saved to the repository.

load_book       the book as it was when the cycle began
policy_memory   what a policy has learned, folded over recorded visits
book_columns    directories, links, clusters and hints, for policies that need them
clusters        clusters of similar pages
frontier        the order of a crawl
rechecks        when pages that are gone or have moved are visited again
copies          groups of copies, and which of them are worth a visit
site_frames     the frame of each site: the lines that its pages share
deliveries      which outcomes a cycle has sent to its policy with which batch
limits          what a cycle may spend: visits and bytes, by site
rescope         drops and adds pages after the user has changed the scopes
known_pages     the pages of all known URLs, also of those stored in an older spelling
reindex         brings the full-text index up to date
array_files     files of named arrays, written atomically
"""
