"""Archive files and models in an object store (extra `s3`), beside the folder of the repository.

A file of the archive is written in the folder. When it is complete (sealed) it is put into the object store, unless it
is there already, and then recorded in the store. Until then it waits in the folder: an object store that is away stops
nothing and loses nothing. Afterwards the copy in the folder is a cache.

protocol     `Blobs`: what an object store offers
target       where it is: a URL, in the file `archive.toml`
s3           `S3Blobs`: a bucket of an S3 API, through obstore
cache        copies of files and of single records in the folder, limited in size
uploads      put sealed files in the background
models       put and get the files of `models/`
moves        move the archive into an object store, or back into the folder
remote       `RemoteFiles`: all of this for a repository
"""
