"""Connectors: where an agent's tools come from. One folder a kind, all of the same shape; `kinds.py` lists them."""
