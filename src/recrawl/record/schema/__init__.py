"""The tables of the store, created and changed by named steps.

migrations  all steps in order; applies those that a store lacks
"""
