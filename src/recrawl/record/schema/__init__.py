"""The tables of the store, created and changed by named steps.

migrations  all steps in order; applies those that a store lacks
first       the SQL of the first step
newer_steps the SQL of the steps from 0013 on
"""
