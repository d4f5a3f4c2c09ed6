"""Kinds of endpoints, as data: where they live, how they take the key, and what they want differently."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext_lazy as _

# How the key travels: in the header of most, or in one of the endpoint's own. `{key}` stands for it.
BEARER: Mapping[str, str] = {"Authorization": "Bearer {key}"}


@dataclass(frozen=True, slots=True)
class Preset:
    """`quirks` are abilities of the engine's adapter (`OpenAIChatModel`); `max_tools` is what one request may hold."""

    name: str
    label: Any
    base_url: str = ""
    needs_key: bool = True
    hint: Any = ""
    auth: Mapping[str, str] = field(default_factory=lambda: BEARER)
    quirks: Mapping[str, bool] = field(default_factory=dict)
    max_tools: int = 128


_LOCAL = _("Write the name of its machine in the place of localhost when it runs on another one.")

PRESETS = {
    preset.name: preset
    for preset in (
        Preset("openai", "OpenAI", "https://api.openai.com/v1"),
        Preset(
            "azure",
            "Azure OpenAI",
            "https://YOUR-RESOURCE.openai.azure.com/openai/v1",
            hint=_("Put the name of your resource into the address. A model is called by the name of its deployment."),
            auth={"api-key": "{key}"},
        ),
        Preset("deepseek", "DeepSeek", "https://api.deepseek.com/v1", quirks={"echo_reasoning": True}),
        Preset("mistral", "Mistral", "https://api.mistral.ai/v1", quirks={"short_ids": True}),
        Preset("groq", "Groq", "https://api.groq.com/openai/v1"),
        Preset("gemini", "Google Gemini", "https://generativelanguage.googleapis.com/v1beta/openai"),
        Preset("openrouter", "OpenRouter", "https://openrouter.ai/api/v1"),
        Preset("vllm", "vLLM", "http://localhost:8000/v1", needs_key=False, hint=_LOCAL),
        Preset("ollama", "Ollama", "http://localhost:11434/v1", needs_key=False, hint=_LOCAL),
        Preset("llamacpp", "llama.cpp", "http://localhost:8080/v1", needs_key=False, hint=_LOCAL),
        Preset("other", _("Another OpenAI-compatible endpoint"), needs_key=False),
    )
}
