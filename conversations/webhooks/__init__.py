"""Telling other programs what happened: `outbox` writes it down with the event, `delivery` sends it, `service` is what
people do with their webhooks."""
