"""Replays: a policy chooses visits, a history answers them, and meters measure the result (spec §3).

- `replay`: the setup of a replay, and the replay itself
- `timeline`: the state of every page on the web and in the repository as time passes
- `metrics`: freshness, age, change ratio and the other measures of a replay
- `rate_accuracy`: how accurate estimated change rates are (spec M7)
- `late`: outcomes that come late, as from servers with long queues
- `hint_sources`: sources of hints, simulated or recorded; `signal_counts`: the signals of their readings
- `simulated_hints`: sitemaps over the pages of a history, correct or not
- `recorded_hints`: what real sitemaps and feeds said
- `copies`: pages with the text of others: left out, and finds counted once
- `new_links`: new links that changes bring
- `clairvoyant`: the most that any policy can find, as a policy and as a bound (spec M11)
- `trials`: which replays to run; `runner`: many replays in parallel, with a cache of their results
- `small_worlds`: the smallest worlds, for examples and tests of policies
"""
