"""The parts that production gets from an operator, run from Python wheels instead: PostgreSQL, Valkey, a demo model.

`environment.ensure` decides where everything lies and generates the secrets, `supervisor` runs it all (`manage.py up`),
`testing.services` lends database and broker to tests. Nothing in here imports Django before the database is up.
"""
