"""The revisit rules of other crawlers, as policies, so that they can be compared on equal terms.

Each module follows the source code of one crawler. The rules have no budget of their own: they say when a page is due,
and a cycle visits the most overdue pages first.

- `interval_base`: selection of due pages, and the base class of rules with an interval per page
- `fixed_interval`: one interval for all pages
- `heritrix1`: Heritrix 1, WaitEvaluator
- `manifoldcf`: Apache ManifoldCF, continuous jobs
- `marginalia`: Marginalia Search, CrawlerRevisitor
- `norconex`: Norconex, GenericRecrawlableResolver
- `nutch`: Apache Nutch, AdaptiveFetchSchedule
- `stormcrawler`: Apache StormCrawler, AdaptiveScheduler
"""
