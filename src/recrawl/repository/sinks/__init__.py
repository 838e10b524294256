"""Sinks: every change of the repository, delivered to another system.

The engine of `repository.delivery` delivers: at least once, the changes of a page in order, one page apart from others.

protocol.py        Event, Sink, and the limits of a batch
delivery.py        the sinks of a repository: added, removed, listed, delivered to
receiver.py        a sink as the engine sees it: changes taken up from the visits, sent in batches
events.py          changes, as they are sent
kinds.py           the kinds of sinks by name, and their secrets
webhook.py         one CloudEvent for each change
opensearch.py      the bulk API of OpenSearch and Elasticsearch
postgres.py        a table of PostgreSQL
markdown_files.py  a folder of Markdown files, one for each page
chunk_lines.py     a file of JSON lines: chunks to add and to delete
"""
