"""Comparisons of routes: asked for in the admin or by `manage.py compare_routes`, worked on in a Celery worker."""
