"""The laboratory: archives of web sites, generated worlds, replay, and a server that plays them back.

`archive` reads and writes Archive Parquet, `synth` generates a living web as such an archive, `timelapse`
serves any archive over HTTP on loopback with a clock that can be turned. Nothing here reads the real clock
or draws unseeded numbers: both come in as arguments.
"""
