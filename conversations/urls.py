from django.urls import path

from conversations import usage_page, views

app_name = "chat"
urlpatterns = [
    path("", views.new, name="new"),
    path("c/<uuid:conversation_id>/", views.conversation, name="conversation"),
    path("approvals/", views.approvals, name="approvals"),
    path("usage/", usage_page.usage_page, name="usage"),
    path("artifacts/<uuid:artifact_id>/", views.artifact, name="artifact"),
    path("runs/", views.runs, name="runs"),
    path("runs/<uuid:run_id>/", views.run, name="run"),
]
