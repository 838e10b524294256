"""The store in one SQLite file in WAL mode.

store           `SqliteStore`: opening, batches, transactions
connection      connections whose errors about the file are `StorageFailure`s
checks          checks of the file itself
"""
