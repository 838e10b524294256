"""From the bytes of a sitemap or feed to UTF-8: gzip is inflated under a size limit, other encodings are converted."""

from __future__ import annotations

import codecs
import re
import zlib

_CHUNK = 1 << 16
_MAX_MEMBERS = 1024  # gzip members: some writers start one every 64 KiB, but a million empty ones are an attack
_DECLARED = re.compile(rb"""(?i)<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:-]{1,40})["']""")
_CONTROLS = bytes(b for b in range(32) if b not in b"\t\n\r")


def as_utf8(body: bytes, max_bytes: int) -> tuple[bytes, str]:
    """The document in UTF-8, from at most `max_bytes` of the unpacked body, and the problem, if any."""
    plain, problem = _unpack(body, max_bytes)
    return _decoded(plain), problem


def _unpack(body: bytes, max_bytes: int) -> tuple[bytes, str]:
    """The uncompressed body, at most `max_bytes` of it, and the problem, if any."""
    if body[:2] != b"\x1f\x8b":
        return body[:max_bytes], "" if len(body) <= max_bytes else f"cut at {max_bytes} bytes"
    plain, problem = _inflate(body, max_bytes)
    return (b"", "gzip inside gzip") if plain[:2] == b"\x1f\x8b" else (plain, problem)


def _inflate(body: bytes, max_bytes: int) -> tuple[bytes, str]:
    out = bytearray()
    members = 0
    stream = zlib.decompressobj(wbits=31)
    for at in range(0, len(body), _CHUNK):
        data = body[at : at + _CHUNK]
        while data:
            try:
                out += stream.decompress(data, max_bytes - len(out) + 1)
            except zlib.error:
                # Padding or junk after a complete member is common and harmless.
                return bytes(out), "" if members else "broken gzip"
            if len(out) > max_bytes:
                return bytes(out[:max_bytes]), f"cut at {max_bytes} bytes"
            data = stream.unused_data
            if stream.eof:
                members += 1
                if members > _MAX_MEMBERS:
                    return bytes(out), "too many gzip members"
                stream = zlib.decompressobj(wbits=31)
    return bytes(out), "" if members else "gzip cut off"


def _decoded(body: bytes) -> bytes:
    """The document in UTF-8, without a byte order mark and without the control bytes that XML forbids."""
    if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        body = body.decode("utf-16", "replace").encode()
    elif body[:2] == b"\0<" or body[:2] == b"<\0":
        body = body.decode("utf-16-le" if body[1] == 0 else "utf-16-be", "replace").encode()
    else:
        body = body.removeprefix(codecs.BOM_UTF8)
        try:
            body.decode()
        except UnicodeDecodeError:
            import webencodings  # lazy: nearly all are UTF-8

            # The declaration counts only now: UTF-8 documents often declare another encoding.
            declared = _DECLARED.search(body, 0, 1024)
            label = webencodings.lookup(declared[1].decode("ascii", "replace")) if declared else None
            decode = label.codec_info.decode if label else codecs.utf_8_decode
            body = decode(body, "replace")[0].encode("utf-8", "replace")
    return body.translate(None, _CONTROLS)
