"""Change prediction from related pages: the methods of Radinsky and Bennett 2013 (R), as batched array code.

R trains one support vector machine per page, expert and day. An expert of a page is another page whose features help to
predict the page's changes. `lab.predict.methods` runs these steps on recorded histories.

    features         a page's features on each day, and those of pairs of pages (spec L2)
    word_dynamics    a time series of counts for each page and word
    selection        which pages are experts of a page: by links, content, correlation or time warping (spec L4)
    panels           R's methods on observations: single machines, votes, union, ensembles
    classifiers      training sets, single machines, weighted votes, relational union, bagging, boosting
    online_learner   machines and relation weights that are updated day by day (spec L5)
"""
