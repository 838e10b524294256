"""Change prediction on recorded histories: predict every page on every day from the days before, and score it.

Behind `recrawl lab predict` and the experiments of Radinsky and Bennett 2013 (R).

    days               Days: which pages were observed on which days, their versions, texts and labels (spec L1)
    methods            R's methods, the frequency baseline, and the dispatch to the others (spec L3)
    pooled_predictor   the `pooled` model with the extra features that archives offer
    evaluation         R's protocol: which pages and days are predicted, and the scores (spec L6)
    scores             accuracy, AUC, Brier score, calibration, and the paired t-test (spec M8)
"""
