"""Download pages, politely and safely (spec K2, K5, A3).

    http         many downloads at once through libcurl
    fetcher      what the crawler gives a fetcher and needs of it
    bounded_answers  what is left of an answer that no database could hold
    transfer     one download: its limits, its socket, its headers
    access       headers, cookies, passwords and proxies of each site
    cookies      the cookies of one site
    lanes        when each server may get its next request
    ranked_queue a queue whose order changes while items wait
    retry_after  the Retry-After header
    robots       what robots.txt allows
    ip_filter    IP addresses that are never connected to

Only `http` and `transfer` touch the network and the clock; the others are functions of their arguments, so that every
rule of politeness can be tested without waiting.
"""
