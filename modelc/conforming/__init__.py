"""Proof that two servers answer the same: the same requests to both, and every byte compared."""

from modelc.conforming.comparison import Difference, Report, compare
from modelc.conforming.requests import requests_for
from modelc.conforming.served import Served

__all__ = ["Difference", "Report", "Served", "compare", "requests_for"]
