"""The tables of the store, created and changed by named steps.

migrations  all steps in order; applies those that a store lacks
first       the SQL of the first step
marks       the SQL of requested visits, tags, read marks and saved filters
"""
