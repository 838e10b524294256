"""Commands that do more in a cluster than to ask for a run and to wait for it.

holding     no worker and no run, from the beginning to the end of a move
moving      how a cluster is moved: the methods of its repository
relocation  a cluster moved to another database or object store, as by `recrawl move`
joining     all shards of a cluster made one repository, as by `recrawl move --shards 0`
division    a repository that exists divided into shards, as by `recrawl move --shards`
checking    all shards checked, or repaired by their workers, as by `recrawl check`
imports     URLs and histories divided by shard, and handed over to the workers by the object store
planning    what a cycle would visit, as by `recrawl cycle --dry-run`
"""
