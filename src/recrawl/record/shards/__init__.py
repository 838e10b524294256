"""The shards of a cluster, seen from one folder.

folders        a folder for each shard: its working folder, or a place to read it from
archive        the archive files of all shards as one archive
placement      new places of records when an archive is divided
archive_parts  the records of each shard, put into its prefix of the object store
switching      make another place that of a repository
"""
