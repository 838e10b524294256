"""The store in one SQLite file in WAL mode: one module for each group of tables.

store           `SqliteStore`: opening, batches, transactions
base            what the SQLite tables share: rows, columns, transactions, constants of the enums
connection      connections whose errors about the file are `StorageFailure`s
pages           pages
visits          visits
versions        versions, links, archive files
sites           sites, cycles, single values
requisites      requisites, their versions, the pages that need them
hints           hints, their sources, feeds
pushes          pushes, their senders and how far each is trusted
outbox          alerts to be sent
subscriptions   WebSub subscriptions, verified IndexNow keys
summaries       sums that are written when a cycle ends
reports         queries for people
listings        blocks of tables that grow
checks          is the store consistent, and what must archive and index hold
"""
