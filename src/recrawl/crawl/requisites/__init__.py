"""Requisites: the stylesheets, images, fonts and scripts that pages need to be shown as they looked.

They are no pages: policies do not choose them, and no report of pages, changes or searches has them. They are found
while pages are visited and requested when the pages of a run are done, through the same lanes and with the same rules
(robots.txt, delay, IP addresses, sizes), within a budget of their own. What is not requested waits for the next run.

registry   from URLs to requisites, and which of them are due
recording  what their answers mean for the store and the archive
"""
