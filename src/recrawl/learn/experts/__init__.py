"""Change prediction from related pages: the methods of Radinsky and Bennett 2013 (R), as batched array code.

R trains one support vector machine per page, expert and day. An expert of a page is another page whose features help to
predict the page's changes. `lab.predict.methods` runs these steps on recorded histories.

    features         a page's features on each day, and those of pairs of pages (spec L2)
    word_dynamics    a time series of counts for each page and word
    correlation      lagged cross-correlation of many series, in batches or kept up to date day by day
    dtw              dynamic time warping of many pairs of series
    selection        which pages are experts of a page: by links, content or word dynamics (spec L4)
    incremental      relation weights of chosen pairs, updated from each day's snapshot (spec L5)
    svm              a solver for thousands of small support vector machines at once (spec L3)
    classifiers      training sets, single machines, weighted votes, relational union, bagging, boosting
    online_learner   machines that are updated example by example instead of being retrained (spec L5)
    platt            Platt calibration: from margins to probabilities (spec L7)
"""
