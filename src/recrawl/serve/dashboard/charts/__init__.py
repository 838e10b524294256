"""Geometry of charts: numbers in, positions and labels for the SVG templates out.

lines_and_columns.py  line charts and column charts
rows.py               horizontal bars and heat maps
cycles.py             the charts of the start page
time_axis.py          time ranges and the labels of time axes
"""
