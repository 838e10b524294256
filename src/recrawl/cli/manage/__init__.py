"""Commands that create a repository, say what it tracks and verify it.

init, add, rm, config, tag   create a repository, say what it tracks, and tag pages
access                       how to get in to sites
imports, exports, chunks     import, export and chunks
sink                         deliver changes to other systems
check                        verify and repair
erase                        take pages out, with all traces of them
move                         move the facts to PostgreSQL or back
completion                   shell completion
"""
