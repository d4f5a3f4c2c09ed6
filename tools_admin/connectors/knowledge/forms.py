from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextareaWidget, UnfoldBooleanSwitchWidget

from tools_admin.connector_forms import ConnectorForm
from tools_admin.knowledge_models import LANGUAGES, Passage


class KnowledgeForm(ConnectorForm):
    about = forms.CharField(
        label=_("What it holds"),
        required=False,
        max_length=500,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3}),
        help_text=_("Told to models, so that they know when to search here: “Travel rules and expense forms.”"),
    )
    language = forms.ChoiceField(
        label=_("Language"),
        choices=LANGUAGES,
        widget=UnfoldAdminSelectWidget(),
        help_text=_("Of most documents: words are found in all their forms."),
    )
    uploads = forms.BooleanField(
        label=_("People add their own documents"),
        required=False,
        widget=UnfoldBooleanSwitchWidget(),
        help_text=_("On the page “My documents”; each is found by its owner only."),
    )

    def read_settings(self) -> dict[str, Any]:
        return {name: self.cleaned_data[name] for name in self.own_fields()}

    def after_save(self) -> list[Any]:
        """Words are looked up by the language's rules, so those of passages that are there follow it."""
        language = self.instance.settings["language"]
        Passage.objects.filter(document__collection=self.instance).exclude(language=language).update(language=language)
        return []
