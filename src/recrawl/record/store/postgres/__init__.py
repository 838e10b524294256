"""The store in a schema of a PostgreSQL database (extra `postgres`).

store           `PostgresStore`: opening, batches, transactions
target          where the store is: URL, schema, password by reference
connection      a connection that comes back when it was cut, and whose errors say what to do
dialect         how PostgreSQL spells the shared statements
adapters        values that PostgreSQL or psycopg treat in another way than SQLite
schema          the tables, partitioned by shard, and their migrations
batches         statements for many rows: binary COPY, unnest
leases          the table of leases, and the fence that checks one in each transaction
writer_lock     one writer at a time, by an advisory lock
tables          the few methods that cannot be shared
cluster/        the tables of a cluster
gathered/       the shards of a cluster read as one
"""
