"""One visit, from the policy's choice to its record.

The way of a page in a refresh cycle:

     1. `cycles.cycle`               opens or resumes the cycle and loads the book
     2. `loop.run_cycle`, `drive`    the policy chooses pages
     3. `LiveCrawl.visit`            tells the machine of them, and runs the event loop until all have an outcome
     4. `VisitMachine`, PagesChosen  each page waits in the lane of its server (`fetch.lanes`)
     5. NextTurn -> ReadRow          its turn: the row of the store (`Prefetch`)
     6. RowRead -> SendRequest       robots.txt, limits, validators: it is requested (`fetch.http`)
     7. AnswerCame -> ParseThing     a new version goes to a reader process; anything else ends here (9)
     8. ThingParsed -> RecordVisit   the brake for shared texts, trust in the server's validators
     9. `LiveCrawl._record_visit`    links (`Discovery`), the judgement of lines (`SiteFrames`), rows (`VisitRows`)
    10. `Recorder.add`               gathers the rows in a batch
    11. VisitRecorded                its outcome is kept for the policy
    12. `Recorder.commit`            archive, store, index, in this order (`record.storage`)
    13. `loop.drive`                 sends the outcomes to the policy, which chooses again (2)
    14. `loop.note`                  after the cycle, the policy learns from the recorded visits

Modules:

    machine          `VisitMachine`: what may happen to everything under way, without I/O
    live             `LiveCrawl`: carries out what the machine says; the event loop and its jobs
    results          the rows that record a visit, by what it found
    redirects        the pages that redirects lead to
    shared_text      the brake for sites whose pages suddenly show one text
    discovery        from links and sitemap entries to pages
    servers          state of each server: robots.txt, trust in its validators, redirect habits
    recorder         batches of results, and their commit
    reader_pool      the reader processes, each page with a deadline
    reader_process   what a reader process does: parse, compare, build WARC records
    reread           reads stored pages again, in reader processes
    messages         what is sent to reader processes and back
    stored_text      the text of stored pages
"""
