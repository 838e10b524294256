"""The `pooled` predictor: one calibrated model of change probability for all pages, learned from their visits.

The policies `predicted` and `shock` use it while crawling, `recrawl lab predict` on recorded histories.

    ledger     statistics of every page's visits, and of its site and directory, updated visit by visit
    features   the model's input from a ledger: one row per page, one column per feature
    model      fitting and calibration
    learner    ledger, training rows and model kept in a book's memory while crawling
"""
