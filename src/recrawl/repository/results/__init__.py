"""What the methods of `Repository` return, and the words that reports share.

pages.py       Page, Version
content.py     the content of a version: text, Markdown, HTML for a reader, facts
difference.py  Difference: what lies between two versions
pictures.py    screenshots, and what changed between two
values.py      other values that are read: Change, Visit, Site, Status, SearchHit, Explanation
runs.py        what writing returns: Report, Plan, Progress, Removal, Import, Attempt
answers.py     answers as JSON with their schemas, and cursors of lists
rows.py        Rows: lazy results, as Arrow tables and pandas frames on request
failures.py    failures of visits in words
words.py       counted nouns
addresses.py   URLs with their words and hosts in their own letters
"""
