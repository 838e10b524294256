"""Sinks: every change of the repository, delivered to another system.

A change is delivered at least once, the changes of a page in order. The number of the last change that the receiver
has acknowledged is stored for each sink, after the acknowledgement: a crash repeats changes and loses none. One batch
is under way at a time, and the next one is read after the receiver has taken it: a slow receiver slows only its sink.

protocol.py        Event, Sink, and the limits of a batch
delivery.py        the changes after a cursor, batch by batch, to a sink
kinds.py           the kinds of sinks by name, and their secrets
webhook.py         one CloudEvent for each change
opensearch.py      the bulk API of OpenSearch and Elasticsearch
postgres.py        a table of PostgreSQL
markdown_files.py  a folder of Markdown files, one for each page
chunk_lines.py     a file of JSON lines: chunks to add and to delete
"""
