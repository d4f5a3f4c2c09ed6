"""Addresses of “My connections”."""

from django.urls import path

from tools_admin import views

urlpatterns = [
    path("connections/", views.connections, name="connections"),
    path("connections/<int:scheme_id>/", views.connect, name="connect"),
    path("connections/<int:scheme_id>/remove/", views.disconnect, name="disconnect"),
    path("connections/<int:scheme_id>/callback/", views.callback, name="connection_callback"),
]
