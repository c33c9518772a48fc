"""A seen-set for crawlers, which says when it is full and how many URLs that has cost.

`Sieve` is a Bloom filter of `str` or `bytes` that counts the new keys which it has wrongly taken for seen ones. It reports each level of
saturation once, by the logger `sieve.saturation`: as info at 0.8 of the capacity, and as a warning above it.
"""

from crawl_sieve._crawl_sieve import SaturatedError, Saturation, Sieve

__all__ = ["SaturatedError", "Saturation", "Sieve"]
