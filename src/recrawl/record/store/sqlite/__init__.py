"""The store in one SQLite file in WAL mode.

store           `SqliteStore`: opening, batches, transactions
base            what the SQLite tables share: rows, columns, transactions, constants of the enums
connection      connections whose errors about the file are `StorageFailure`s
tables/         reading and writing, one module for each group of tables
reports         queries for people
listings        blocks of tables that grow
checks          is the store consistent, and what must archive and index hold
"""
