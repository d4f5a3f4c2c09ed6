"""Addresses of “My connections”, “My documents” and cited passages."""

from django.urls import path

from tools_admin import knowledge_views, views

urlpatterns = [
    path("documents/", knowledge_views.documents, name="documents"),
    path("documents/<uuid:document_id>/delete/", knowledge_views.delete, name="delete_document"),
    path("knowledge/passages/<int:passage_id>/", knowledge_views.passage, name="passage"),
    path("connections/", views.connections, name="connections"),
    path("connections/<int:scheme_id>/", views.connect, name="connect"),
    path("connections/<int:scheme_id>/remove/", views.disconnect, name="disconnect"),
    path("connections/<int:scheme_id>/callback/", views.callback, name="connection_callback"),
]
