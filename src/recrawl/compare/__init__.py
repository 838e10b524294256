"""Has a page changed, how much, and does it matter? Pure functions from bytes and text to a judgement.

    encoding      bytes to text, by the rules that browsers follow
    document      text to a tree, with a guard against pages made to hold the parser
    nesting       how much work a tag-heavy page would be for the parser
    text          the tree's visible text: folded for the digest, by lines for people
    noise         what must not count as change (spec C8), and proposals of such filters
    filters       the filter value itself
    candidates    where those proposals come from
    digest        names for texts and payloads (spec C1)
    terms         words and word counts
    significance  the chi-squared test on word counts (spec C2)
    divergence    how much two texts differ, 0..1 (spec C7)
    diff          what changed, for people (spec C7)
    edits         the shortest edit script behind it, with a bound on its work
    gone          when a page is believed to be gone (spec C5)
    validators    which servers' Last-Modified and ETag are believed (spec C6)

Nothing here does I/O or reads a clock.
"""
