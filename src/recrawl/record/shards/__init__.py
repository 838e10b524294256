"""The shards of a cluster, seen from one folder.

folders     a folder for each shard: its working folder, or a place to read it from
archive     the archive files of all shards as one archive
"""
