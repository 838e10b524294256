"""A store divided into those of the shards of a cluster, or the shards of a cluster joined in one store.

Every site goes to one shard, with all that belongs to it; the rows of a table are numbered anew in each shard, in their
old order, so that blocks of rows stay in the order of their keys and can be compared with what was copied before.

numbering       new numbers: which shard owns a row, and its number there
owners          which shard owns each row of a store
packed          numbers of pages and requisites inside of packed columns
projection      the rows of a table as those of each shard
own_rows        what belongs to the whole of a cluster: tags, alerts, read marks, single values, the order of visits
joined_numbers  new numbers of the rows of all shards in one store
joined_rows     the rows of all shards as those of one store
joined_values   single values of all shards as those of one store
copying         copy all of it, compare it, go on after an interruption
"""
