"""Change rates from visits: estimators, posteriors and the expected freshness of a repository.

- `gaps`: visits as gaps between them, the input of all estimators
- `censored`: the likelihood equation that most estimators solve
- `estimators`: the estimators of the literature; `comparison`: the same by name, on equal input
- `posteriors`: Gamma posteriors that pages share with their directory and site
- `staleness`: the expected freshness of a repository, with its uncertainty
"""
