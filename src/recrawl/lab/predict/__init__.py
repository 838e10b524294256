"""Change prediction on recorded histories: predict every page on every day from the days before, and score it.

Behind `recrawl lab predict` and the experiments of Radinsky and Bennett 2013 (R).

    days               Days: which pages were observed on which days, their versions, texts and labels (spec L1)
    archive_days       days from Parquet archives, with the labels new-link (spec C3) and relevance (C4)
    planted_world      generated days whose related pages are known
    methods            R's methods, the frequency baseline, and the dispatch to the others (spec L3)
    frozen             machines that are trained once and asked on later days
    online             R's single and multiple experts, updated day by day (spec L5)
    pooled_predictor   the `pooled` model with the extra features that archives offer
    relatives          pages whose changes precede those of others, for the `pooled` predictor
    evaluation         R's protocol: which pages and days are predicted, and the scores (spec L6)
    scores             accuracy, AUC, Brier score, calibration, and the paired t-test (spec M8)
"""
