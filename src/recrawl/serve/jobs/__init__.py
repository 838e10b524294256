"""Long work in child processes at low priority, so that it cannot hold up responses; and the files that it uses.

queue.py                runs command-line jobs, one at a time
job_specs.py            builds the command lines of jobs from API requests
subprocess_queries.py   queries over all pages, in a child process for large repositories
filter_preview.py       what a noise filter would have hidden, computed in a child process
uploads.py              the folder `files` of the repository: uploads and results
"""
