"""The tables of the store, created and changed by named steps.

migrations  all steps in order; applies those that a store lacks
first       the SQL of the first step
screenshots the SQL of screenshots and rendered versions
fields      the SQL of what pages state about themselves
marks       the SQL of requested visits, tags, read marks and saved filters
"""
