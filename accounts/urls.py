from django.urls import path

from accounts import views

urlpatterns = [
    path("setup/<str:token>/", views.setup, name="setup"),
]
