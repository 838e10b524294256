"""Reading and writing of the tables, one module for each group of tables.

pages           pages
page_states     changes of pages without a visit
visits          visits
versions        versions, links, archive files
sites           sites, cycles, single values
requisites      requisites, their versions, the pages that need them
hints           hints, their sources, feeds
pushes          pushes, their senders and how far each is trusted
outbox          what is to be delivered: alerts, and changes for sinks
subscriptions   WebSub subscriptions, verified IndexNow keys
marks           tags, read marks, saved filters, requested visits
erasing         rows that go when pages are erased
summaries       sums that are written when a cycle ends
"""
