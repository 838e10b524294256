"""The change model of the default policy: pages of one group change together, in shocks.

A *group* is the pages of a site whose URLs have the same template. A *shock* is a time at which far more pages of a
group changed than usual: a rebuild, a new edition.

- `url_templates`: the template of a URL
- `model`: change rates and shocks with nested Gamma priors
- `change_model`: change probabilities: the shock model, corrected by a fitted network (`change_model.json`)
- `page_prior`: what is known of a page's rate from its first download and its age
- `new_pages`: changes of pages that list new pages
- `pooling`: what the sites of one shard tell of those of others
- `mixture`: its average with a Poisson model of each page's own visits, weighted per site by how well they predicted
"""
