from django.urls import path

from conversations import usage_page, views
from conversations.webhooks import views as webhooks

app_name = "chat"
urlpatterns = [
    path("", views.new, name="new"),
    path("c/<uuid:conversation_id>/", views.conversation, name="conversation"),
    path("approvals/", views.approvals, name="approvals"),
    path("usage/", usage_page.usage_page, name="usage"),
    path("artifacts/<uuid:artifact_id>/", views.artifact, name="artifact"),
    path("attachments/<uuid:attachment_id>/", views.attachment, name="attachment"),
    path("runs/", views.runs, name="runs"),
    path("runs/<uuid:run_id>/", views.run, name="run"),
    path("webhooks/", webhooks.index, name="webhooks"),
    path("webhooks/<uuid:webhook_id>/", webhooks.log, name="webhook"),
    path("webhooks/<uuid:webhook_id>/<str:action>/", webhooks.act, name="webhook_act"),
    path("webhooks/deliveries/<uuid:delivery_id>/replay/", webhooks.replay, name="webhook_replay"),
]
