from pathlib import Path

# The starter set of `manage.py compare_routes`.
TASKS = Path(__file__).with_name("tasks.yaml")
