"""Statements that SQLite and PostgreSQL both run: every query, and every write that is not a batch of visits.

They are written once, in the part of SQL that the two share: `coalesce`, `CASE`, `count(*) FILTER`, `ON CONFLICT`. A
second copy of two thousand lines would drift apart. What cannot be said the same way is a constant of `base` (a list
of numbers as one parameter, minus infinity) or a method that a store overrides. Batches are written by each store in
its own way, because they decide on its speed.

store           `SqlStore`: one attribute for each group of tables
base            what the tables share: rows, columns, transactions, constants of the enums
tables/         reading and writing, one module for each group of tables
reports         queries for people
listings        blocks of tables that grow
copying         copy a store into another one
checks          is the store consistent, and what must archive and index hold
"""
