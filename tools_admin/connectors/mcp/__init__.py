"""MCP servers as tools: Streamable HTTP, and commands that the operator allows, through the official SDK."""
