from crawl_sieve._crawl_sieve import SaturatedError, Saturation, Sieve

__all__ = ["SaturatedError", "Saturation", "Sieve"]
