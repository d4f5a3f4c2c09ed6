"""The chat completions interface: agents and routes for programs that speak OpenAI's protocol.

`schemas` is what comes in, `service` makes a run of it, `wire` is what the worker reads of it, `reply` follows the run,
`stream` and `api` give its answer.
"""
