"""Replays: a policy chooses visits, a history answers them, and meters measure the result (spec §3).

- `replay`: the setup of a replay, and the replay itself
- `timeline`: the state of every page on the web and in the repository as time passes
- `metrics`: freshness, age, change ratio and the other measures of a replay
- `late`: outcomes that come late, as from servers with long queues
- `runner`: which replays to run, and many of them in parallel, with a cache of their results
- `hint_sources`: sources of hints, simulated or recorded, and the signals of their readings
- `copies`: pages with the text of others: left out, and finds counted once
- `clairvoyant`: the most that any policy can find, as a policy and as a bound (spec M11)
- `small_worlds`: the smallest worlds, for examples and tests of policies
"""
