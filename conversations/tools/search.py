from django.contrib.postgres.search import SearchHeadline, SearchQuery, SearchVector

from accounts.models import User
from conversations.models import Message, Run

MOST = 10


def search(run: Run, words: str) -> str:
    """Passages of the person's own other conversations that hold all the words, newest first."""
    user = User.objects.get(id=run.user_id)
    query = SearchQuery(words, config="simple", search_type="websearch")
    found = (
        Message.objects.visible_to(user)
        .exclude(conversation_id=run.conversation_id)
        .annotate(text=SearchVector("content", config="simple"))
        .filter(text=query, recalled=False)
        .annotate(
            passage=SearchHeadline(
                "content",
                query,
                config="simple",
                start_sel="",
                stop_sel="",
                max_words=60,
                min_words=30,
                max_fragments=2,
            )
        )
        .select_related("conversation")
        .order_by("-created_at")[:MOST]
    )
    lines = [
        f"{message.created_at:%Y-%m-%d} · {message.conversation} · {message.get_role_display()}: "
        f"{' '.join(vars(message)['passage'].split())}"
        for message in found
    ]
    return "\n".join(lines) or "Nothing was found. Try fewer or other words."
