"""Change prediction from related pages: the methods of Radinsky and Bennett 2013 (R), as batched array code.

R trains one support vector machine per page, expert and day. An expert of a page is another page whose features help to
predict the page's changes. `lab.predict.methods` runs these steps on recorded histories.

    features         a page's features on each day, and those of pairs of pages (spec L2)
    word_dynamics    a time series of counts for each page and word
    correlation      lagged cross-correlation of many series, in batches or kept up to date day by day
    selection        which pages are experts of a page: by links, content, correlation or time warping (spec L4)
    dtw              dynamic time warping of many pairs of series at once
    panels           R's methods on observations: single machines, votes, union, ensembles
    svm              a solver for thousands of small support vector machines at once (spec L3), Platt calibration (L7)
    classifiers      training sets, single machines, weighted votes, relational union, bagging, boosting
    visit_log        the last visits of tracked pages, with the words they found
    visit_panels     features, experts and machines over the visits of a crawl
    machine_state    margins, experts and record of tracked pages, between cycles
    crawl_learner    R's methods while crawling, within a bounded cost (spec L7)
    online_learner   machines and relation weights that are updated day by day (spec L5)
"""
