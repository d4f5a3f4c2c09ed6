"""The form that starts a comparison."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _
from unfold.widgets import (
    UnfoldAdminFileFieldWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldBooleanSwitchWidget,
)

from agentapp.engine.comparison import BadTaskSet
from conversations.comparison import services
from conversations.errors import ConversationError
from conversations.models import Comparison
from tools_admin.errors import NoModel
from tools_admin.models import Agent, LanguageModel

MOST_BYTES = 1_000_000


class ComparisonForm(forms.ModelForm):  # type: ignore[type-arg]
    """`user` is set on the class that the page makes of it. A form that is valid has started the comparison."""

    task_file = forms.FileField(
        label=_("Task set"),
        required=False,
        widget=UnfoldAdminFileFieldWidget,
        help_text=_("A YAML or CSV file of tasks. Empty: the starter set, thirty tasks over the demo data."),
    )
    chosen_routes = forms.MultipleChoiceField(
        label=_("Routes"),
        choices=list(services.ROUTES.items()),
        initial=list(services.ROUTES),
        widget=forms.CheckboxSelectMultiple,
        help_text=_("Each task goes through each of them, with the same model, tools and limits."),
    )
    scripted = forms.BooleanField(
        label=_("Scripted model"),
        required=False,
        widget=UnfoldBooleanSwitchWidget,
        help_text=_("Plays the scripts of the tasks instead of asking a model: free, and the same every time."),
    )
    faults = forms.ChoiceField(
        label=_("Faults"),
        choices=list(services.FAULTS.items()),
        widget=UnfoldAdminSelectWidget,
        help_text=_("What goes wrong with tools on purpose."),
    )
    tokens = forms.IntegerField(
        label=_("Tokens of an attempt"),
        min_value=1_000,
        max_value=10_000_000,
        initial=services.LIMITS["tokens"],
        widget=UnfoldAdminIntegerFieldWidget,
        help_text=_("At most, in and out. Budgets of whoever starts it hold besides."),
    )
    seconds = forms.IntegerField(
        label=_("Seconds of an attempt"),
        min_value=1,
        max_value=86_400,
        initial=services.LIMITS["seconds"],
        widget=UnfoldAdminIntegerFieldWidget,
        help_text=_("At most, of calls."),
    )

    class Meta:
        model = Comparison
        fields = ("agent", "model", "repeats")

    user: Any = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        agents: Any = self.fields["agent"]
        models: Any = self.fields["model"]
        if self.user is not None:
            agents.queryset = Agent.objects.visible_to(self.user)
            models.queryset = LanguageModel.objects.usable().visible_to(self.user)

    def clean_task_file(self) -> Any:
        """The task set of the file, or the starter set."""
        file = self.cleaned_data.get("task_file")
        if file is None:
            return services.read_task_set(services.STARTER.read_text(), services.STARTER.name)
        if file.size > MOST_BYTES:
            raise forms.ValidationError(_("The file is too large: at most one megabyte."))
        try:
            return services.read_task_set(file.read().decode(), file.name)
        except UnicodeDecodeError:
            raise forms.ValidationError(_("The file is no text in UTF-8.")) from None
        except BadTaskSet as error:
            raise forms.ValidationError(str(error)) from None

    def clean(self) -> Any:
        given: dict[str, Any] = super().clean() or self.cleaned_data
        if self.errors:
            return given
        try:
            self.instance = services.start_comparison(
                self.user,
                given["task_file"],
                routes=given["chosen_routes"],
                repeats=given["repeats"],
                agent=given["agent"],
                model=given["model"],
                scripted=given["scripted"],
                faults=given["faults"],
                limits={"tokens": given["tokens"], "seconds": given["seconds"]},
            )
        except (ConversationError, NoModel) as error:
            raise forms.ValidationError(str(error)) from None
        return given
