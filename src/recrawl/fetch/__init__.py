"""Download pages, politely and safely (spec K2, K5, A3).

    http         many downloads at once through libcurl, each with its limits, its socket, its headers
    fetcher      what the crawler gives a fetcher and needs of it, and what a database can hold of an answer
    access       headers, cookies, passwords and proxies of each site
    cookies      the cookies of one site
    lanes        when each server may get its next request, and the Retry-After header
    robots       what robots.txt allows
    ip_filter    IP addresses that are never connected to

Only `http` touches the network and the clock; the others are functions of their arguments, so that every
rule of politeness can be tested without waiting.
"""
