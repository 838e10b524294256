"""What the commands share: options, output, progress, and how a command opens a repository.

output.py          plain text, tables and JSON on standard output
progress.py        progress bars, or progress lines for the service
run_report.py      the progress and the summary of a crawl or cycle
completions.py     words and values that a shell completes
signals.py         Ctrl-C and SIGTERM
"""
