"""SQL databases as tools that can only read: the guard in front, the database's own means behind it."""
