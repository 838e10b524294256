"""One visit, from the policy's choice to its record.

The journey of a page in a refresh cycle:

     1. `cycles.cycle`              opens or resumes the cycle and loads the book
     2. `loop.run_cycle`, `drive`   the policy chooses pages
     3. `LiveWeb.visit`             looks up their sites and runs the event loop until all have an outcome
     4. `Journey.enqueue`           each page waits in the lane of its server (`fetch.lanes`)
     5. `Journey.start`             its turn: row of the store (`Prefetch`), robots.txt, page limit, validators
     6. `Client.start`, `wait`      the request and its answer (`fetch.http`)
     7. `Journey.answered`          resolves a redirect (`Redirects.resolve`) and dispatches on the decision
     8. `Decider.answered`          Submit (go on with 9) | Retry (back to 4) | Done or Unchanged (go on with 13)
     9. `Readers.submit`            a reader process takes the page
    10. `Reader.read`               parses it and compares it with the stored version
    11. `Journey.parsed`            looks up its links, registers feeds and hints
    12. `Decider.parsed`            Done: the rows to be recorded (`results`)
    13. `Recorder.add`              gathers the rows in a batch
    14. `Journey._finish`           counts the visit and keeps its outcome for the policy
    15. `Recorder.commit`           archive, store, index, in this order (`record.storage`)
    16. `loop.drive`                sends the outcomes to the policy, which chooses again (2)
    17. `loop.note`                 after the cycle, the policy learns from the recorded visits

Modules:

    journey          `Journey`: steps 4 to 14, in this order
    live_web         `LiveWeb`: the event loop, and the jobs it runs (visit, explore, refresh hints, recheck robots.txt)
    decide           what an answer means, as a value; no I/O
    results          the rows that record a visit, by what it found
    pending          `PendingVisit`, the store rows of pages whose turn is near, and which outcomes end a run
    redirects        where a redirect leads
    linked_again     pages that were gone and are linked again
    shared_text      the brake for sites whose pages suddenly show one text
    discovery        from links and sitemap entries to pages
    servers          state of each server: robots.txt, trust in its validators, redirect habits
    recorder         batches of results, committed by size and time
    reader_pool      the reader processes, each page with a deadline
    reader_process   what a reader process does: parse, compare, build WARC records
    messages         what is sent to reader processes and back
    stored_text      the text of stored pages
"""
