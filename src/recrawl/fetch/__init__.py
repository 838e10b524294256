"""Getting the bytes, politely and safely (spec K2, K5, A3).

`http` asks servers, `robots` says what may be asked, `lanes` says when, and `address` says which machines are
never to be connected to. Only `http` touches the network and the clock; the other three are plain functions
of what they are given, so that every rule of politeness can be tested without waiting.
"""
